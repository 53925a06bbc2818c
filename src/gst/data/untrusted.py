"""Reading untrusted files: every error becomes one line that names the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gst.base.errors import InputError
from gst.base.memory import check_size
from gst.base.regular_files import require_regular
from gst.base.text import shown


def one_line(error: BaseException, limit: int = 160) -> str:
    """Class and first line of an error.

    >>> one_line(ValueError("bad magic\\nand a long story"))
    'ValueError: bad magic'
    """
    text = shown(str(error).strip().partition("\n")[0], limit)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def reading(path: Path, kind: str, whole: bool = True) -> Iterator[None]:
    """Turns every error of the block into an ``InputError``: ``path`` does not read as ``kind``.

    Refuses at once what is not a regular file, an empty file and, if it is to be read ``whole``, one that is too large
    for memory. Every exception is caught because numpy, pandas, pyarrow, zipfile, gzip and torch have no common base
    class for a broken file.
    """
    try:
        size = check_size(path) if whole else require_regular(path).st_size
        if size == 0:  # also what the kernel reports for its special files, some of which never end
            raise InputError(f"{path} does not read as {kind}: it is empty")
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{path} does not read as {kind}: {one_line(error)}") from error
