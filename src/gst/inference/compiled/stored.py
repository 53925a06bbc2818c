"""The file of a compiled model: safetensors and JSON, sealed, and checked before a kernel reads it."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base.errors import DamagedError, InputError
from gst.inference.compiled.layers import Attention, CompiledLayer, Convolution, Operand, Rows, SparseRows
from gst.storage import files
from gst.storage.graph_file import pack_graph, unpack_graph

FORMAT = 1
NAME = "compiled.safetensors"
Content = tuple[dict[str, Tensor], dict[str, Any]]  # tensors and metadata
_KINDS: dict[str, tuple[type[CompiledLayer], tuple[str, ...]]] = {  # classes with their flags
    "convolution": (Convolution, ("sum_first", "relu", "narrow")),
    "attention": (Attention, ("elu", "narrow")),
}


def write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    files.write_tensors(path, tensors, {"format": FORMAT, **metadata})


def pack_backbone(matrix: Rows, x: Operand, layers: list[CompiledLayer], precision: str) -> Content:
    """CSR, features and weights; values that several layers share are stored once."""
    tensors = {"crow": matrix.crow, "col": matrix.col, **_pack_features(x, precision)}
    metadata: dict[str, Any] = {"kind": "backbone", "features": x.shape[1], "layers": []}
    distinct: list[Tensor] = []
    for i, layer in enumerate(layers):
        if not any(layer.values is known for known in distinct):
            tensors[f"values/{len(distinct)}"] = layer.values
            distinct.append(layer.values)
        kind = next(name for name, (cls, _) in _KINDS.items() if type(layer) is cls)
        number = next(k for k, known in enumerate(distinct) if known is layer.values)
        flags = {flag: getattr(layer, flag) for flag in _KINDS[kind][1]}
        metadata["layers"].append({"kind": kind, "values": number, **flags})
        buffers = {name: buffer for name, buffer in layer.named_buffers() if name != "values"}
        tensors |= files.flatten(f"layers/{i}", buffers)
    return tensors, metadata


def _pack_features(x: Operand, precision: str) -> dict[str, Tensor]:
    """Rounded features take half the space."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
    if isinstance(x, SparseRows):
        return {"features/crow": x.rows.crow, "features/col": x.rows.col, "features/values": x.values.to(dtype)}
    return {"features": x.to(dtype)}


def pack_own(graph: Data, model: nn.Module) -> Content:
    """The graph and the weights of an own model, not its code."""
    packed, attributes = pack_graph(graph)
    tensors = files.flatten("graph", packed) | files.flatten("model", model.state_dict())
    return tensors, {"graph": attributes, "kind": "own"}


