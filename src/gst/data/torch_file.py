"""Files of ``torch.save``, an archive of a pickle and raw bytes; no tensor exceeds the bytes in the file."""

import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data.graph_store import EdgeLayout

from gst.base.memory import check_claim
from gst.data.pickles import Global, Instance, Interpreter, check_nesting

_BLOCK = 2**24  # bytes copied at once
_MAX_DIMENSIONS = 64  # more than torch allows
_PYG = "torch_geometric.data"
_DATA, _STORAGE = f"{_PYG}.data.Data", f"{_PYG}.storage.GlobalStorage"
_TYPED = f"{_PYG}.hetero_data.HeteroData"
_STORAGES = (*(f"{_PYG}.storage.{kind}Storage" for kind in ("Base", "Node", "Edge")), _STORAGE)
_ATTRIBUTES = (f"{_PYG}.graph_store.EdgeAttr", f"{_PYG}.feature_store.TensorAttr")
_CLASSES = (
    _DATA,
    _TYPED,
    *_STORAGES[:-1],
    *_ATTRIBUTES,
    f"{_PYG}.data.DataEdgeAttr",
    f"{_PYG}.data.DataTensorAttr",
    _STORAGE,
)
_LAYOUT = f"{_PYG}.graph_store.EdgeLayout"
_EDGE_INDEX, _WRAPPER = "torch_geometric.edge_index.EdgeIndex", "torch._utils._rebuild_wrapper_subclass"
_LAYOUTS = {str(layout): layout for layout in (torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)}
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
_UNTYPED = {str(dtype): dtype for dtype in (torch.uint16, torch.uint32, torch.uint64)}  # dtypes without a storage class


def read_torch(path: Path) -> Any:
    """The plain values and tensors of a file, of a ``Data`` the dict of its fields; all else is a ``ValueError``."""
    if not zipfile.is_zipfile(path):
        raise ValueError(
            "it is no archive of torch.save; load a file from before PyTorch 1.6 with torch and save it again"
        )
    with zipfile.ZipFile(path) as archive:
        reader = _Reader(path, archive)
        saved = reader.run(archive.read(reader.entry("data.pkl")))
    if isinstance(saved, Instance):
        if saved.class_name == _TYPED:
            return _checked_nesting(_typed_fields(saved))
        store = saved.state.get("_store")
        saved = store.state.get("_mapping") if saved.class_name == _DATA and isinstance(store, Instance) else None
        if not isinstance(saved, dict):
            raise ValueError("it holds no complete Data")
    check_nesting(saved)
    return saved


def _checked_nesting(saved: Any) -> Any:
    check_nesting(saved)
    return saved


def _typed_fields(saved: Instance) -> dict[Any, Any]:
    """The fields of a ``HeteroData`` as its ``to_dict`` has them: those of each type under the name of the type."""
    whole = _mapping(saved.state.get("_global_store"))
    for part in ("_node_store_dict", "_edge_store_dict"):
        stores = saved.state.get(part)
        if not isinstance(stores, dict):
            raise ValueError("it holds no complete HeteroData")
        whole |= {kind: _mapping(store) for kind, store in stores.items()}
    return whole


def _mapping(store: Any) -> dict[Any, Any]:
    found = store.state.get("_mapping") if isinstance(store, Instance) and store.class_name in _STORAGES else None
    if not isinstance(found, dict):
        raise ValueError("it holds no complete HeteroData")
    return dict(found)


