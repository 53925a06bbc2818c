"""Reading untrusted files: whatever goes wrong becomes one line that names the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gst.errors import InputError


def one_line(error: BaseException, limit: int = 160) -> str:
    """Kind and first line of an error.

    >>> one_line(ValueError("bad magic\\nand a long story"))
    'ValueError: bad magic'
    """
    text = str(error).strip().partition("\n")[0]
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(value: object, limit: int = 40) -> str:
    """A value from a file as it may stand in a message: printable, short."""
    return "".join(sign if sign.isprintable() else "?" for sign in str(value)[:limit])


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turns every error of the block into an ``InputError`` about ``path``, which should be ``kind``.

    The readers of numpy, pandas, pyarrow, zipfile, gzip and torch share no base class for a broken file.
    """
    try:
        if not path.is_file():
            raise InputError(f"no such file: {path}")
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} does not read as {kind}: {one_line(error)}") from error
