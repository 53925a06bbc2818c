"""How time and memory of one pass of GST grow with the graph, as JSON.

    python benchmarks/scale.py                        # arxiv ×1, 2, 4, 8 and exponents; proteins, products ×0.25
    python benchmarks/scale.py --graphs products:1    # 2.45 million nodes, 61.9 million edges

Twins of OGB's graphs (same sizes, random content), ClusterGCN in mini-batches of clusters. Every graph has its own
process, and every pass reports its seconds and the peak resident memory up to its end, interpreter and libraries
included (Linux). ``exponent``: the slope of log seconds over log edges; 1 is linear. Kernels are compiled beforehand.

Seconds are the minimum of ``--repeats`` for the passes whose growth is reported (of an update, which is short, of five
times as many). Processes keep the memory that they free (``MALLOC_MMAP_MAX_=0``, of glibc), since the host of a virtual
machine may take seconds to provide a GiB again, which would dominate the measurement. ``--no-keep``: without.

    python benchmarks/scale.py --sampler              # edges per second of the neighbour sampler, on one core
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gst
from gst.graph.select import exchange, top_k
from gst.methods.criteria.balance import combine
from gst.methods.criteria.semantic import semantic_scores
from gst.methods.criteria.topology import topology_scores
from gst.nn.masker import Masker
from gst.sparse.sampler import draw_entries

GROWTH = ("arxiv:1", "arxiv:2", "arxiv:4", "arxiv:8")
OTHERS = ("proteins:0.25", "products:0.25")
PASSES = ("epoch", "topology", "semantic", "update")
KEEP = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


def peak_gib() -> float:
    return round(int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0]) / 2**20, 2)


def measure(name: str, hidden: int, repeats: int = 1) -> Iterator[dict[str, Any]]:
    """One report after every stage; the last one shows how far the run got."""
    report: dict[str, Any] = {"graph": name, "hidden": hidden, "peak_gib": {}}

    @contextmanager
    def stage(label: str) -> Iterator[None]:
        start = time.perf_counter(), time.process_time()
        yield
        for clock, took in zip(
            ("seconds", "cpu_seconds"), (time.perf_counter() - start[0], time.process_time() - start[1]), strict=True
        ):
            seconds = report.setdefault(clock, {})
            seconds[label] = round(min(took, seconds.get(label, took)), 3)
        report["peak_gib"][label] = peak_gib()

    with stage("load"):
        twin, scale = name.split(":")
        data = gst.load(f"synthetic-{twin}:scale={scale}")
    with stage("edges"):
        transductive: dict[str, Any] = {"batch": "clusters", "inductive": False}  # all edges of the twin
        method = gst.GST(sparsity=0.5, backbone="cluster-gcn", hidden=hidden, cache=False, **transductive)
        run = method.run(data)
        edges = run.edges
    report |= {"nodes": edges.num_nodes, "edges": edges.num_edges}
    yield report
    with stage("clusters"):
        network, masker = run.network(), Masker(run.x.shape[1])
        trainer = run.trainer(network, masker)
    for _ in range(repeats):
        with stage("epoch"):
            trainer.step(edges)
    yield report
    with stage("mask"):
        mask = trainer.mask(edges)
        assert mask is not None
        keep_mask = top_k(mask, edges.num_edges // 2)
    yield report
    for _ in range(repeats):
        with stage("topology"):
            topology = topology_scores(edges, mask, eigenpairs="all")
        yield report
    with stage("logits"):
        logits = trainer.logits(edges, mask)
    yield report
    for _ in range(repeats):
        with stage("semantic"):
            semantic = semantic_scores(network, run.task, logits, edges, keep_mask, mask, layerwise=True)
        yield report
    for _ in range(5 * repeats):
        with stage("update"):
            scores = combine(semantic, topology, 1.0, 1.0)
            sparse = edges.subset(exchange(keep_mask, scores, edges.num_edges // 10))
    with stage("evaluate"):
        trainer.evaluate(sparse)
    yield report


def in_process(name: str, hidden: int, repeats: int, keep: bool) -> dict[str, Any]:
    """The last report of a separate process."""
    command = [sys.executable, __file__, "--case", name, "--hidden", str(hidden), "--repeats", str(repeats)]
    environment = {**os.environ, **(KEEP if keep else {})}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=environment)
    lines = done.stdout.splitlines()
    report = json.loads(lines[-1]) if lines else {"graph": name}
    return report if done.returncode == 0 else {**report, "failed": done.returncode}


def exponents(reports: list[dict[str, Any]], clock: str) -> dict[str, float]:
    logs = np.log([report["edges"] for report in reports])
    return {p: round(float(np.polyfit(logs, np.log([r[clock][p] for r in reports]), 1)[0]), 3) for p in PASSES}


def sampler(fanout: int = 10, repeats: int = 5) -> dict[str, Any]:
    edges = gst.EdgeSet.from_data(gst.load("synthetic-arxiv"))
    rows = torch.randperm(edges.num_nodes, generator=torch.Generator().manual_seed(0)).sort().values.numpy()
    start = edges.neighbours.start
    edges.neighbours.block(torch.from_numpy(rows[:10]), fanout, 0)
    began = time.process_time()
    drawn = sum(draw_entries(start, rows, fanout, seed).size for seed in range(repeats))
    draws = drawn / (time.process_time() - began)
    nodes = torch.from_numpy(rows).split(8192)
    began = time.process_time()
    built = sum(edges.neighbours.block(part, fanout, 1).edge.numel() for part in nodes)
    blocks = built / (time.process_time() - began)
    return {"graph": "arxiv:1", "fanout": fanout, "edges_per_second": round(draws), "as_blocks": round(blocks)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", metavar="NAME:SCALE", default=[*GROWTH, *OTHERS])
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--keep", action=argparse.BooleanOptionalAction, default=True, help="keep freed memory")
    parser.add_argument("--sampler", action="store_true", help="measure the neighbour sampler instead")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.case:
        if args.case != "arxiv:0.05":
            list(measure("arxiv:0.05", args.hidden))
        for report in measure(args.case, args.hidden, args.repeats):
            print(json.dumps(report), flush=True)
        return
    if args.sampler:
        print(json.dumps({"benchmark": "sampler", **sampler()}))
        return
    reports = []
    for name in args.graphs:
        reports.append(in_process(name, args.hidden, args.repeats, args.keep))
        print(json.dumps(reports[-1]), file=sys.stderr, flush=True)
    result: dict[str, Any] = {"benchmark": "scale", "threads": torch.get_num_threads(), "graphs": reports}
    growth = [report for report in reports if report["graph"] in GROWTH and "failed" not in report]
    if len(growth) > 1:
        result["exponent"] = {clock: exponents(growth, clock) for clock in ("seconds", "cpu_seconds")}
    json.dump(result, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