class _Reader(Interpreter):
    """Allows the globals and calls that a graph of tensors needs, and nothing else."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        super().__init__()
        self.path = path
        self.archive = archive
        entries = archive.infolist()
        self.entries = {entry.filename: entry for entry in entries}
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("it is compressed, which torch.save never does")
        if sum(entry.file_size for entry in entries) > path.stat().st_size or len(self.entries) < len(entries):
            raise ValueError("its parts overlap, which torch.save never does")
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
        entry = self.entries.get(self.folder + name)
        if entry is None:
            raise ValueError(f"it has no {name[:40]}")
        return entry

    def find_global(self, name: str) -> Global:
        if name not in _GLOBALS:
            raise ValueError(f"it names {name[:80]}")
        return Global(name)

    def create(self, class_name: str) -> Instance:
        if class_name not in _CLASSES:
            raise ValueError(f"it creates a {class_name}")
        return Instance(class_name)

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name not in _CALLS:
            raise ValueError(f"it calls {name}")
        return _CALLS[name](self, *arguments)

    def persistent_load(self, *key: Any) -> Tensor:
        """The storage in one entry of the archive, if that has the declared size."""
        kind, cls, name, _, count = key
        if kind != "storage" or not isinstance(cls, Global) or cls.name not in _DTYPES or not isinstance(name, str):
            raise ValueError("a storage is of an unknown kind")
        dtype, entry = _DTYPES[cls.name], self.entry(f"data/{name}")
        if not _is_count(count) or count * dtype.itemsize != entry.file_size:
            raise ValueError(f"a storage of {dtype} declares another size than its {entry.file_size} bytes")
        if name not in self.buffers:
            self.buffers[name] = self._bytes(entry)
        return self.buffers[name].view(dtype)

    def _bytes(self, entry: zipfile.ZipInfo) -> Tensor:
        content = torch.empty(entry.file_size, dtype=torch.uint8)
        with self.archive.open(entry) as file:
            for start in range(0, entry.file_size, _BLOCK):
                part = file.read(min(_BLOCK, entry.file_size - start))
                content[start : start + len(part)] = torch.frombuffer(bytearray(part), dtype=torch.uint8)
        return content

    def tensor(self, storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Tensor:
        """A view, checked to stay inside its storage."""
        if not isinstance(storage, Tensor) or not _is_count(offset) or len(_shape(size)) != len(_shape(stride)):
            raise ValueError("a tensor is not described as torch.save does")
        if len(rest) > 2 and rest[2]:
            raise ValueError("a tensor is an unresolved conjugate or negative")
        last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
        if 0 not in size and last >= storage.numel():
            raise ValueError(f"a tensor of shape {list(size[:4])} reaches beyond its bytes")
        self.claimed += math.prod(size) * storage.element_size()
        check_claim(self.path, self.claimed)
        return storage.as_strided(size, stride, offset)

    def untyped(self, storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Tensor:
        """A view of untyped bytes, whose dtype is an extra argument."""
        dtype = rest[2] if len(rest) > 2 else None
        if not isinstance(storage, Tensor) or not isinstance(dtype, Global) or dtype.name not in _UNTYPED:
            raise ValueError("a tensor is of an unknown dtype")
        return self.tensor(storage.view(_UNTYPED[dtype.name]), offset, size, stride, *rest[:2], *rest[3:])

    def sparse(self, layout: Any, parts: Any) -> Tensor:
        """A sparse tensor, checked for indices outside its shape; the shape alone takes no memory."""
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

    def subclass(self, rebuild: Any, cls: Any, _: Any, state: Any) -> Tensor:
        """The plain tensor of an ``EdgeIndex``."""
        plain = state.get("_data") if isinstance(state, dict) else None
        if rebuild != Global(_WRAPPER) or cls != Global(_EDGE_INDEX) or not isinstance(plain, Tensor):
            raise ValueError("a tensor is of an unknown class")
        return plain


def _is_count(number: Any) -> bool:
    return type(number) is int and 0 <= number < 2**63


def _shape(size: Any) -> tuple[int, ...]:
    if not isinstance(size, tuple) or len(size) > _MAX_DIMENSIONS or not all(map(_is_count, size)):
        raise ValueError("a tensor has an invalid shape")
    return size


def _layout(name: Any) -> torch.layout:
    if not isinstance(name, str) or name not in _LAYOUTS:
        raise ValueError("a tensor has an unknown layout")
    return _LAYOUTS[name]


def _edge_layout(members: Any, name: Any) -> EdgeLayout:
    if not isinstance(name, str) or name not in members:
        raise ValueError(f"{name[:40] if isinstance(name, str) else 'something'} is not a member of an enumeration")
    return EdgeLayout(members[name])


def _attribute(cls: Any, name: Any) -> EdgeLayout:
    """A member of an enumeration by ``getattr``, as Python 3.11.0 to 3.11.3 pickle it."""
    return _edge_layout(EdgeLayout.__members__ if cls == Global(_LAYOUT) else {}, name)


_CALLS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor_v2": _Reader.tensor,
    "torch._utils._rebuild_tensor_v3": _Reader.untyped,
    "torch._utils._rebuild_sparse_tensor": _Reader.sparse,
    "torch._utils._rebuild_parameter": lambda _, tensor, *rest: tensor,
    "torch._tensor._rebuild_from_type_v2": _Reader.subclass,
    "torch.serialization._get_layout": lambda _, name: _layout(name),
    "torch.Size": lambda _, size: _shape(size),
    "torch.device": lambda _, *device: None,
    "collections.OrderedDict": lambda _: {},
    _LAYOUT: lambda _, value: _edge_layout({member.value: member for member in EdgeLayout}, value),
    "__builtin__.getattr": lambda _, cls, name: _attribute(cls, name),
    "builtins.getattr": lambda _, cls, name: _attribute(cls, name),
}
_GLOBALS = {*_CALLS, *_CLASSES, *_DTYPES, *map(str, _DTYPES.values()), *_UNTYPED, _EDGE_INDEX, _WRAPPER}
