"""What is trained or computed once for a graph and kept on disk: anchors, topology scores, dense baselines.

The key is a hash of everything that the content depends on, the data included, so nothing stale can be found.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base import distributed
from gst.base.errors import InputError
from gst.base.versions import surroundings
from gst.storage import files
from gst.storage.paths import data_root
from gst.storage.run_folder import is_state_name

Content = tuple[dict[str, Tensor], dict[str, Any]]


def fingerprint(data: Data) -> str:
    """A hash of all that a graph holds: every tensor and every plain value, its metric among them, but not its name.

    The name chooses defaults of settings, which are part of a key themselves.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(data.to_dict().items()):
        if name == "name":
            continue
        for part in _plain_tensors(value) if isinstance(value, Tensor) else ():
            digest.update(f"{name} {value.layout} {list(value.shape)} {part.dtype} {list(part.shape)}".encode())
            digest.update(part.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        if not isinstance(value, Tensor):
            digest.update(f"{name} {value!r}".encode())
    return digest.hexdigest()


def _plain_tensors(tensor: Tensor) -> list[Tensor]:
    """A tensor as dense ones: itself, or the indices and values of a sparse one."""
    tensor = tensor.detach()
    if tensor.layout == torch.sparse_coo:
        tensor = tensor.coalesce()
        return [tensor.indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_csc):
        tensor = tensor.to_sparse_csr()
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor.as_subclass(Tensor)]


class Cache:
    """A folder of safetensors files, named by the hash of what they depend on."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or data_root() / "anchors"
        files.sweep(self.folder)

    def get(self, kind: str, depends: Mapping[str, Any], make: Callable[[], Content]) -> Content:
        """The stored content, or what ``make`` gives, stored for next time. A broken file counts as none."""
        return self.grow(kind, depends, lambda content: True, lambda content: make())

    def grow(
        self,
        kind: str,
        depends: Mapping[str, Any],
        enough: Callable[[Content], bool],
        make: Callable[[Content | None], Content],
    ) -> Content:
        """The same for content that may be too little: then ``make`` is given it, and what comes takes its place."""
        text = json.dumps({**depends, **surroundings()}, sort_keys=True)
        path = self.folder / f"{kind}-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.safetensors"
        content: Content | None = None
        if distributed.rank() == 0:
            with suppress(InputError):
                content = files.read_tensors(path)
        content = distributed.same(content)  # all workers must go the same way
        if content is None or not enough(content):
            content = make(content)
            if distributed.rank() == 0:
                self.write(path, content)
        return content

    def write(self, path: Path, content: Content) -> None:
        files.write_tensors(path, *content)

    def drop(self, kind: str) -> None:
        """Removes the entries of a kind: files that are called like one and carry the hash of one."""
        for path in filter(lambda path: is_state_name(path.name), self.folder.glob(f"{kind}-*")):
            with suppress(InputError):
                files.read_tensors(path)
                path.unlink(missing_ok=True)


class NoCache(Cache):
    """Keeps nothing."""

    def __init__(self) -> None:
        pass

    def grow(
        self,
        kind: str,
        depends: Mapping[str, Any],
        enough: Callable[[Content], bool],
        make: Callable[[Content | None], Content],
    ) -> Content:
        return make(None)
