"""A disk cache of what is computed once per graph: anchors, topology scores, dense baselines.

The key is a hash of everything that the content depends on, the data included, so a hit is never stale.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.data.data import BaseData

from gst.base import distributed
from gst.base.errors import InputError
from gst.base.log import log
from gst.base.versions import environment
from gst.storage import files
from gst.storage.paths import data_root
from gst.storage.run_folder import is_state_name

Content = tuple[dict[str, Tensor], dict[str, Any]]


def fingerprint(data: BaseData) -> str:
    """A hash of every tensor and every plain value of a graph, including its metric but not its name.

    The name only determines default settings, which are part of a key themselves.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(_fields(data), key=lambda field: field[0]):
        if name == "name":
            continue
        for part in _plain_tensors(value) if isinstance(value, Tensor) else ():
            digest.update(f"{name} {value.layout} {list(value.shape)} {part.dtype} {list(part.shape)}".encode())
            digest.update(part.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        if not isinstance(value, Tensor):
            digest.update(f"{name} {value!r}".encode())
    return digest.hexdigest()


def _fields(data: BaseData) -> list[tuple[str, Any]]:
    """Names and values; those of a typed graph as ``type/name``, besides the order of its types."""
    if not isinstance(data, HeteroData):
        return list(data.to_dict().items())
    parts: list[tuple[str, Any]] = [("types", [*data.node_types, *data.edge_types])]
    for store in data.stores:
        place = "/".join(store._key) + ":" if isinstance(store._key, tuple) else f"{store._key or ''}:"
        parts += [(f"{place}{name}" if store._key else name, value) for name, value in store.items()]
    return parts


def _plain_tensors(tensor: Tensor) -> list[Tensor]:
    """Dense tensors that make up a tensor: itself, or the indices and values of a sparse one."""
    tensor = tensor.detach()
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce()
        return [tensor.indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_csc):
        tensor = tensor.to_sparse_csr()
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor.as_subclass(Tensor)]


class BaseCache(ABC):
    """What both a :class:`Cache` and its absence, :class:`NoCache`, can do. True if it keeps anything."""

    folder: Path | None

    def get(self, kind: str, depends: Mapping[str, Any], make: Callable[[], Content]) -> Content:
        """The cached content for what it ``depends`` on, else that of ``make``, stored for the next call."""
        return self.grow(kind, depends, lambda content: True, lambda content: make())

    @abstractmethod
    def grow(
        self,
        kind: str,
        depends: Mapping[str, Any],
        enough: Callable[[Content], bool],
        make: Callable[[Content | None], Content],
    ) -> Content:
        """Like :meth:`get`, but content that is not ``enough`` is passed to ``make`` and replaced by its result."""

    @abstractmethod
    def drop(self, kind: str) -> None:
        """Removes all entries of a kind."""

    @abstractmethod
    def __bool__(self) -> bool: ...


class Cache(BaseCache):
    """A folder of safetensors files, named by the hash of what they depend on. A damaged file counts as absent."""

    folder: Path

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or data_root() / "anchors"
        files.sweep(self.folder)

    def grow(
        self,
        kind: str,
        depends: Mapping[str, Any],
        enough: Callable[[Content], bool],
        make: Callable[[Content | None], Content],
    ) -> Content:
        text = json.dumps({**depends, **environment()}, sort_keys=True)
        path = self.folder / f"{kind}-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.safetensors"
        content: Content | None = None
        if distributed.rank() == 0:
            with suppress(InputError):
                content = files.read_tensors(path)
        content = distributed.broadcast(content)  # all workers must take the same branch
        if content is not None and enough(content):
            log.debug("cache: %s read", kind)
        else:
            log.debug("cache: %s %s", kind, "is not there yet" if content is None else "is to be extended")
            content = make(content)
            if distributed.rank() == 0:
                self.write(path, content)
        return content

    def write(self, path: Path, content: Content) -> None:
        """Stores content in a file of the folder."""
        files.write_tensors(path, *content)

    def drop(self, kind: str) -> None:
        """Removes the entries of a kind: only files that are named like one and carry a valid hash."""
        for path in filter(lambda path: is_state_name(path.name), self.folder.glob(f"{kind}-*")):
            with suppress(InputError):
                files.read_tensors(path)
                path.unlink(missing_ok=True)

    def __bool__(self) -> bool:
        return True


class NoCache(BaseCache):
    """Keeps nothing: everything is computed anew."""

    folder = None

    def grow(
        self,
        kind: str,
        depends: Mapping[str, Any],
        enough: Callable[[Content], bool],
        make: Callable[[Content | None], Content],
    ) -> Content:
        return make(None)

    def drop(self, kind: str) -> None:
        pass

    def __bool__(self) -> bool:
        return False


def as_cache(cache: bool | BaseCache) -> BaseCache:
    """What a ``cache=`` argument means: the default folder (True), none (False), or the given cache."""
    if isinstance(cache, BaseCache):
        return cache
    return Cache() if cache else NoCache()
