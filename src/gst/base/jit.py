"""``numba.njit`` with a disk cache that is robust, survives upgrades and is shared by all installations of a user.

Compiled code is named by a hash of the *contents* of all files that it comes from, and lies in the user's cache folder:
a new version of gst that changes no kernel compiles nothing, and two versions side by side do not disturb each other.

numba itself fails at every later start once a full disk or a power cut has truncated a file of its cache. It writes the
index before the code it points to, so after a kill between the two it runs code compiled from an earlier source. Here
every file carries its hash, and every piece of code is stored with the stamp of its sources; a file that is truncated,
altered or out of date counts as absent.
"""

import hashlib
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.dispatcher import Dispatcher
from numba.extending import _Intrinsic
from platformdirs import user_cache_path

_SIZE = 16  # bytes of a hash
_UNUSED = 180 * 24 * 3600  # seconds after which the code of another version of a kernel is removed
_PLAIN = (bool, int, float, complex, str, tuple, type(None))

listeners: list[Callable[[str], None]] = []  # called with the name of a kernel before it is compiled


def njit(*, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """The decorator; with ``cache``, compiled code is kept on disk."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(**options)(function)
        if cache and hasattr(compiled, "py_func"):  # with NUMBA_DISABLE_JIT it is the plain function
            with suppress(RuntimeError):  # no writable folder: every process compiles anew
                compiled._cache = _Cache(compiled.py_func, options)
        return compiled

    return decorate


def source_stamp(function: Any, options: Any = ()) -> str:
    """A hash of all that the compiled code of a function depends on: files of kernels, constants, options, numba."""
    hasher = hashlib.sha256(repr((numba.__version__, sorted(dict(options).items()))).encode())
    for name, namespace in sorted(_kernel_modules(function.__globals__).items()):
        constants = {key: value for key, value in namespace.items() if type(value) in _PLAIN and key[:2] != "__"}
        hasher.update(repr((name, sorted(constants.items()))).encode())
        hasher.update(Path(namespace["__file__"]).read_bytes())
    return hasher.hexdigest()[: 2 * _SIZE]


def _kernel_modules(namespace: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The module with these names, and all others from which kernels, or the records they take, were imported."""
    modules: dict[str, dict[str, Any]] = {}
    pending = [namespace]
    while pending:
        following = pending.pop()
        if following["__name__"] not in modules:
            modules[following["__name__"]] = following
            homes = {value.__module__ for value in list(following.values()) if _is_kernel(value)}
            pending += [vars(sys.modules[home]) for home in homes if home.startswith("gst.")]
    return modules


def _is_kernel(value: Any) -> bool:
    """Whether a global value is compiled, or a named tuple, whose fields compiled code knows."""
    return isinstance(value, Dispatcher | _Intrinsic) or (isinstance(value, type) and hasattr(value, "_fields"))


def folder() -> str | None:
    """Where compiled code of this installation is kept; None: nowhere."""
    place = _Place.from_function(folder, __file__)
    return None if place is None else place.get_cache_path()


class _Place(_CacheLocator):  # type: ignore[misc]
    """Where code is kept: in $NUMBA_CACHE_DIR, else the user's cache folder, else beside the source."""

    def __init__(self, function: FunctionType, folder: Path) -> None:
        self._py_file, self._folder = function.__code__.co_filename, folder

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Place | None":
        if given := getattr(config, "CACHE_DIR", ""):
            return cls(py_func, Path(given))
        folders = [user_cache_path("gst") / "kernels", Path(py_file).parent / "__pycache__"]
        return next((cls(py_func, folder) for folder in folders if _is_ours(folder)), None)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_disambiguator(self) -> str:
        return ""

    def get_source_stamp(self) -> str:
        return ""


def _is_ours(folder: Path) -> bool:
    """Whether we may write there, or make it, and nobody else owns it: code is loaded from there."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    foreign = nearest == folder and hasattr(os, "geteuid") and folder.stat().st_uid != os.geteuid()
    return os.access(nearest, os.W_OK | os.X_OK) and not foreign


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes: Any = (_Place,)


class _Cache(FunctionCache):  # type: ignore[misc]
    """The cache of one function. Unreadable entries are compiled again, failed writes are ignored."""

    _impl_class = _Impl

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._options = options
        super().__init__(function)

    @cached_property
    def _files(self) -> "_Files":
        """Not earlier than at the first call, when all that the function refers to is defined."""
        name = f"{self._py_func.__module__}.{self._py_func.__qualname__}".replace("<", "").replace(">", "")
        python = f"py{sys.version_info[0]}{sys.version_info[1]}"
        return _Files(self._cache_path, f"{name}-{python}", source_stamp(self._py_func, self._options))

    @property
    def _cache_file(self) -> Any:
        return self._files

    @_cache_file.setter
    def _cache_file(self, unused: Any) -> None:
        """numba sets one when the function is decorated."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        loaded = None
        with suppress(Exception):  # pickle and LLVM have no common error type for bad input
            loaded = super().load_overload(sig, target_context)
        if loaded is None:
            for listener in listeners:
                listener(self._py_func.__name__)
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(sig, data)
            self._files.remove_unused()


class _Files(IndexDataCacheFile):  # type: ignore[misc]
    """The index and the compiled code, each followed by its hash."""

    def __init__(self, folder: str, name: str, stamp: str) -> None:
        super().__init__(folder, f"{name}-{stamp}", stamp)
        self._name = name

    def remove_unused(self) -> None:
        """Removes the code of other versions of this kernel that was written long ago."""
        for path in self._others():
            if path.stat().st_mtime < time.time() - _UNUSED:
                path.unlink(missing_ok=True)

    def _others(self) -> Iterator[Path]:
        for path in Path(self._cache_path).glob(f"{self._name}-*.nb[ic]"):
            if not path.name.startswith(f"{self._name}-{self._source_stamp}"):
                yield path

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
