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

from gst import artifact, distributed
from gst.data.roots import data_root
from gst.errors import InputError
from gst.settings import PAPER_ONLY, Settings
from gst.version import __version__

Content = tuple[dict[str, Tensor], dict[str, Any]]

# settings that the training on the full graph does not see
_SPARSE_ONLY = {"recipe", "sparse_epochs", "turns", *PAPER_ONLY}


def anchor_settings(settings: Settings) -> dict[str, Any]:
    """The settings an anchor depends on."""
    return {key: value for key, value in settings.model_dump().items() if key not in _SPARSE_ONLY}


def fingerprint(data: Data) -> str:
    """A hash of graph, features, labels and split."""
    digest = hashlib.blake2b(digest_size=16)
    for name in ("edge_index", "edge_weight", "x", "y", "train_mask", "val_mask", "test_mask"):
        tensor = data.get(name)
        if isinstance(tensor, Tensor):
            digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


class Cache:
    """A folder of safetensors files, named by the hash of what they depend on."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or data_root() / "anchors"
        artifact.sweep(self.folder, seconds=86_400)  # others may be writing theirs at this moment

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
        # summation order, hence the last bits, depend on library and thread count
        everything = {**depends, "gst": __version__, "torch": torch.__version__, "threads": torch.get_num_threads()}
        text = json.dumps(everything, sort_keys=True)
        path = self.folder / f"{kind}-{hashlib.blake2b(text.encode(), digest_size=16).hexdigest()}.safetensors"
        content: Content | None = None
        if distributed.rank() == 0:
            with suppress(InputError):
                content = artifact.read_tensors(path)
        content = distributed.same(content)  # all workers must go the same way
        if content is None or not enough(content):
            content = make(content)
            if distributed.rank() == 0:
                artifact.write_tensors(path, *content)
        return content


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
