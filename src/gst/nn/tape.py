r"""A trained network as a tape: a list of steps, each from rows of registers to a row, and a few along the edges.

Step r computes register r, a matrix with one row per node. Most steps are local: the row of a node depends on rows of
the same node. Three read the graph, with arcs j → i of value w_ij and the in-degree d_i = base_i + Σ_j w_ij:

    sum       U_i = Σ_j w_ij t_j P_j + q_i t_i P_i      t = 1/√d for the norm "symmetric", else 1
    scale     s_i U_i                                   s = 1/√d for "symmetric", 1/d for "mean"; 0 where d = 0
    attend    Σ_j w_ij exp(e_ij) V_j / Σ_j w_ij exp(e_ij), each node its own neighbour or not

The level of a register is the number of steps "sum" and "attend" on the longest way to it: rows of level l depend on
the nodes within l hops. q and base are a diagonal (:class:`Diagonal`). This is all that the kernels of Deploy, or an
engine that answers by node, need to know about a network.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from gst.graph.edgeset import EdgeSet
from gst.nn.features import Features, linear
from gst.sparse.csr import Pattern, row_max, row_sum, spmm

Norm = Literal["sum", "mean", "symmetric"]
Score = Literal["add", "add-first", "dot"]

ACTIVATIONS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "relu": lambda x, _: x.relu(),
    "leaky_relu": functional.leaky_relu,
    "elu": functional.elu,
    "tanh": lambda x, _: x.tanh(),
    "sigmoid": lambda x, _: x.sigmoid(),
    "gelu": lambda x, _: functional.gelu(x),
    "silu": lambda x, _: functional.silu(x),
    "softplus": lambda x, _: functional.softplus(x),
}


@dataclass(frozen=True)
class Diagonal:
    """The value of every node in its own sum, from the weight of the self-loops that the data carries.

    Attributes:
        kind: ``"fill"``: the data's self-loop, or ``value`` where it has none; ``"once"``: the same, but self-loops
            count 1 however many there are; ``"add"``: the data's and ``value``; ``"replace"``: ``value`` in any case.
        value: see ``kind``.
    """

    kind: Literal["fill", "once", "add", "replace"] = "add"
    value: float = 0.0

    def of(self, loops: Tensor) -> Tensor:
        if self.kind == "add":
            return loops + self.value
        filled = torch.full_like(loops, self.value)
        if self.kind == "replace":
            return filled
        return torch.where(loops > 0, loops if self.kind == "fill" else torch.ones_like(loops), filled)


@dataclass(frozen=True)
class Step:
    """How one register is computed; which fields a step uses depends on its kind (see :func:`_local`).

    Attributes:
        kind: input, constant, linear, affine, activate, layer_norm, unit, log_softmax, add, multiply, maximum,
            concatenate, slice; sum, scale, attend.
        sources: the registers that it reads.
        width: columns of its register.
        tensors: its parameters: (W [in, out], b) of linear, (factor, shift) of affine, (γ, β) of layer_norm, the
            matrix of constant, the vector a [heads, each] of attend with score "add-first".
        numbers: (slope) of activate, (ε) of layer_norm, (α, β) of add, (first column) of slice, (slope, scale) of
            attend.
        name: the function of activate.
        norm: of sum and scale.
        diagonal: of sum and scale; of attend: q is the weight with which a node is its own neighbour.
        heads: of attend.
        score: of attend, e_ij from the registers (query, key, value): LeakyReLU(query_i + key_j) for each head;
            a·LeakyReLU(query_i + key_j), "add-first"; or query_i·key_j · scale, "dot".
    """

    kind: str
    sources: tuple[int, ...] = ()
    width: int = 0
    tensors: tuple[Tensor, ...] = ()
    numbers: tuple[float, ...] = ()
    name: str = ""
    norm: Norm = "sum"
    diagonal: Diagonal = field(default_factory=Diagonal)
    heads: int = 0
    score: Score = "add"

    @property
    def is_hop(self) -> bool:
        """Whether a change of a node's row reaches its neighbours."""
        return self.kind in ("sum", "attend")


