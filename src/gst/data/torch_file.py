"""What ``torch.save`` writes: an archive of a pickle and of bytes. Tensors are views of bytes that are really there."""

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data.graph_store import EdgeLayout

from gst.base.memory import check_claim
from gst.data.pickles import Machine, Name, Thing, check_nesting

_BLOCK = 2**24  # bytes copied at once
_MOST_DIMENSIONS = 64  # more than torch allows
_PYG = "torch_geometric.data"
_DATA, _STORAGE = f"{_PYG}.data.Data", f"{_PYG}.storage.GlobalStorage"
_CLASSES = (_DATA, f"{_PYG}.data.DataEdgeAttr", f"{_PYG}.data.DataTensorAttr", _STORAGE)
_LAYOUT = f"{_PYG}.graph_store.EdgeLayout"
_EDGE_INDEX, _WRAPPER = "torch_geometric.edge_index.EdgeIndex", "torch._utils._rebuild_wrapper_subclass"
_LAYOUTS = {str(kind): kind for kind in (torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)}
_DTYPES = {
    "torch.FloatStorage": torch.float32,
    "torch.DoubleStorage": torch.float64,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.LongStorage": torch.int64,
    "torch.IntStorage": torch.int32,
    "torch.ShortStorage": torch.int16,
    "torch.CharStorage": torch.int8,
    "torch.ByteStorage": torch.uint8,
    "torch.BoolStorage": torch.bool,
    "torch.ComplexFloatStorage": torch.complex64,
    "torch.ComplexDoubleStorage": torch.complex128,
    "torch.storage.UntypedStorage": torch.uint8,
}
_UNTYPED = {str(dtype): dtype for dtype in (torch.uint16, torch.uint32, torch.uint64)}  # kinds without a storage


def read_torch(path: Path) -> Any:
    """The plain values and tensors of a file; of a ``Data`` the dict of its fields. A ``ValueError`` says what else."""
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no archive of torch.save; one from before PyTorch 1.6 is to be loaded and saved again")
    with zipfile.ZipFile(path) as archive:
        reader = _Reader(path, archive)
        saved = reader.run(archive.read(reader.entry("data.pkl")))
    if isinstance(saved, Thing):
        store = saved.state.get("_store")
        saved = store.state.get("_mapping") if saved.kind == _DATA and isinstance(store, Thing) else None
        if not isinstance(saved, dict):
            raise ValueError("it holds no whole Data")
    check_nesting(saved)
    return saved


