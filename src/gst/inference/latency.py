r"""Measured inference time of the dense and the sparse graph in one run, beside the most that was to be had.

All programs are compiled (:mod:`gst.inference.compiled`), so that they differ in nothing but edges and layout, and take turns, so
that a busy machine disturbs all alike. The limit is Amdahl's: of the dense graph's time T, in the data's own order,
T₀ remains when A has no entries at all. With p = 1 − T₀/T and r the share of the entries of A that stay, arcs and
diagonal,

.. math:: \text{limit} = \frac{1}{(1 − p) + p·r}

A better layout is not in that model: it can pass the limit.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn
from torch_geometric.data import Data

from gst.graph.edgeset import EdgeSet
from gst.inference.compiled import Compiled, compile_model
from gst.inference.compiled.model import CompiledBackbone
from gst.inference.cost import amdahl_limit, count_macs, paper_macs
from gst.nn.backbones import Backbone
from gst.nn.features import as_features

WARM = 3  # rounds before the clock counts


Times = dict[str, list[tuple[float, float]]]  # of every program: milliseconds on the wall and of the processor


def take_turns(programs: Mapping[str, Callable[[], Any]], repeats: int) -> Times:
    """Times of every program in every round.

    Every other round goes backwards: on a busy machine whoever comes first in a slice of time would always be ahead.
    """
    times: Times = {name: [] for name in programs}
    for round_number in range(repeats + WARM):
        for name, program in list(programs.items())[:: 1 if round_number % 2 else -1]:
            start, busy = time.perf_counter(), time.process_time()
            program()
            if round_number >= WARM:
                times[name].append((1000 * (time.perf_counter() - start), 1000 * (time.process_time() - busy)))
    return times


def summary(times: list[tuple[float, float]]) -> dict[str, float]:
    """Median and quartiles; the median of the processor's time beside it, which waiting for a turn does not touch."""
    wall, busy = zip(*times, strict=True)
    low, middle, high = statistics.quantiles(wall, n=4, method="inclusive") if len(wall) > 1 else wall * 3
    return {"ms": middle, "low_ms": low, "high_ms": high, "cpu_ms": statistics.median(busy)}


def inference_times(model: nn.Module, dense: Data, sparse: Data, repeats: int = 30) -> dict[str, Any]:
    """Median milliseconds of a full-graph forward pass on both graphs, in the data's own order, and their ratio."""
    x = as_features(dense.x.cpu()) if isinstance(model, Backbone) else None
    graphs = {"dense": dense, "sparse": sparse}
    programs = {name: compile_model(model, graph, "natural", x=x) for name, graph in graphs.items()}
    before, after = (summary(taken)["ms"] for taken in take_turns(programs, repeats).values())
    return {"dense_ms": before, "sparse_ms": after, "speedup": before / after, "repeats": repeats}


def latency(
    model: nn.Module,
    dense: Data,
    sparse: Data,
    layout: str = "auto",
    features: str = "float32",
    repeats: int = 30,
) -> dict[str, Any]:
    """Times, MACs and speed-ups of dense, sparse, and sparse in the better layout; and the limit.

    ``dense`` and ``sparse`` are in the data's own order and in float32; ``layout`` and ``features`` are the third's.
    """
    edges = EdgeSet.from_edge_index(sparse.edge_index, int(sparse.num_nodes), sparse.get("edge_weight"))
    programs: dict[str, Compiled] = {
        "dense": compile_model(model, dense, "natural"),
        "sparse": compile_model(model, sparse, "natural", edges=edges),
        "reordered": compile_model(model, sparse, layout, features, edges=edges),
    }
    taken = take_turns({**programs, "no_edges": programs["dense"].without_edges()}, repeats)
    rows: dict[str, dict[str, Any]] = {name: summary(times) for name, times in taken.items()}
    entries = [_entries(programs[name], graph) for name, graph in (("dense", dense), ("sparse", sparse))]
    kept, x = entries[1] / entries[0], as_features(dense.x) if isinstance(model, Backbone) else None
    for name, program in programs.items():
        nnz = entries[0 if name == "dense" else 1]
        rows[name] |= {"entries": nnz, "layout": program.layout}
        if isinstance(model, Backbone) and x is not None:
            macs = count_macs(model, x, nnz)
            rows[name] |= {"macs": macs.total, "macs_dense_part": macs.dense, "macs_sparse_part": macs.sparse}
    found = {
        **rows,
        "layout": programs["reordered"].layout,
        "layouts_tried_ms": programs["reordered"].trials,
        "features": features,
        "entries_kept": kept,
        **_speedups(rows, kept, "ms"),
        "cpu": _speedups(rows, kept, "cpu_ms"),
        "repeats": repeats,
    }
    if isinstance(model, Backbone):
        removed = 1 - sparse.num_edges / dense.num_edges
        nodes = int(dense.num_nodes)
        found["paper_macs"] = {"dense": paper_macs(model, nodes), "sparse": paper_macs(model, nodes, removed)}
    return found


def _speedups(rows: Mapping[str, Mapping[str, Any]], kept: float, clock: str) -> dict[str, Any]:
    """Speed-ups by one clock, beside the limit by the same clock."""
    share = max(0.0, 1 - rows["no_edges"][clock] / rows["dense"][clock])
    limit = amdahl_limit(share, kept)
    speedup = {name: rows["dense"][clock] / rows[name][clock] for name in ("sparse", "reordered")}
    of_limit = {name: value / limit for name, value in speedup.items()}
    return {"edge_share": share, "limit": limit, "speedup": speedup, "share_of_limit": of_limit}


def _entries(program: Compiled, graph: Data) -> int:
    return program.nnz if isinstance(program, CompiledBackbone) else graph.num_edges + int(graph.num_nodes)
