"""``numba.njit`` whose cache on disk is never in the way: a file that is cut, changed or out of date counts as absent.

numba itself fails at every later start where a file of its cache was cut, as a full disk or a power cut leaves it. Its
index is written before the code it points to, so that a kill between the two makes it run the code of an earlier
source. Here every file carries its hash, and every piece of code what it was compiled from.
"""

import hashlib
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

_SIZE = 16  # bytes of a hash


def njit(*, cache: bool = False, stamp: Any = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """The decorator; ``stamp``: what the cache depends on, else the file of the function."""

    def decorate(function: Callable[..., Any]) -> Any:
        made = numba.njit(**options)(function)
        if cache and hasattr(made, "py_func"):  # not where NUMBA_DISABLE_JIT leaves the function as it is
            with suppress(RuntimeError):  # no folder to keep anything in: compiled anew by every process
                made._cache = _Cache(made.py_func, stamp)
        return made

    return decorate


class _Cache(FunctionCache):  # type: ignore[misc]
    """Of one function. What cannot be read is compiled, what cannot be written is not kept."""

    def __init__(self, function: Callable[..., Any], stamp: Any) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp() if stamp is None else stamp
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # pickle and LLVM share no error for what is not theirs
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """The index and the code it points to, each followed by its hash."""

    def load(self, key: Any) -> Any:
        stamp, compiled_for, data = super().load(key) or (None, None, None)
        return data if (stamp, compiled_for) == (self._source_stamp, key) else None

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (self._source_stamp, key, data))

    def _load_index(self) -> dict[Any, str]:
        version = pickle.dumps(self._version, protocol=-1)  # what numba writes first
        with suppress(Exception):
            content = Path(self._index_path).read_bytes()
            stamp, overloads = pickle.loads(_checked(content.removeprefix(version)))
            if content.startswith(version) and stamp == self._source_stamp:
                return dict(overloads)
        return {}

    def _load_data(self, name: str) -> Any:
        return pickle.loads(_checked(Path(self._data_path(name)).read_bytes()))

    def _dump(self, obj: Any) -> bytes:
        content = super()._dump(obj)
        return content + _hash(content)


def _checked(content: bytes) -> bytes:
    content, seal = content[:-_SIZE], content[-_SIZE:]
    if _hash(content) != seal:
        raise ValueError("not as it was written")
    return content


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SIZE).digest()
