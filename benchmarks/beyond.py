"""What a run would cost on a graph of 10⁹ edges and k machines, computed from measured constants, as JSON.

Nothing is measured here. Seconds per edge are those of products ×1 and of twins (``docs/results/large-graphs.md``), of
one thread; memory is the estimate by which gst itself refuses runs (``gst.train.footprint``). ``today``: every
process holds the graph and solves φ_topo whole. ``divided``: each machine holds 1/k of the nodes with their arcs, and
copies of the neighbours across; only nodes × width numbers cross the network.

    python benchmarks/beyond.py --edges 1e9 --machines 1 4 16 64 --cores 32 --gbit 25
"""

import argparse
import json
import sys
from typing import Any

from gst.train.footprint import training_memory
from gst.train.settings import Training

NODES_PER_EDGE = 2_449_029 / 61_859_140  # as in ogbn-products
FEATURES, CLASSES, WIDTH = 100, 47, 128
CROSSING = 0.57  # share of the edges of arxiv's twin between streamed parts
MICROSECONDS = {  # of one thread, per edge
    "number the edges": 31 / 61.86,
    "clusters": 40 / 61.86,
    "φ_topo": 162 / 61.86,
    "epoch": 32 / 61.86,
    "mask or logits of all": 44 / 61.86,
    "φ_sema": 2 * 18.5 / 15.46,  # measured with two threads
    "update (top-k)": 2 * 0.52 / 15.46,
}
SERIAL = ("number the edges", "clusters")  # by one thread
ALONE = (*SERIAL, "φ_topo")  # what every process does whole today
ANCHOR_EPOCHS, SPARSE_EPOCHS, INTERVAL = 100, 300, 3  # the paper's, for its large graphs


def estimate(edges: float, machines: int, cores: int, gbit: float) -> dict[str, Any]:
    nodes, arcs = edges * NODES_PER_EDGE, 2 * edges
    whole = training_memory(int(nodes), int(arcs), FEATURES, CLASSES, "cluster-gcn", Training(hidden=WIDTH), "clusters")
    copies = nodes / machines * min(machines - 1, CROSSING * arcs / nodes)  # nodes of others that a part touches
    part = whole / machines + 4 * (FEATURES + WIDTH) * min(copies, nodes)
    counts = dict.fromkeys(MICROSECONDS, 1) | {
        "epoch": ANCHOR_EPOCHS + SPARSE_EPOCHS,
        "mask or logits of all": ANCHOR_EPOCHS + SPARSE_EPOCHS,  # validation after every epoch
        "φ_sema": SPARSE_EPOCHS // INTERVAL,
        "update (top-k)": SPARSE_EPOCHS // INTERVAL,
    }
    weights = 2 * (FEATURES * WIDTH + WIDTH * CLASSES)
    steps = nodes / 500 / 16 / machines
    ring = 2 * (machines - 1) / machines  # bytes that each machine sends for a byte of an all-reduce
    gigabytes = {
        "epoch": ring * 4 * weights * steps / 1e9,
        "mask or logits of all": ring * 4 * nodes * (WIDTH + CLASSES) / 1e9,
        "φ_sema": ring * (3 * 4 * nodes * (WIDTH + CLASSES) + 4 * edges) / 1e9,
        "update (top-k)": ring * edges / 1e9,
    }
    hours: dict[str, float] = {}
    for phase, each in MICROSECONDS.items():
        share = 1 if phase in ALONE else machines
        compute = each * 1e-6 * edges / (1 if phase in SERIAL else share * cores)
        hours[phase] = counts[phase] * (compute + gigabytes.get(phase, 0) * 8 / gbit) / 3600
    return {
        "machines": machines,
        "gib_per_machine_today": round(whole / 2**30),
        "gib_per_machine_divided": round(part / 2**30),
        "gigabytes_sent_each_time": {phase: round(value, 2) for phase, value in gigabytes.items()},
        "hours": {phase: round(value, 2) for phase, value in hours.items()},
        "hours_in_all": round(sum(hours.values()), 1),
        "hours_of_network": round(sum(counts[p] * value * 8 / gbit for p, value in gigabytes.items()) / 3600, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=float, default=1e9)
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--cores", type=int, default=32, help="of each machine; work is assumed to divide evenly")
    parser.add_argument("--gbit", type=float, default=25.0, help="per second, of each machine's network")
    args = parser.parse_args()
    rows = [estimate(args.edges, machines, args.cores, args.gbit) for machines in args.machines]
    json.dump({"benchmark": "beyond", "estimated": True, **vars(args), "rows": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
