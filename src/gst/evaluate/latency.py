r"""Measured inference time of the dense and the sparse graph in one run, beside the most that was to be had.

All programs are compiled (:mod:`gst.compiled`), so that they differ in nothing but edges and layout, and take turns, so
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

from gst.compiled import Compiled, compile_model
from gst.compiled.model import CompiledBackbone
from gst.evaluate.cost import amdahl_limit, count_macs, paper_macs
from gst.nn.backbones import Backbone
from gst.nn.features import as_features

WARM = 3  # rounds before the clock counts


def take_turns(programs: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Milliseconds of every program in every round."""
    times: dict[str, list[float]] = {name: [] for name in programs}
    for round_number in range(repeats + WARM):
        for name, program in programs.items():
            start = time.perf_counter()
            program()
            if round_number >= WARM:
                times[name].append(1000 * (time.perf_counter() - start))
    return times


def summary(times: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
    return {"ms": middle, "low_ms": low, "high_ms": high}


def inference_times(model: nn.Module, dense: Data, sparse: Data, repeats: int = 30) -> dict[str, Any]:
    """Median milliseconds of a full-graph forward pass on both graphs, in the data's own order, and their ratio."""
    programs = {name: compile_model(model, graph, "natural") for name, graph in (("dense", dense), ("sparse", sparse))}
    before, after = (statistics.median(taken) for taken in take_turns(programs, repeats).values())
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
    programs: dict[str, Compiled] = {
        "dense": compile_model(model, dense, "natural"),
        "sparse": compile_model(model, sparse, "natural"),
        "reordered": compile_model(model, sparse, layout, features),
    }
    taken = take_turns({**programs, "no_edges": programs["dense"].without_edges()}, repeats)
    rows: dict[str, dict[str, Any]] = {name: summary(times) for name, times in taken.items()}
    entries = [_entries(programs[name], graph) for name, graph in (("dense", dense), ("sparse", sparse))]
    share, kept = max(0.0, 1 - rows["no_edges"]["ms"] / rows["dense"]["ms"]), entries[1] / entries[0]
    limit = amdahl_limit(share, kept)
    for name, program in programs.items():
        graph, nnz = (dense, entries[0]) if name == "dense" else (sparse, entries[1])
        speedup = rows["dense"]["ms"] / rows[name]["ms"]
        rows[name] |= {"entries": nnz, "speedup": speedup, "share_of_limit": speedup / limit, "layout": program.layout}
        if isinstance(model, Backbone):
            macs = count_macs(model, as_features(graph.x), nnz)
            rows[name] |= {"macs": macs.total, "macs_dense_part": macs.dense, "macs_sparse_part": macs.sparse}
    found = {
        **rows,
        "layout": programs["reordered"].layout,
        "layouts_tried_ms": programs["reordered"].trials,
        "features": features,
        "edge_share": share,
        "entries_kept": kept,
        "limit": limit,
        "speedup": rows["reordered"]["speedup"],
        "share_of_limit": rows["reordered"]["share_of_limit"],
        "repeats": repeats,
    }
    if isinstance(model, Backbone):
        removed = 1 - sparse.num_edges / dense.num_edges
        nodes = int(dense.num_nodes)
        found["paper_macs"] = {"dense": paper_macs(model, nodes), "sparse": paper_macs(model, nodes, removed)}
    return found


def _entries(program: Compiled, graph: Data) -> int:
    return program.nnz if isinstance(program, CompiledBackbone) else graph.num_edges + int(graph.num_nodes)
