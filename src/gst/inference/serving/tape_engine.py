"""Answers by node of recognised models: their tape, run on the receptive field without PyG or autograd."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.inference.serving.arrays import Rows
from gst.inference.serving.engine import Ids, Reads, as_ids
from gst.inference.serving.field import receptive_field
from gst.inference.serving.module_engine import ModuleEngine
from gst.inference.serving.rows import fixed
from gst.nn.features import Features, SparseFeatures
from gst.nn.recognise import TapeNetwork
from gst.nn.tape import Step, attend, compute, inverse_degree
from gst.sparse.csr import Pattern, spmm


class TapeEngine(ModuleEngine):
    """Runs the steps of a tape on the nodes within as many arcs as the tape has hops; degrees are known beforehand."""

    native = True

    def __init__(self, model: nn.Module, graph: Data, network: TapeNetwork) -> None:
        super().__init__(model, graph)
        self.tape, self.x = network.tape, network.x
        edges = network.counted(self.edges)
        neighbours = edges.neighbours
        self._arcs: Rows = fixed(neighbours.start, neighbours.source, neighbours.weight)
        sums = np.diff(neighbours.start).astype(np.float32)
        if neighbours.weight is not None:
            ids = np.repeat(np.arange(self.num_nodes), np.diff(neighbours.start))
            sums = np.bincount(ids, neighbours.weight, self.num_nodes).astype(np.float32)
        self._own = {each: each.of(edges.loops) for each in {step.diagonal for step in self.tape.steps}}
        self._inverse = {each: inverse_degree(torch.from_numpy(sums) + own) for each, own in self._own.items()}
        self.hops = self.tape.depth

    def _prepare(self) -> None:
        """Nothing to try: recognition has compared the answers."""

    @torch.inference_mode()
    def __call__(self, nodes: Ids, x: Any = None) -> Tensor:
        ids = as_ids(nodes)
        given = None if x is None else torch.from_numpy(self.given(ids, x))
        self._check(ids)
        if ids.size == 0:
            return self(0)[:0]
        field = _Field(ids, self._arcs, self.tape.depth, self.num_nodes)
        registers: list[Features] = []
        for step, level in zip(self.tape.steps, self.tape.levels, strict=True):
            if step.kind == "input":
                registers.append(self._input(field, given))
            elif step.kind == "constant":
                registers.append(step.tensors[0][field.order[: field.rows(level)]])
            else:
                registers.append(self._register(step, level, registers, field))
        output = registers[-1]
        assert isinstance(output, Tensor)
        return output[field.position]

    def _register(self, step: Step, level: int, registers: list[Features], field: "_Field") -> Tensor:
        """One register, for the nodes at which it may be needed."""
        rows = field.rows(level)
        if not step.is_hop:
            sources = [_first(registers[source], rows) for source in step.sources]
            if step.kind != "scale":
                return compute(step, sources)
            assert isinstance(sources[0], Tensor)
            scale = self._inverse[step.diagonal][field.order[:rows]]
            return sources[0] * (scale if step.norm == "mean" else scale.sqrt()).unsqueeze(1)
        pattern, values = field.matrix(level, self._own[step.diagonal])
        read: list[Any] = [_first(registers[source], pattern.shape[1]) for source in step.sources]
        if step.kind == "attend":
            return attend(step, read, pattern, values)
        if step.norm == "symmetric":
            read[0] = read[0] * self._inverse[step.diagonal][field.order[: pattern.shape[1]]].sqrt().unsqueeze(1)
        return spmm(pattern, values, read[0])

    def _input(self, field: "_Field", given: Tensor | None) -> Features:
        """The features of the field, those of ``given`` replaced."""
        if isinstance(self.x, SparseFeatures) and given is None:
            return _sparse_rows(self.x, field.order)
        sparse = isinstance(self.x, SparseFeatures)
        x = _dense(_sparse_rows(self.x, field.order)) if sparse else self.x[field.order]  # type: ignore[arg-type,index]
        if given is not None:
            x[field.position] = given
        return x

    def reads(self, nodes: Ids) -> Reads:
        ids = as_ids(nodes)
        self._check(ids)
        field = _Field(ids, self._arcs, self.tape.depth, self.num_nodes)
        if isinstance(self.x, SparseFeatures):
            crow = self.x.pattern.crow
            size = 8 * int((crow[field.order + 1] - crow[field.order]).sum())
        else:
            size = 4 * self.inputs * field.order.numel()
        return Reads(field.order.numel(), field.arcs, size + 4 * field.arcs + 24 * field.order.numel())


class _Field:
    """A receptive field, level by level."""

    def __init__(self, ids: np.ndarray, arcs: Rows, depth: int, num_nodes: int) -> None:
        mark = np.full(num_nodes, -1, np.int32)
        position, order, self._sizes, self._start, column, weight = receptive_field(ids, arcs, depth, mark)
        self.position, self.order = torch.from_numpy(position), torch.from_numpy(order)
        self._column, self._weight, self._depth = torch.from_numpy(column).long(), torch.from_numpy(weight), depth
        self.arcs = int(self._start[self._sizes[depth - 1]]) if depth else 0

    def rows(self, level: int) -> int:
        """How many nodes have a register of this level."""
        return int(self._sizes[self._depth - level])

    def matrix(self, level: int, own: Tensor) -> tuple[Pattern, Tensor]:
        """The entries that registers of this level are summed from: of each row the arcs, then the node itself."""
        rows, columns = self.rows(level), self.rows(level - 1)
        start = torch.from_numpy(self._start[: rows + 1])
        ids, entries = torch.arange(rows), int(start[-1])
        row = torch.repeat_interleave(ids, start.diff())
        arc = torch.arange(entries) + row  # every row before has one entry more: its own
        last = start[1:] + ids
        col, values = torch.empty(entries + rows, dtype=torch.long), torch.ones(entries + rows)
        col[arc], col[last] = self._column[:entries], ids
        if self._weight.numel():
            values[arc] = self._weight[:entries]
        values[last] = own[self.order[:rows]]
        by_row = torch.repeat_interleave(ids, start.diff() + 1)
        return Pattern(by_row, col, (rows, columns)), values


def _first(x: Features, rows: int) -> Features:
    """The first rows; of sparse features all, which linear steps multiply."""
    if isinstance(x, Tensor):
        return x[:rows]
    entries = int(x.pattern.crow[rows])
    return SparseFeatures(
        Pattern(x.pattern.row[:entries], x.pattern.col[:entries], (rows, x.shape[1])), x.values[:entries]
    )


def _sparse_rows(x: SparseFeatures, nodes: Tensor) -> SparseFeatures:
    """The rows of these nodes, in any order."""
    start = x.pattern.crow[nodes]
    count = x.pattern.crow[nodes + 1] - start
    row = torch.repeat_interleave(torch.arange(nodes.numel()), count)
    entries = torch.arange(row.numel()) + (start - count.cumsum(0) + count)[row]
    return SparseFeatures(Pattern(row, x.pattern.col[entries], (nodes.numel(), x.shape[1])), x.values[entries])


def _dense(x: SparseFeatures) -> Tensor:
    dense = torch.zeros(x.shape)
    dense[x.pattern.row, x.pattern.col] = x.values
    return dense