class CheckedFile:
    """The tensors and the metadata of a file; each must be checked before it is used."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tensors, self.metadata = files.read_tensors(path)
        if self.metadata.get("format") != FORMAT or self.metadata.get("kind") not in ("backbone", "own"):
            kind = f"a compiled model of format {FORMAT}"
            raise InputError(f"{path} is not {kind}: gst export RUN --layout fast writes one")

    @property
    def is_backbone(self) -> bool:
        return self.metadata["kind"] == "backbone"

    def check(self, condition: bool, reason: str) -> None:
        if not condition:
            raise DamagedError(f"{self.path} is not a complete compiled model: {reason}")

    def tensor(self, name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        """−1 stands for any size."""
        self.check(name in self.tensors, f"it has no {name}")
        tensor = self.tensors[name]
        sizes = zip(shape, tensor.shape, strict=False)
        matches = tensor.dim() == len(shape) and all(expected in (-1, size) for expected, size in sizes)
        reason = f"{name} is {tensor.dtype} {list(tensor.shape)}, not {dtype} {list(shape)}"
        self.check(matches and tensor.dtype == dtype, reason)
        return tensor

    def permutation(self) -> Tensor:
        """The node at every position."""
        permutation = self.tensor("permutation", torch.int64, (-1,))
        complete = bool((permutation.sort().values == torch.arange(permutation.numel())).all())
        self.check(complete, "its permutation does not have every node once")
        return permutation

    def rows(self, prefix: str, rows: int, columns: int) -> Rows:
        """A CSR pattern that a kernel can follow without bounds checks."""
        crow = self.tensor(f"{prefix}crow", torch.int32, (rows + 1,))
        col = self.tensor(f"{prefix}col", torch.int32, (-1,))
        ascending = int(crow[0]) == 0 and int(crow[-1]) == col.numel() and bool((crow[1:] >= crow[:-1]).all())
        inside = col.numel() == 0 or (int(col.min()) >= 0 and int(col.max()) < columns)
        self.check(ascending and inside, f"{prefix}crow and {prefix}col are not a CSR pattern")
        return Rows(crow, col)


def read_backbone(file: CheckedFile, nodes: int, precision: str) -> tuple[Rows, Operand, nn.ModuleList]:
    """What :func:`pack_backbone` packed."""
    width: Any = file.metadata.get("features")
    described: Any = file.metadata.get("layers")
    complete = isinstance(width, int) and isinstance(described, list) and len(described) > 0
    file.check(complete, "its layers are not described")
    matrix = file.rows("", nodes, nodes)
    narrow = precision == "bfloat16"
    dtype = torch.bfloat16 if narrow else torch.float32
    x: Operand
    if "features" in file.tensors:
        x = file.tensor("features", dtype, (nodes, width))
    else:
        rows = file.rows("features/", nodes, width)
        x = SparseRows(rows, file.tensor("features/values", dtype, (rows.col.numel(),)).float(), width)
    layers: list[Any] = []
    inputs = width
    for i, description in enumerate(described):
        layer = _read_layer(file, i, description, inputs, matrix.col.numel())
        file.check(layer.narrow == narrow, "its layers have another precision")
        summable = isinstance(x, Tensor) or i > 0 or not getattr(layer, "sum_first", False)
        file.check(summable, "sparse features cannot be summed first")
        layers.append(layer)
        inputs = layer.weight.shape[1]
    if isinstance(x, Tensor) and not layers[0].only_sums:
        x = x.float()
    return matrix, x, nn.ModuleList(layers)


def _read_layer(file: CheckedFile, i: int, description: Any, inputs: int, nnz: int) -> Any:
    known = isinstance(description, dict) and description.get("kind") in _KINDS
    file.check(known, f"its layer {i} is of an unknown kind")
    cls, flags = _KINDS[description["kind"]]
    file.check(all(isinstance(description.get(flag), bool) for flag in flags), f"its layer {i} is not described")
    weight = file.tensor(f"layers/{i}/weight", torch.float32, (inputs, -1))
    outputs = weight.shape[1]
    buffers = {
        "values": file.tensor(f"values/{description.get('values')}", torch.float32, (nnz,)),
        "weight": weight,
        "bias": file.tensor(f"layers/{i}/bias", torch.float32, (outputs,)),
    }
    if cls is Attention:
        attend = file.tensor(f"layers/{i}/attend", torch.float32, (outputs, -1))
        heads = attend.shape[1] // 2
        whole = heads > 0 and attend.shape[1] == 2 * heads and outputs % heads == 0
        file.check(whole, f"its layer {i} is not divided into heads")
        buffers["attend"] = attend
    optional = {"root": (inputs, outputs), "norm_weight": (outputs,), "norm_bias": (outputs,)}
    for name in (name for name in optional if f"layers/{i}/{name}" in file.tensors):
        buffers[name] = file.tensor(f"layers/{i}/{name}", torch.float32, optional[name])
    both = ("norm_weight" in buffers) == ("norm_bias" in buffers)
    file.check(both, f"its layer {i} has an incomplete normalisation")
    return cls(**buffers, **{flag: description[flag] for flag in flags})


def read_own(file: CheckedFile, nodes: int, model: nn.Module) -> Data:
    """What :func:`pack_own` packed: the graph, and the weights into ``model``."""
    attributes: Any = file.metadata.get("graph")
    file.check(isinstance(attributes, dict), "its graph is not described")
    graph = unpack_graph(files.unflatten("graph", file.tensors), attributes, file.path)
    file.check(graph.num_nodes == nodes, "its permutation belongs to another graph")
    try:
        model.load_state_dict(files.unflatten("model", file.tensors))
    except RuntimeError as error:
        raise InputError(f"{file.path} does not fit the model: {str(error).splitlines()[-1].strip()}") from None
    return graph
