"""Answers by node, changes of a living graph, and an endpoint under load, as JSON.

    gst run --dataset FOLDER --hidden 128 --anchor-epochs 100 --sparse-epochs 100 --lr 0.01 --weight-decay 0 \
        --sparsity 0.8 --no-dense --out runs/debian
    python benchmarks/serving.py answers runs/debian            # 1,000 test nodes, dense and sparse, ours and PyG's
    python benchmarks/serving.py updates runs/debian            # 10,000 random changes, compared with rebuilds
    python benchmarks/serving.py load runs/debian --seconds 60  # 64 clients, changes, a kill in the middle

*answers*: engines on the dense and the sparse graph of the run, without and with the table of first products. Beside
them, for fewer nodes, PyG's usual way on both graphs: ``k_hop_subgraph`` with as many hops as layers, then the model
(``GCNConv`` with the same weights). That cuts degrees at the rim, so its outputs differ; "exact" takes one hop more.
All take turns. *updates*: edges come and go, features change, nodes come; after each thousand the
engine is compared, to the last bit, with one that is built at once. *load*: ``gst serve`` in a process of its own, on
this machine alone; every answer is checked afterwards against an engine that replays the changes. Half way, the server
is killed and started again, and must have every change that it had acknowledged.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gst
from gst.inference.serving import make_engine
from gst.inference.serving.engine import NativeEngine
from gst.inference.serving.single import distribution, sample, single_answers
from serving_changes import Changes
from serving_load import press
from serving_peer import Peer


def answers(result: gst.Result, count: int, peers: int) -> dict[str, Any]:
    """Reads and times of single answers: ours for many nodes, PyG's beside ours for the first of them."""
    assert result.model is not None
    graphs = {"dense": result.dense_graph(), "sparse": result.graph}
    engines = {name: make_engine(result.model, graph) for name, graph in graphs.items()}
    nodes = sample(result.graph.test_mask.nonzero().flatten(), count)
    whole, ours = result.compile("natural")(), engines["sparse"](range(int(result.graph.num_nodes)))
    tables = {f"{name}, products": make_engine(result.model, graph, products=True) for name, graph in graphs.items()}
    rows = single_answers({**engines, **tables}, nodes)
    ratio = {part: rows["dense"]["us"][part] / rows["sparse"]["us"][part] for part in ("p50", "p90", "p99", "mean")}
    reads = {part: rows["dense"]["reads"][part] / rows["sparse"]["reads"][part] for part in ratio}
    report: dict[str, Any] = {
        "nodes": len(nodes),
        "rows": rows,
        "dense_by_sparse": ratio,
        "reads_dense_by_sparse": reads,
    }
    report["whole_pass_apart"] = float((whole - ours).abs().max() / whole.abs().max())
    if peers and result.metrics["backbone"] == "gcn":
        report["peer"] = beside_pyg(result.model, graphs, engines, nodes[:peers])
    return report


def beside_pyg(model: Any, graphs: dict[str, Any], engines: dict[str, Any], nodes: list[int]) -> dict[str, Any]:
    """Ours and PyG's in turns, once for each node, and how far PyG's outputs are from ours."""
    rivals = {
        f"{name}, {kind}": Peer(model, graph, more)
        for name, graph in graphs.items()
        for kind, more in (("PyG", 0), ("PyG exact", 1))
    }
    everybody: dict[str, Any] = {**engines, **rivals}
    rows = single_answers(everybody, nodes, repeats=1)
    for name, rival in rivals.items():
        mine = torch.cat([engines[name.split(",")[0]](node) for node in nodes])
        theirs = torch.cat([rival(node) for node in nodes])
        rows[name]["apart"] = float((mine - theirs).abs().max() / mine.abs().max())
    by_ours = {
        name: {part: rows[name]["us"][part] / rows[name.split(",")[0]]["us"][part] for part in ("p50", "mean")}
        for name in rivals
    }
    return {"nodes": len(nodes), "rows": rows, "by_ours": by_ours}


def updates(result: gst.Result, count: int, every: int) -> dict[str, Any]:
    """Times of random changes, and whether the engine still equals one that is built at once."""
    start = time.perf_counter()
    engine = result.engine(updates=True)
    made = time.perf_counter() - start
    assert isinstance(engine, NativeEngine) and engine.living is not None
    changes, times, rebuilds, equal = Changes(engine, seed=0), [], [], 0
    for number in range(1, count + 1):
        change = changes.draw()
        start = time.perf_counter()
        engine.update(**change)
        times.append(time.perf_counter() - start)
        if number % every == 0:
            start = time.perf_counter()
            fresh = engine.rebuilt()
            rebuilds.append(time.perf_counter() - start)
            equal += same(engine, fresh)
            print(f"{number}: equal {equal} of {len(rebuilds)}", file=sys.stderr, flush=True)
    rebuild = float(np.median(rebuilds))
    return {
        "updates": count,
        "kinds": changes.counts,
        "rebuilds": len(rebuilds),
        "equal": equal,
        "us": distribution([1e6 * t for t in times]),
        "rebuild_s": rebuild,
        "made_s": made,
        "rebuild_by_median_update": rebuild / float(np.median(times)),
        "edges": engine.living.num_edges,
        "kept": engine.living.num_kept,
        "nodes": engine.num_nodes,
    }


def same(engine: NativeEngine, fresh: NativeEngine) -> bool:
    """Whether arcs, what layers know of nodes, and the answers about all nodes are equal to the last bit."""
    nodes = engine.num_nodes
    pairs = list(zip(engine.state.arcs.packed(nodes), fresh.state.arcs.packed(nodes), strict=True))
    pairs += [
        (a[:, :nodes], b[:, :nodes]) for a, b in zip(engine.state.graph.nodes, fresh.state.graph.nodes, strict=True)
    ]
    pairs.append((engine(range(nodes)).numpy(), fresh(range(nodes)).numpy()))
    return all(np.array_equal(one, two) for one, two in pairs)


def load(run: Path, seconds: float, clients: int, rate: float) -> dict[str, Any]:
    """An endpoint under load, killed half way."""
    with tempfile.TemporaryDirectory() as folder:
        return press(run, Path(folder) / "journal", seconds, clients, rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["answers", "updates", "load"])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--peer-nodes", type=int, default=30, help="of these, answered by PyG, too")
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rate", type=float, default=20, help="changes a second, under load")
    options = parser.parse_args()
    rows = []
    for run in options.runs:
        result = gst.Result.load(run)
        parts: dict[str, Callable[[], dict[str, Any]]] = {
            "answers": lambda result=result: answers(result, options.nodes, options.peer_nodes),  # type: ignore[misc]
            "updates": lambda result=result: updates(result, options.updates, options.every),  # type: ignore[misc]
            "load": lambda run=run: load(run, options.seconds, options.clients, options.rate),  # type: ignore[misc]
        }
        names = ("dataset", "method", "backbone", "by", "sparsity", "test", "agreement", "max_degree")
        about = {name: result.metrics.get(name) for name in names}
        rows.append({"part": options.part, "run": str(run), **about, **parts[options.part]()})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