class _Reader(Machine):
    """Knows what a graph of tensors needs, and nothing else."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        super().__init__()
        self.path, self.archive = path, archive
        entries = archive.infolist()
        self.entries = {entry.filename: entry for entry in entries}
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("it is compressed, torch.save does not write such files")
        if sum(entry.file_size for entry in entries) > path.stat().st_size or len(self.entries) < len(entries):
            raise ValueError("its parts overlap, torch.save does not write such files")
        pickles = [name for name in self.entries if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError("it is no archive of torch.save")
        self.folder = pickles[0].removesuffix("data.pkl")
        order = self.entries.get(f"{self.folder}byteorder")
        if order is not None and archive.read(order) != b"little":
            raise ValueError("it was saved on a big-endian machine")
        self.buffers: dict[str, Tensor] = {}
        self.claimed = 0  # bytes of all tensors: a view may repeat one row a billion times

    def entry(self, name: str) -> zipfile.ZipInfo:
        found = self.entries.get(self.folder + name)
        if found is None:
            raise ValueError(f"it has no {name[:40]}")
        return found

    def named(self, name: str) -> Name:
        if name not in _NAMES:
            raise ValueError(f"it names {name[:80]}")
        return Name(name)

    def made(self, name: str) -> Thing:
        if name not in _CLASSES:
            raise ValueError(f"it makes a {name}")
        return Thing(name)

    def called(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name not in _CALLS:
            raise ValueError(f"it calls {name}")
        return _CALLS[name](self, *arguments)

    def stored(self, *words: Any) -> Tensor:
        """The bytes of one entry of the archive, if it holds as many as are announced."""
        word, name, key, _, count = words
        if word != "storage" or not isinstance(name, Name) or name.text not in _DTYPES or not isinstance(key, str):
            raise ValueError("a storage is of an unknown kind")
        dtype, entry = _DTYPES[name.text], self.entry(f"data/{key}")
        if not _is_count(count) or count * dtype.itemsize != entry.file_size:
            raise ValueError(f"a storage of {dtype} announces another size than its {entry.file_size} bytes")
        if key not in self.buffers:
            self.buffers[key] = self._bytes(entry)
        return self.buffers[key].view(dtype)

    def _bytes(self, entry: zipfile.ZipInfo) -> Tensor:
        content = torch.empty(entry.file_size, dtype=torch.uint8)
        with self.archive.open(entry) as file:
            for start in range(0, entry.file_size, _BLOCK):
                part = file.read(min(_BLOCK, entry.file_size - start))
                content[start : start + len(part)] = torch.frombuffer(bytearray(part), dtype=torch.uint8)
        return content

    def tensor(self, storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Tensor:
        """A view that stays inside its storage."""
        if not isinstance(storage, Tensor) or not _is_count(offset) or len(_shape(size)) != len(_shape(stride)):
            raise ValueError("a tensor is not described as torch.save does")
        if len(rest) > 2 and rest[2]:
            raise ValueError("a tensor is a conjugate or a negative that was not resolved")
        last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
        if 0 not in size and last >= storage.numel():
            raise ValueError(f"a tensor of shape {list(size[:4])} reaches beyond its bytes")
        self.claimed += math.prod(size) * storage.element_size()
        check_claim(self.path, self.claimed)
        return storage.as_strided(size, stride, offset)

    def untyped(self, storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Tensor:
        """The same over plain bytes, with the kind of number said apart."""
        kind = rest[2] if len(rest) > 2 else None
        if not isinstance(storage, Tensor) or not isinstance(kind, Name) or kind.text not in _UNTYPED:
            raise ValueError("a tensor is of an unknown kind of number")
        return self.tensor(storage.view(_UNTYPED[kind.text]), offset, size, stride, *rest[:2], *rest[3:])

    def sparse(self, layout: Any, parts: Any) -> Tensor:
        """Checked for indices outside of the shape, which by itself takes no memory."""
        tensors: list[Any] = [part for part in parts if isinstance(part, Tensor)]
        if layout is torch.sparse_coo and len(tensors) == 2:
            indices, values = tensors
            return torch.sparse_coo_tensor(indices, values, _shape(parts[2]), check_invariants=True)
        if layout in (torch.sparse_csr, torch.sparse_csc) and len(tensors) == 3:
            crow, col, values = tensors
            return torch.sparse_compressed_tensor(
                crow, col, values, _shape(parts[3]), layout=layout, check_invariants=True
            )
        raise ValueError("a sparse tensor is not described as torch.save does")

    def subclass(self, rebuild: Any, kind: Any, _: Any, state: Any) -> Tensor:
        """Of an ``EdgeIndex`` the plain tensor."""
        plain = state.get("_data") if isinstance(state, dict) else None
        if rebuild != Name(_WRAPPER) or kind != Name(_EDGE_INDEX) or not isinstance(plain, Tensor):
            raise ValueError("a tensor is of an unknown class")
        return plain


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**63


def _shape(size: Any) -> tuple[int, ...]:
    if not isinstance(size, tuple) or len(size) > _MOST_DIMENSIONS or not all(map(_is_count, size)):
        raise ValueError("the shape of a tensor is none")
    return size


def _layout(name: Any) -> torch.layout:
    if not isinstance(name, str) or name not in _LAYOUTS:
        raise ValueError("a tensor has an unknown layout")
    return _LAYOUTS[name]


def _edge_layout(names: Any, name: Any) -> EdgeLayout:
    if not isinstance(name, str) or name not in names:
        raise ValueError(f"{name[:40] if isinstance(name, str) else 'something'} is not a member of an enumeration")
    return EdgeLayout(names[name])


def _attribute(kind: Any, name: Any) -> EdgeLayout:
    """How Python 3.11.0 to 3.11.3 pickle the members of an enumeration: by ``getattr``."""
    return _edge_layout(EdgeLayout.__members__ if kind == Name(_LAYOUT) else {}, name)


_CALLS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor_v2": _Reader.tensor,
    "torch._utils._rebuild_tensor_v3": _Reader.untyped,
    "torch._utils._rebuild_sparse_tensor": _Reader.sparse,
    "torch._utils._rebuild_parameter": lambda _, tensor, *rest: tensor,
    "torch._tensor._rebuild_from_type_v2": _Reader.subclass,
    "torch.serialization._get_layout": lambda _, name: _layout(name),
    "torch.Size": lambda _, size: _shape(size),
    "torch.device": lambda _, *words: None,
    "collections.OrderedDict": lambda _: {},
    _LAYOUT: lambda _, value: _edge_layout({member.value: member for member in EdgeLayout}, value),
    "__builtin__.getattr": lambda _, kind, name: _attribute(kind, name),
    "builtins.getattr": lambda _, kind, name: _attribute(kind, name),
}
_NAMES = {*_CALLS, *_CLASSES, *_DTYPES, *map(str, _DTYPES.values()), *_UNTYPED, _EDGE_INDEX, _WRAPPER}
