"""``numba.njit`` with a robust disk cache: a file that is truncated, altered or out of date counts as absent.

numba itself fails at every later start once a full disk or a power cut has truncated a file of its cache. It writes the
index before the code it points to, so after a kill between the two it runs code compiled from an earlier source.
Here every file carries its hash, and every piece of code is stored with the source stamp it was compiled from.
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
    """The decorator; ``stamp``: what invalidates the cache, by default the source file of the function."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**options)(function)
        if cache and hasattr(compiled, "py_func"):  # with NUMBA_DISABLE_JIT it is the plain function
            with suppress(RuntimeError):  # no writable folder: every process compiles anew
                compiled._cache = _Cache(compiled.py_func, stamp)
        return compiled

    return decorate


class _Cache(FunctionCache):  # type: ignore[misc]
    """The cache of one function. Unreadable entries are compiled again, failed writes are ignored."""

    def __init__(self, function: Callable[..., Any], stamp: Any) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp() if stamp is None else stamp
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # pickle and LLVM have no common error type for bad input
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """The index and the compiled code, each followed by its hash."""

    def load(self, key: Any) -> Any:
        stamp, compiled_for, data = super().load(key) or (None, None, None)
        return data if (stamp, compiled_for) == (self._source_stamp, key) else None

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (self._source_stamp, key, data))

    def _load_index(self) -> dict[Any, str]:
        version = pickle.dumps(self._version, protocol=-1)  # numba writes it first
        with suppress(Exception):
            content = Path(self._index_path).read_bytes()
            stamp, overloads = pickle.loads(_verified(content.removeprefix(version)))
            if content.startswith(version) and stamp == self._source_stamp:
                return dict(overloads)
        return {}

    def _load_data(self, name: str) -> Any:
        return pickle.loads(_verified(Path(self._data_path(name)).read_bytes()))

    def _dump(self, obj: Any) -> bytes:
        content = super()._dump(obj)
        return content + _hash(content)


def _verified(content: bytes) -> bytes:
    """The content without its hash, which must match."""
    content, stored_hash = content[:-_SIZE], content[-_SIZE:]
    if _hash(content) != stored_hash:
        raise ValueError("the content does not match its hash")
    return content


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SIZE).digest()
