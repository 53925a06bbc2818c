"""The file of an engine: tensors and JSON with a hash, checked before a kernel reads them; nothing in it is run."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base.errors import DamagedError, InputError
from gst.inference.serving.arrays import Features, Network
from gst.inference.serving.base import Base
from gst.inference.serving.features import pack_csr, pack_dense
from gst.inference.serving.living import Living
from gst.inference.serving.rows import fixed
from gst.inference.serving.state import State
from gst.storage import files
from gst.storage.graph_file import pack_graph, unpack_graph
from gst.storage.mapped import map_tensors

FORMAT = 1
NAME = "engine.safetensors"
Content = tuple[dict[str, Tensor], dict[str, Any]]  # tensors and metadata
_NETWORK = {name: kind for name, kind in Network.__annotations__.items() if name not in ("width", "epsilon", "numbers")}


def pack_native(state: State) -> Content:
    """All that answers need, with changes folded in."""
    nodes, graph = state.num_nodes, state.graph
    start, source, weight = state.arcs.packed(nodes)
    arrays = {f"network/{name}": value for name, value in graph.network._asdict().items()}
    arrays |= {"arcs/start": start, "arcs/source": source, "own": graph.nodes.own[:, :nodes], "new_own": state.new_own}
    if state.weighted:
        arrays["arcs/weight"] = weight if weight.size else np.ones(1, np.float32)
    if state.sparse_x is not None:
        names = ("features/start", "features/column", "features/value")
        arrays |= dict(zip(names, state.sparse_x.packed(nodes), strict=True))
    else:
        arrays["features/dense"] = state.dense_rows(np.arange(nodes))
    described = {"nodes": nodes, "floor": state.floor, "products": graph.features.products.shape[0] > 0}
    tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    return tensors, {"kind": "native", **described, "version": state.version, "identity": state.identity}


def pack_living(living: Living) -> Content:
    """What later changes need."""
    base, (present, added) = living.base, living.snapshot()
    sides = 2 if base.pairs else 1
    weights = np.array(list(added.values()), np.float32).reshape(-1, sides)
    arrays = {"keys": base.keys, "rank": base.rank, "probabilities": base.probabilities, "present": present}
    arrays |= {"added": np.array(list(added), np.int64), "added_weights": weights}
    if base.weights is not None:
        arrays["weights"] = base.weights
    described = {name: getattr(base, name) for name in ("num_kept", "sparsity", "pairs", "symmetric", "multilabel")}
    tensors = {f"living/{name}": torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
    return tensors, {"living": described}


def read_living(file: "EngineFile", state: State) -> Living | None:
    """What :func:`pack_living` packed; None if the engine was made for answers alone."""
    described: Any = file.metadata.get("living")
    if described is None:
        return None
    names = {"num_kept": int, "sparsity": float, "pairs": bool, "symmetric": bool, "multilabel": bool}
    whole = isinstance(described, dict) and all(type(described.get(name)) is kind for name, kind in names.items())
    file.check(whole, "its edges are not described")
    keys, rank = (file.array(f"living/{name}", np.int64, -1) for name in ("keys", "rank"))
    ordered = rank.size == keys.size and np.array_equal(np.sort(rank), np.arange(rank.size))
    ascending = bool((np.diff(keys) > 0).all()) and 0 <= described["num_kept"] <= keys.size
    file.check(ordered and ascending and 0 <= described["sparsity"] <= 1, "its edges have no order")
    outputs, sides = int(state.graph.network.width[-1]), 2 if described["pairs"] else 1
    probabilities = file.array("living/probabilities", np.float32, -1, outputs)
    present = file.array("living/present", np.bool_, keys.size)
    added = file.array("living/added", np.int64, -1)
    weights = file.array("living/added_weights", np.float32, added.size, sides)
    for each in (keys, added):
        file.check(_inside(each, state.num_nodes), "its edges are not in the graph")
    file.check(probabilities.shape[0] <= state.num_nodes, "it has answers of more nodes than there are")
    of_arcs = file.array("living/weights", np.float32, sides, keys.size) if "living/weights" in file.arrays else None
    base = Base(keys=keys, rank=rank, weights=of_arcs, probabilities=probabilities, **described)
    living = Living(base, state)
    living.restore(present, dict(zip(added.tolist(), map(tuple, weights.tolist()), strict=True)))
    return living


def _inside(keys: np.ndarray, nodes: int) -> bool:
    """Whether both ends of all edges are nodes."""
    u, v = keys >> 32, keys & 0xFFFFFFFF
    return bool(((keys >= 0) & (u < nodes) & (v < nodes)).all())


def pack_module(graph: Data, model: nn.Module) -> Content:
    """The graph and the weights of a model, not its code."""
    packed, attributes = pack_graph(graph)
    tensors = files.flatten("graph", packed) | files.flatten("model", model.state_dict())
    return tensors, {"kind": "module", "graph": attributes}


def write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, Any]) -> None:
    files.write_tensors(path, tensors, {"format": FORMAT, "what": "engine", **metadata})


class EngineFile:
    """The content of an engine's file; every index is checked before it is used.

    Args:
        path: of the file.
        mmap: map it into memory instead of reading it.
    """

    def __init__(self, path: Path, mmap: bool) -> None:
        self.path = path
        if mmap:
            self.arrays, self.metadata = map_tensors(path)
            self.tensors: dict[str, Tensor] = {}
        else:
            self.tensors, self.metadata = files.read_tensors(path)
            self.arrays = {name: t.numpy() for name, t in self.tensors.items() if t.dtype != torch.bfloat16}
        if self.metadata.get("format") != FORMAT or self.metadata.get("what") != "engine":
            raise InputError(f"{path} is not an engine of format {FORMAT}: engine.save(path) writes one")
        self.check(self.metadata.get("kind") in ("native", "module"), "it is of an unknown kind")

    def check(self, condition: bool, reason: str) -> None:
        if not condition:
            raise DamagedError(f"{self.path} is not a complete engine: {reason}")

    def array(self, name: str, dtype: type, *shape: int) -> np.ndarray:
        """−1 stands for any size."""
        self.check(name in self.arrays, f"it has no {name}")
        array = self.arrays[name]
        same = array.ndim == len(shape) and all(e in (-1, s) for e, s in zip(shape, array.shape, strict=True))
        self.check(same and array.dtype == dtype, f"{name} is {array.dtype} {list(array.shape)}")
        return array

    def number(self, name: str, least: float) -> Any:
        value = self.metadata.get(name)
        fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= least
        self.check(fits, f"its {name} is {value!r}")
        return value

    def pointers(self, prefix: str, column: str, nodes: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
        """A CSR pattern that a kernel can follow without bounds checks."""
        start, index = (
            self.array(f"{prefix}/start", np.int64, nodes + 1),
            self.array(f"{prefix}/{column}", np.int32, -1),
        )
        whole = start[0] == 0 and start[-1] == index.size and bool((np.diff(start) >= 0).all())
        inside = index.size == 0 or (int(index.min()) >= 0 and int(index.max()) < columns)
        self.check(whole and inside, f"{prefix} is not a CSR matrix")
        return start, index

    def network(self) -> Network:
        """The layers, with all their numbers inside the array of numbers."""
        width = self.array("network/width", np.int64, -1)
        depth = width.size - 1
        fields = {name: self.array(f"network/{name}", np.int64, depth) for name in _NETWORK}
        epsilon, numbers = (
            self.array("network/epsilon", np.float32, depth),
            self.array("network/numbers", np.float32, -1),
        )
        network = Network(width=width, epsilon=epsilon, numbers=numbers, **fields)
        self.check(depth > 0 and bool((width > 0).all() and (width < 2**31).all()), "its layers have no width")
        outputs = width[1:]
        known = {"norm": 3, "activation": 3}
        self.check(all(((fields[n] >= 0) & (fields[n] < k)).all() for n, k in known.items()), "a layer is unknown")
        heads = np.maximum(fields["heads"], 1)
        self.check(bool(((fields["heads"] >= 0) & (outputs % heads == 0)).all()), "a layer is not divided into heads")
        sizes = {"weight_at": width[:-1] * outputs, "root_at": width[:-1] * outputs, "bias_at": outputs}
        sizes |= {"attend_at": 2 * outputs, "norm_at": 2 * outputs}
        for name, size in sizes.items():
            at, least = fields[name], 0 if name in ("weight_at", "bias_at") else -1
            inside = (at >= least) & ((at < 0) | (at + size <= numbers.size))
            self.check(bool(inside.all()), f"{name} does not lie in its numbers")
        self.check(bool((fields["attend_at"][fields["heads"] > 0] >= 0).all()), "a layer has no attention")
        return network

    def features(self, nodes: int, inputs: int) -> Features:
        if "features/dense" in self.arrays:
            return pack_dense(self.array("features/dense", np.float32, nodes, inputs))
        start, column = self.pointers("features", "column", nodes, inputs)
        return pack_csr(start, column, self.array("features/value", np.float32, column.size))


def read_native(file: EngineFile, features: Features | None) -> State:
    """What :func:`pack_native` packed; ``features``: others than those in the file."""
    nodes, floor = file.number("nodes", 0), file.number("floor", 0)
    file.check(isinstance(nodes, int), "it does not say how many nodes it has")
    network = file.network()
    depth = network.norm.size
    start, source = file.pointers("arcs", "source", nodes, nodes)
    weight = file.array("arcs/weight", np.float32, -1) if "arcs/weight" in file.arrays else None
    file.check(weight is None or weight.size >= max(1, source.size), "arcs have no weights")
    own = np.array(file.array("own", np.float32, depth, nodes))
    new_own = np.array(file.array("new_own", np.float32, depth))
    x = file.features(nodes, int(network.width[0])) if features is None else features
    state = State.assembled(network, fixed(start, source, weight), own, x, new_own, floor)
    state.version = file.number("version", 0)
    state.identity = str(file.metadata.get("identity"))
    if file.metadata.get("products"):
        state.tabulate()
    return state


def read_module(file: EngineFile, model: nn.Module) -> Data:
    """The graph, and the weights into ``model``."""
    attributes: Any = file.metadata.get("graph")
    file.check(isinstance(attributes, dict), "its graph is not described")
    graph = unpack_graph(files.unflatten("graph", file.tensors), attributes, file.path)
    try:
        model.load_state_dict(files.unflatten("model", file.tensors))
    except RuntimeError as error:
        raise InputError(f"{file.path} does not fit the model: {str(error).splitlines()[-1].strip()}") from None
    return graph
