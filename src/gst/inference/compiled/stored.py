"""A compiled model in one file: safetensors with JSON beside it, sealed, checked before a kernel sees it."""

from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gst.base.arguments import as_path
from gst.base.errors import DamagedError, InputError
from gst.inference.compiled.layers import Attention, Convolution, Operand, Rows, SparseRows
from gst.inference.compiled.model import PRECISIONS, Compiled, CompiledBackbone, CompiledModel, only_summed
from gst.inference.compiled.orders import ORDERS
from gst.storage import files
from gst.storage.graph_file import pack_graph, unpack_graph

FORMAT = 1
NAME = "compiled.safetensors"
_KINDS: dict[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    "convolution": (Convolution, ("sum_first", "relu", "narrow")),
    "attention": (Attention, ("elu", "narrow")),
}


def save_compiled(compiled: Compiled, path: str | PathLike[str]) -> Path:
    """Writes permutation, CSR, features and weights; of an own model the weights, not the code."""
    words: dict[str, Any] = {
        "format": FORMAT,
        "layout": compiled.layout,
        "precision": compiled.precision,
        "trials": compiled.trials,
    }
    tensors = {"permutation": compiled.permutation}
    if isinstance(compiled, CompiledBackbone):
        tensors |= {"crow": compiled.matrix.crow, "col": compiled.matrix.col, **_pack_features(compiled)}
        distinct: list[Tensor] = []
        words |= {"kind": "backbone", "features": compiled.x.shape[1], "layers": []}
        layers: list[Any] = list(compiled.layers)
        for i, layer in enumerate(layers):
            if not any(layer.values is known for known in distinct):
                tensors[f"values/{len(distinct)}"] = layer.values
                distinct.append(layer.values)
            kind = next(name for name, (cls, _) in _KINDS.items() if type(layer) is cls)
            number = next(k for k, known in enumerate(distinct) if known is layer.values)
            flags = {flag: getattr(layer, flag) for flag in _KINDS[kind][1]}
            words["layers"].append({"kind": kind, "values": number, **flags})
            parts = {name: part for name, part in layer.named_buffers() if name != "values"}
            tensors |= files.flatten(f"layers/{i}", parts)
    elif isinstance(compiled, CompiledModel):
        packed, words["graph"] = pack_graph(compiled.graph)
        tensors |= files.flatten("graph", packed) | files.flatten("model", compiled.model.state_dict())
        words["kind"] = "own"
    target = as_path("path", path)
    files.write_tensors(target, tensors, words)
    return target


def load_compiled(path: str | PathLike[str], model: nn.Module | None = None) -> Compiled:
    """Reads what :func:`save_compiled` wrote, from a stranger too: no code in it is run.

    ``model`` receives the weights of a file with an own model, and is what such a file needs to be called.
    """
    place = as_path("path", path)
    tensors, words = files.read_tensors(place)
    if words.get("format") != FORMAT or words.get("kind") not in ("backbone", "own"):
        raise InputError(f"{place} is no compiled model of format {FORMAT}: gst export RUN --layout fast writes one")
    check = _Checked(place, tensors)
    named = {"layout": words.get("layout"), "precision": words.get("precision")}
    check(named["layout"] in ORDERS and named["precision"] in PRECISIONS, "its layout or precision is unknown")
    order = check.tensor("permutation", torch.int64, (-1,))
    nodes = order.numel()
    check(bool((order.sort().values == torch.arange(nodes)).all()), "its permutation is none")
    build = _read_backbone if words["kind"] == "backbone" else _read_own
    found = build(check, words, order, named, model)
    check(isinstance(words.get("trials"), dict), "its trials are no table")
    found.trials = words["trials"]
    return found


