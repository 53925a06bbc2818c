"""Structural sparsifiers against NetworKit on one large graph, in one process, as JSON.

Timed from a PyG ``edge_index`` with both arcs of every pair to the mask of the kept edges. NetworKit gets the same
array, of which it uses one arc per pair; its mask is over its edge ids and is not mapped back to columns. It has no
DSpar, for which its SCAN stands in: the ratio then shows what sampling by degrees saves against counting triangles. The
two alternate, so that a noisy machine disturbs both alike; ``ratio`` below 1 means that gst is faster. Kernels are
compiled before timing. Everything is done twice: with sorted columns, as in most data sets, and with shuffled ones.

    python benchmarks/topology.py                     # web-Google, from $GST_MIRROR or $GST_DATA
    python benchmarks/topology.py --edges edges.tsv.gz
    python benchmarks/topology.py --synthetic 200000

``peak_gib`` is the peak resident memory of a process that runs SCAN alone (Linux), the interpreter and its libraries
included.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkit as nk
import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from gst.base.errors import InputError
from gst.data.edges import read_edges
from gst.data.synthetic import synthetic
from gst.graph.edgeset import EdgeSet
from gst.methods.base import TopologySparsifier
from gst.methods.dspar import DSpar
from gst.methods.local_similarity import LocalSimilarity
from gst.methods.scan import SCAN
from gst.storage.paths import data_root, mirror_root

WEB_GOOGLE = "web-Google/raw/web_Google.txt.gz"
SPARSITY = 0.5


def by_triangles(score: type) -> Callable[[nk.Graph], list[float]]:
    return lambda graph: score(graph, nk.sparsification.TriangleEdgeScore(graph).run().scores()).run().scores()


SIMILARITY = ("SCANStructuralSimilarityScore", by_triangles(nk.sparsification.SCANStructuralSimilarityScore))
RACES: dict[type[TopologySparsifier], tuple[str, Callable[[nk.Graph], list[float]]]] = {
    SCAN: SIMILARITY,
    LocalSimilarity: ("LocalSimilarityScore", by_triangles(nk.sparsification.LocalSimilarityScore)),
    DSpar: SIMILARITY,
}


def ours(data: Data, method: type[TopologySparsifier]) -> dict[str, float]:
    start = time.perf_counter()
    edges = EdgeSet.from_data(data)
    numbered = time.perf_counter()
    edges.to_columns(method(sparsity=SPARSITY).select(edges)[0], True)
    end = time.perf_counter()
    return {"edges": numbered - start, "select": end - numbered, "total": end - start}


def theirs(data: Data, scores: Callable[[nk.Graph], list[float]]) -> dict[str, float]:
    start = time.perf_counter()
    u, v = data.edge_index.numpy()
    once = u < v
    graph = nk.GraphFromCoo((u[once], v[once]), n=data.num_nodes, edgesIndexed=True)
    built = time.perf_counter()
    values = np.array(scores(graph))
    keep_mask = np.zeros(values.size, dtype=bool)
    num_kept = values.size - round(SPARSITY * values.size)
    keep_mask[np.argsort(-values, kind="stable")[:num_kept]] = True
    end = time.perf_counter()
    return {"edges": built - start, "select": end - built, "total": end - start}


def race(data: Data, method: type[TopologySparsifier], repeat: int) -> dict[str, Any]:
    name, scores = RACES[method]
    times = [(ours(data, method), theirs(data, scores)) for _ in range(repeat)]
    return {
        "method": method.__name__,
        "networkit_method": name,
        "gst_seconds": median([gst_times for gst_times, _ in times]),
        "networkit_seconds": median([other for _, other in times]),
        "ratio": round(statistics.median(gst_times["total"] / other["total"] for gst_times, other in times), 3),
    }


def median(runs: list[dict[str, float]]) -> dict[str, float]:
    return {part: round(statistics.median(run[part] for run in runs), 3) for part in runs[0]}


def peak_gib(data: Data, side: str) -> float:
    """VmHWM of a separate process; ``ru_maxrss`` would include the memory of the parent process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edge_index.npy"
        np.save(path, data.edge_index.numpy())
        code = (
            "import re, sys, numpy, torch; from torch_geometric.data import Data; "
            f"sys.path.insert(0, {str(Path(__file__).parent)!r}); import topology as t; "
            f"data = Data(edge_index=torch.from_numpy(numpy.load({str(path)!r})), num_nodes={data.num_nodes}); "
            f"t.ours(data, t.SCAN) if {side == 'gst'} else t.theirs(data, t.RACES[t.SCAN][1]); "
            "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return round(int(done.stdout) / 2**20, 3)


def shuffled(data: Data) -> Data:
    order = torch.randperm(data.num_edges, generator=torch.Generator().manual_seed(0))
    return Data(edge_index=data.edge_index[:, order], num_nodes=data.num_nodes)


def load(edges: Path | None, nodes: int | None) -> tuple[str, Data]:
    """The graph with both arcs of every pair."""
    if nodes is not None:
        return f"synthetic {nodes}", synthetic(nodes=nodes, features=1)
    candidates = [edges] if edges else [root / WEB_GOOGLE for root in (mirror_root(), data_root()) if root]
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        raise InputError(f"no {WEB_GOOGLE} in $GST_MIRROR or $GST_DATA: give --edges FILE or --synthetic N")
    index = torch.from_numpy(read_edges(path, 2**31)["edge_index"])
    return path.name, Data(edge_index=to_undirected(index), num_nodes=int(index.max()) + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=Path, help="edge list, text (.gz) or parquet")
    parser.add_argument("--synthetic", type=int, metavar="N", help="a block model of N nodes, 5 pairs per node")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="of torch and NetworKit")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    nk.setNumberOfThreads(args.threads)
    try:
        name, data = load(args.edges, args.synthetic)
    except InputError as error:
        sys.exit(f"topology.py: {error}")
    inputs = {"sorted": data, "shuffled": shuffled(data)}
    small = synthetic(nodes=500, features=1)
    for method in RACES:
        ours(small, method)
    report = {
        "benchmark": "topology",
        "graph": name,
        "nodes": data.num_nodes,
        "pairs": data.num_edges // 2,
        "sparsity": SPARSITY,
        "threads": args.threads,
        "races": [
            {"columns": columns, **race(graph, method, args.repeat)}
            for columns, graph in inputs.items()
            for method in RACES
        ],
        "peak_gib": {
            columns: {side: peak_gib(graph, side) for side in ("gst", "networkit")} for columns, graph in inputs.items()
        },
    }
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
