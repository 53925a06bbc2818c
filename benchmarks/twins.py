"""Seconds and peak memory to generate a large graph, as JSON: python benchmarks/twins.py products 0.1"""

import json
import resource
import sys
import time

import gst


def main(name: str = "products", scale: str = "0.1") -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    data = gst.load(f"synthetic-{name}:scale={scale}")
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = {"nodes": data.num_nodes, "pairs": data.num_edges // 2, "seconds": round(seconds, 1)}
    gib = {"gib_imports": round(before / 2**20, 2), "gib_peak": round(peak / 2**20, 2)}
    print(json.dumps({"name": data.name, **size, **gib}))


if __name__ == "__main__":
    main(*sys.argv[1:])