class _Checked:
    """Tensors of a file, each looked at before it is used."""

    def __init__(self, path: Path, tensors: dict[str, Tensor]) -> None:
        self.path, self.tensors = path, tensors

    def __call__(self, fine: bool, reason: str) -> None:
        if not fine:
            raise DamagedError(f"{self.path} is not a whole compiled model: {reason}")

    def tensor(self, name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        """−1 stands for any size."""
        self(name in self.tensors, f"it has no {name}")
        found = self.tensors[name]
        fits = found.dim() == len(shape) and all(w in (-1, s) for w, s in zip(shape, found.shape, strict=False))
        self(fits and found.dtype == dtype, f"{name} is {found.dtype} {list(found.shape)}, not {dtype} {list(shape)}")
        return found

    def rows(self, prefix: str, rows: int, columns: int) -> Rows:
        """A CSR pattern that a kernel may follow without looking."""
        crow = self.tensor(f"{prefix}crow", torch.int32, (rows + 1,))
        col = self.tensor(f"{prefix}col", torch.int32, (-1,))
        whole = int(crow[0]) == 0 and int(crow[-1]) == col.numel() and bool((crow[1:] >= crow[:-1]).all())
        inside = col.numel() == 0 or (int(col.min()) >= 0 and int(col.max()) < columns)
        self(whole and inside, f"{prefix}crow and {prefix}col do not fit together")
        return Rows(crow, col)


def _pack_features(compiled: CompiledBackbone) -> dict[str, Tensor]:
    """Rounded numbers in the half of the space that holds them."""
    kind = torch.bfloat16 if compiled.precision == "bfloat16" else torch.float32
    if isinstance(compiled.x, SparseRows):
        rows, values = compiled.x.rows, compiled.x.values
        return {"features/crow": rows.crow, "features/col": rows.col, "features/values": values.to(kind)}
    return {"features": compiled.x.to(kind)}


def _read_backbone(
    check: _Checked, words: dict[str, Any], order: Tensor, named: Any, model: nn.Module | None
) -> Compiled:
    if model is not None:
        raise InputError(f"{check.path} holds its whole network: no model is to be given")
    nodes = order.numel()
    width: Any = words.get("features")
    described: Any = words.get("layers")
    check(isinstance(width, int) and isinstance(described, list) and len(described) > 0, "its layers are not described")
    matrix = check.rows("", nodes, nodes)
    narrow = named["precision"] == "bfloat16"
    kind = torch.bfloat16 if narrow else torch.float32
    x: Operand
    if "features" in check.tensors:
        x = check.tensor("features", kind, (nodes, width))
    else:
        rows = check.rows("features/", nodes, width)
        x = SparseRows(rows, check.tensor("features/values", kind, (rows.col.numel(),)).float(), width)
    layers, inputs = nn.ModuleList(), width
    for i, words_of in enumerate(described):
        layer = _read_layer(check, i, words_of, inputs, matrix.col.numel())
        check(layer.narrow == narrow, "its layers are of another precision")
        check(
            isinstance(x, Tensor) or i > 0 or not getattr(layer, "sum_first", False), "sparse features are not summed"
        )
        layers.append(layer)
        inputs = layer.weight.shape[1]
    if isinstance(x, Tensor) and not only_summed(layers[0]):
        x = x.float()
    return CompiledBackbone(order, matrix, x, layers, **named)


def _read_layer(check: _Checked, i: int, words: Any, inputs: int, nnz: int) -> Any:
    check(isinstance(words, dict) and words.get("kind") in _KINDS, f"its layer {i} is of an unknown kind")
    cls, flags = _KINDS[words["kind"]]
    check(all(isinstance(words.get(flag), bool) for flag in flags), f"its layer {i} is not described")
    values = check.tensor(f"values/{words.get('values')}", torch.float32, (nnz,))
    weight = check.tensor(f"layers/{i}/weight", torch.float32, (inputs, -1))
    outputs = weight.shape[1]
    parts = {"values": values, "weight": weight, "bias": check.tensor(f"layers/{i}/bias", torch.float32, (outputs,))}
    if cls is Attention:
        attend = check.tensor(f"layers/{i}/attend", torch.float32, (outputs, -1))
        heads = attend.shape[1] // 2
        check(heads > 0 and attend.shape[1] == 2 * heads and outputs % heads == 0, f"layer {i} has no whole heads")
        parts["attend"] = attend
    more = {"root": (inputs, outputs), "norm_weight": (outputs,), "norm_bias": (outputs,)}
    for name in (name for name in more if f"layers/{i}/{name}" in check.tensors):
        parts[name] = check.tensor(f"layers/{i}/{name}", torch.float32, more[name])
    check(("norm_weight" in parts) == ("norm_bias" in parts), f"layer {i} has half a normalisation")
    return cls(**parts, **{flag: words[flag] for flag in flags})


def _read_own(check: _Checked, words: dict[str, Any], order: Tensor, named: Any, model: nn.Module | None) -> Compiled:
    if model is None:
        raise InputError(f"{check.path} holds the weights of an own model: give it to load_compiled(path, model=…)")
    check(isinstance(words.get("graph"), dict), "its graph is not described")
    graph = unpack_graph(files.unflatten("graph", check.tensors), words["graph"], check.path)
    check(graph.num_nodes == order.numel(), "its permutation is of another graph")
    try:
        model.load_state_dict(files.unflatten("model", check.tensors))
    except RuntimeError as error:
        raise InputError(f"{check.path} does not fit the model: {str(error).splitlines()[-1].strip()}") from None
    return CompiledModel(order, graph, model, **named)
