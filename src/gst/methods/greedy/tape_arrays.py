"""Recognised models (:mod:`gst.nn.tape`) as plain arrays for the kernels, on a graph without edges."""

import sys
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.network_arrays import _float64 as float64
from gst.methods.greedy.network_arrays import _lists as lists_of
from gst.methods.greedy.tape_layout import FUNCTIONS, KINDS, LEVEL, NORMS, SCORES, TapeLayers, TapeState, TapeTrial
from gst.nn.recognise import TapeNetwork
from gst.nn.tape import Diagonal, Step, compute


@torch.no_grad()
def tape_model(
    networks: Sequence[TapeNetwork], edges: EdgeSet, wanted: list[Tensor], target: Target
) -> tuple[TapeLayers, TapeState, TapeTrial]:
    """The arrays of networks that differ in their features at most, on the nodes of ``edges`` but without any edge."""
    tape, loops = networks[0].tape.to(torch.float64), edges.loops.double()
    levels, steps = tape.levels, tape.steps
    late = [n for n, level in enumerate(levels) if level > 0]
    read = {s for n in late for s in steps[n].sources}
    stored = sorted(read.union(late), key=lambda n: (levels[n], n))
    register = {number: position for position, number in enumerate(stored)}
    widths = np.array([steps[n].width for n in stored])
    diagonals = list(dict.fromkeys(steps[n].diagonal for n in late))
    parameters = [np.zeros(0)]
    table, numbers = np.zeros((len(late), 10), np.int64), np.zeros((len(late), 2))
    for row, n in enumerate(late):
        step = steps[n]
        sources = [register[s] for s in step.sources]
        sources += [-1] * (3 - len(sources))
        at = sum(part.size for part in parameters)
        table[row] = [KINDS.index(step.kind), levels[n], *sources, register[n], at, _name(step), step.heads,
                      diagonals.index(step.diagonal)]  # fmt: skip
        numbers[row, : len(step.numbers)] = step.numbers
        parameters += [float64(t.T if t.dim() == 2 and step.kind == "linear" else t).ravel() for t in step.tensors]
    order = np.argsort(table[:, LEVEL], kind="stable")
    starts = np.cumsum(widths) - widths
    level = np.array([levels[n] for n in stored])
    begin = [int(starts[level >= depth].min(initial=widths.sum())) for depth in range(tape.depth + 2)]
    rows = [_rows(network, tape.steps, edges, stored) for network in networks]
    answers = [part[:, int(starts[register[len(steps) - 1]]) :][:, : tape.outputs] for part in rows]
    probabilities = [target.probabilities(logits.double()) for logits in wanted]
    entropy = np.stack([float64(target.entropy(logits.double())) for logits in wanted])
    layers = TapeLayers(
        depth=tape.depth + 1,
        cap=sys.maxsize,
        levels=tape.depth,
        nodes=edges.num_nodes,
        row=int(widths.sum()),
        steps=table[order],
        numbers=numbers[order],
        parameters=np.concatenate(parameters),
        at=starts,
        width=widths,
        level=level,
        begin=np.array(begin),
        itself=np.stack([float64(Diagonal.of(diagonal, loops)) for diagonal in diagonals]),
        symmetric=any(steps[n].kind == "sum" and steps[n].norm == "symmetric" for n in late),
        output=register[len(steps) - 1],
        wanted=np.stack([float64(part) for part in probabilities]),
        temperature=target.temperature,
        multilabel=target.multilabel,
        squares=target.squares,
        damped=target.damped,
        entropy=entropy,
        incoming=lists_of(edges, *edges.arcs.flip(0).cpu().numpy()),
    )
    losses = [target.loss(w.double(), z) for w, z in zip(wanted, answers, strict=True)]
    loss = np.stack([float64(part) for part in losses])
    state = TapeState(
        degree=np.zeros(edges.num_nodes),
        rows=np.concatenate([float64(part).ravel() for part in rows]),
        probability=np.stack([float64(target.probabilities(z)) for z in answers]),
        loss=loss if target.damped else loss + entropy,
    )
    trial = TapeTrial(
        ends=np.full(2, -1),
        degree=np.zeros(2),
        rows=np.zeros_like(state.rows),
        loss=np.zeros_like(state.loss),
        scratch=np.zeros(3 * max(int(widths.max()), state.probability.shape[2])),
        mark=np.full(edges.num_nodes, -1),
        first=np.zeros(1, np.int64),
        touched=np.zeros(tape.depth + 1, np.int64),
        nodes=np.zeros((tape.depth + 1, edges.num_nodes), np.int64),
        size=np.zeros(tape.depth + 1, np.int64),
    )
    return layers, state, trial


def _name(step: Step) -> int:
    if step.kind == "activate":
        return FUNCTIONS.index(step.name)
    return SCORES.index(step.score) if step.kind == "attend" else NORMS.index(step.norm)


def _rows(network: TapeNetwork, steps: tuple[Step, ...], edges: EdgeSet, stored: list[int]) -> Tensor:
    """The stored registers without any edge, [N, row]; products with the features are computed in their precision."""
    none = edges.subset(torch.zeros(edges.num_edges, dtype=torch.bool))
    rows = network.tape.rows_without_edges(network.x)
    dense = {n: row.double() for n, row in rows.items() if isinstance(row, Tensor)}
    for number, step in enumerate(steps):
        if number not in rows:
            dense[number] = compute(step, [dense[s] for s in step.sources], none)
    return torch.cat([dense[n] for n in stored], dim=1)