@dataclass(frozen=True)
class Tape:
    """The steps of a network, in order; the first is the input, the last the output.

    Attributes:
        steps: one per register.
        weighted: whether arcs count with the ``edge_weight`` of the data, instead of with 1 per column.
    """

    steps: tuple[Step, ...]
    weighted: bool = False

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The level of each register."""
        levels: list[int] = []
        for step in self.steps:
            levels.append(max([levels[s] for s in step.sources], default=0) + step.is_hop)
        return tuple(levels)

    @property
    def depth(self) -> int:
        """The number of hops from which an answer can change."""
        return self.levels[-1]

    @property
    def outputs(self) -> int:
        return self.steps[-1].width

    def rows_without_edges(self, x: Features) -> dict[int, Features]:
        """The registers of level 0, by number: what does not depend on the edges."""
        rows: dict[int, Features] = {}
        for number, step in enumerate(self.steps):
            if self.levels[number] == 0:
                rows[number] = x if step.kind == "input" else compute(step, [rows[s] for s in step.sources])
        return rows

    def run(self, x: Features, edges: EdgeSet, edge_values: Tensor | None = None) -> Tensor:
        """The output for all nodes, on these edges, each with its value (None: 1)."""
        rows: list[Features] = []
        for step in self.steps:
            rows.append(
                x if step.kind == "input" else compute(step, [rows[s] for s in step.sources], edges, edge_values)
            )
        output = rows[-1]
        assert isinstance(output, Tensor)
        return output

    def to(self, kind: torch.device | torch.dtype) -> "Tape":
        """A copy on another device or in another precision."""
        steps = (replace(step, tensors=tuple(t.to(kind) for t in step.tensors)) for step in self.steps)
        return replace(self, steps=tuple(steps))


def compute(
    step: Step, sources: list[Features], edges: EdgeSet | None = None, edge_values: Tensor | None = None
) -> Tensor:
    """One register on all nodes; ``edges`` are needed by sum, scale and attend."""
    if step.kind not in ("sum", "scale", "attend"):
        return _local(step, sources)
    assert edges is not None
    dense = [x for x in sources if isinstance(x, Tensor)]
    assert len(dense) == len(sources), "the features themselves are summed: they must be dense"
    return along_edges(step, dense, edges, edge_values)


def _local(step: Step, sources: list[Features]) -> Tensor:
    """A row of a node from rows of the same node."""
    first = sources[0] if sources else None
    if step.kind == "constant":
        return step.tensors[0]
    if step.kind == "linear":
        assert first is not None
        return linear(first, step.tensors[0]) + step.tensors[1]
    assert isinstance(first, Tensor)
    match step.kind:
        case "affine":
            return first * step.tensors[0] + step.tensors[1]
        case "activate":
            return ACTIVATIONS[step.name](first, step.numbers[0])
        case "layer_norm":
            return functional.layer_norm(first, (step.width,), step.tensors[0], step.tensors[1], step.numbers[0])
        case "unit":
            return functional.normalize(first, dim=-1)
        case "log_softmax":
            return first.log_softmax(-1)
        case "slice":
            start = int(step.numbers[0])
            return first[:, start : start + step.width]
    second = sources[1]
    assert isinstance(second, Tensor)
    match step.kind:
        case "add":
            return step.numbers[0] * first + step.numbers[1] * second
        case "multiply":
            return first * second
        case "maximum":
            return torch.maximum(first, second)
    assert step.kind == "concatenate", step.kind
    return torch.cat([first, second], dim=1)


def along_edges(step: Step, sources: list[Tensor], edges: EdgeSet, edge_values: Tensor | None = None) -> Tensor:
    """A step "sum", "scale" or "attend" on all nodes."""
    adjacency, dtype = edges.adjacency, sources[-1].dtype
    diagonal = step.diagonal.of(edges.loops.to(dtype))
    values = adjacency.values(edge_values, diagonal, dtype)
    pattern = adjacency.pattern
    if step.kind == "attend":
        return attend(step, sources, pattern, values)
    if step.norm == "sum":
        return spmm(pattern, values, sources[0])
    degree = row_sum(pattern, values)
    if step.kind == "sum":
        sent = sources[0] if step.norm == "mean" else sources[0] * inverse_degree(degree).sqrt().unsqueeze(1)
        return spmm(pattern, values, sent)
    scale = inverse_degree(degree)
    return sources[0] * (scale if step.norm == "mean" else scale.sqrt()).unsqueeze(1)


def inverse_degree(degree: Tensor) -> Tensor:
    """1/d, and 0 where nothing comes in."""
    return torch.where(degree > 0, 1 / degree, 0.0)


def attend(step: Step, sources: list[Tensor], pattern: Pattern, values: Tensor) -> Tensor:
    """A step "attend" on the entries of a matrix: rows are targets, which are the first columns, columns sources."""
    query, key, value = sources
    slope = step.numbers[0]
    i, j, heads = pattern.row, pattern.col, step.heads
    if step.score == "add":
        logits = functional.leaky_relu(query[i] + key[j], slope)
    elif step.score == "dot":
        logits = (query[i] * key[j]).view(i.numel(), heads, -1).sum(-1) * step.numbers[1]
    else:
        logits = functional.leaky_relu(query[i] + key[j], slope).view(i.numel(), heads, -1)
        logits = (logits * step.tensors[0]).sum(-1)
    present = values.unsqueeze(1)
    top = row_max(pattern, logits.masked_fill(present == 0, -torch.inf))
    top = torch.where(top.isfinite(), top, 0.0)
    weight = present * (logits - top[i]).clamp(max=60).exp()
    total = row_sum(pattern, weight)
    weight = weight / torch.where(total > 0, total, 1.0)[i]
    by_head = value.view(value.shape[0], heads, -1).unbind(1)
    return torch.cat([spmm(pattern, w, v) for w, v in zip(weight.unbind(1), by_head, strict=True)], dim=1)
