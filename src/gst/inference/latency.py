r"""Measured inference times of the dense and the sparse graph in one run, and the largest speed-up to be expected.

All programs are compiled (:mod:`gst.inference.compiled`), so that they differ only in edges and layout, and take turns,
so that other load affects all alike. The limit is Amdahl's: of the time T of the dense graph, in the order of the data,
T₀ remains when A has no entries at all. With p = 1 − T₀/T and r the share of the entries of A, arcs and diagonal, that
are kept,

.. math:: \text{limit} = \frac{1}{(1 − p) + p·r}

A better layout is not part of that model: it can exceed the limit.
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

WARM = 3  # rounds that are not timed

Times = dict[str, list[tuple[float, float]]]  # by program: wall-clock and CPU milliseconds of every round


def take_turns(programs: Mapping[str, Callable[[], Any]], repeats: int) -> Times:
    """Times of every program in every round.

    Every other round runs in reverse order: on a busy machine the first program in a time slice has an advantage.
    """
    times: Times = {name: [] for name in programs}
    for round_number in range(repeats + WARM):
        for name, program in list(programs.items())[:: 1 if round_number % 2 else -1]:
            wall, cpu = time.perf_counter(), time.process_time()
            program()
            if round_number >= WARM:
                times[name].append((1000 * (time.perf_counter() - wall), 1000 * (time.process_time() - cpu)))
    return times


def summary(times: list[tuple[float, float]]) -> dict[str, float]:
    """Median and quartiles of the wall-clock time, and the median CPU time, which does not include waiting."""
    wall, cpu = zip(*times, strict=True)
    low, middle, high = statistics.quantiles(wall, n=4, method="inclusive") if len(wall) > 1 else wall * 3
    return {"ms": middle, "low_ms": low, "high_ms": high, "cpu_ms": statistics.median(cpu)}


def inference_times(model: nn.Module, dense: Data, sparse: Data, repeats: int = 30) -> dict[str, Any]:
    """Median milliseconds of a full-graph forward pass on both graphs, in the order of the data, and their ratio."""
    x = as_features(dense.x.cpu()) if isinstance(model, Backbone) else None
    graphs = {"dense": dense, "sparse": sparse}
    programs = {name: compile_model(model, graph, "natural", x=x) for name, graph in graphs.items()}
    before, after = (summary(times)["ms"] for times in take_turns(programs, repeats).values())
    return {"dense_ms": before, "sparse_ms": after, "speedup": before / after, "repeats": repeats}


def latency(
    model: nn.Module,
    dense: Data,
    sparse: Data,
    layout: str = "auto",
    features: str = "float32",
    repeats: int = 30,
) -> dict[str, Any]:
    """Times, MACs and speed-ups of the dense, the sparse and the reordered sparse graph; and the limit.

    The first two are timed in the order of the data and in float32, the third with ``layout`` and ``features``.
    """
    edges = EdgeSet.from_edge_index(sparse.edge_index, int(sparse.num_nodes), sparse.get("edge_weight"))
    programs: dict[str, Compiled] = {
        "dense": compile_model(model, dense, "natural"),
        "sparse": compile_model(model, sparse, "natural", edges=edges),
        "reordered": compile_model(model, sparse, layout, features, edges=edges),
    }
    measured = take_turns({**programs, "no_edges": programs["dense"].without_edges()}, repeats)
    rows: dict[str, dict[str, Any]] = {name: summary(times) for name, times in measured.items()}
    entries = [_entries(programs[name], graph) for name, graph in (("dense", dense), ("sparse", sparse))]
    kept = entries[1] / entries[0]
    x = as_features(dense.x) if isinstance(model, Backbone) else None
    for name, program in programs.items():
        nnz = entries[0 if name == "dense" else 1]
        rows[name] |= {"entries": nnz, "layout": program.layout}
        if isinstance(model, Backbone) and x is not None:
            macs = count_macs(model, x, nnz)
            rows[name] |= {"macs": macs.total, "macs_dense_part": macs.dense, "macs_sparse_part": macs.sparse}
    report = {
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
        report["paper_macs"] = {"dense": paper_macs(model, nodes), "sparse": paper_macs(model, nodes, removed)}
    return report


def _speedups(rows: Mapping[str, Mapping[str, Any]], kept: float, clock: str) -> dict[str, Any]:
    """Speed-ups and their limit, both by one clock."""
    share = max(0.0, 1 - rows["no_edges"][clock] / rows["dense"][clock])
    limit = amdahl_limit(share, kept)
    speedup = {name: rows["dense"][clock] / rows[name][clock] for name in ("sparse", "reordered")}
    of_limit = {name: value / limit for name, value in speedup.items()}
    return {"edge_share": share, "limit": limit, "speedup": speedup, "share_of_limit": of_limit}


def _entries(program: Compiled, graph: Data) -> int:
    return program.nnz if isinstance(program, CompiledBackbone) else graph.num_edges + int(graph.num_nodes)
