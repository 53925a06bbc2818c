# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A graph of a million edges
#
# Memory is O(E + N·D): nothing of the size edges × features or nodes × nodes is ever made. What changes with size are
# three arguments. This page is executed with a small graph (`EDGES = 20_000`); set `EDGES = 1_000_000` for yours: on two
# cores that takes minutes.

# %%
import os
import time
import warnings

import gst

warnings.simplefilter("ignore", gst.AgreementWarning)
EDGES = int(os.environ.get("GST_TUTORIAL_EDGES", 20_000))
nodes = EDGES // 10
data = gst.load(f"synthetic:nodes={nodes},degree=20,classes=5")
f"{data.num_nodes:,} nodes, {data.num_edges // 2:,} edges"

# %% [markdown]
# ## Topology first
#
# Methods that look at the graph alone take seconds for millions of edges, and as transforms they need neither labels nor
# features. Scores are one float64 per column.

# %%
for method in (gst.SCAN, gst.LocalSimilarity, gst.DSpar, gst.EffectiveResistance, gst.Random):
    start = time.perf_counter()
    sparse = method(sparsity=0.7)(data)
    print(f"{method.__name__:20} {sparse.num_edges // 2:>9,} edges stay   {time.perf_counter() - start:.2f} s")

# %% [markdown]
# ## Training in mini-batches
#
# `batch="clusters"` cuts the graph into clusters (METIS; for very large graphs a streaming algorithm) and trains on a few
# at a time. Validation and Deploy's answers pass the whole graph, one layer at a time.

# %%
training = {"hidden": 32, "anchor_epochs": 3, "sparse_epochs": 3, "lr": 0.01, "batch": "clusters", "cache": False}
result = gst.sparsify(data, "gst", sparsity=0.5, seed=0, **training)
result

# %% [markdown]
# ## From a terminal
#
# The same with states on disk, so that a kill costs seconds, and with several processes:
#
# ```bash
# gst run --dataset ogbn-arxiv --method gst --sparsity 0.5 --batch clusters --out runs/arxiv
# gst run --resume runs/arxiv
# torchrun --nproc-per-node 4 -m gst run --dataset ogbn-arxiv --method gst --sparsity 0.5 --batch clusters --out runs/arxiv4
# ```
#
# Memory is estimated before the work begins: what does not fit is one line with what would help, not a dead machine
# after an hour.
