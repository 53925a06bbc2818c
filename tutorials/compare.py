# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Compare sparsifiers, fairly
#
# Every method of gst has one contract: the same exact budget, the same training, selection by validation, a report on
# test. So a comparison is a loop. Here: five methods, two sparsities, two seeds, on a small part of the embedded digits.

# %%
import warnings

import matplotlib.pyplot as plt
import pandas as pd

import gst

warnings.simplefilter("ignore", gst.AgreementWarning)  # that models differ is what we want to see
data = gst.load("digits:nodes=600")
few = {"hidden": 32, "anchor_epochs": 30, "sparse_epochs": 30, "lr": 0.01, "cache": False}

# %%
rows = []
for method in ("deploy", "gst", "scan", "local-similarity", "random"):
    for sparsity in (0.5, 0.8):
        for seed in (0, 1):
            result = gst.sparsify(data, method, sparsity=sparsity, seed=seed, dense=True, retrain=True, **few)
            m = result.metrics
            rows.append(
                {name: m[name] for name in ("method", "seed", "test", "retrain_test", "dense_test", "agreement")}
            )
            rows[-1]["sparsity"] = sparsity
table = pd.DataFrame(rows)
table.groupby(["sparsity", "method"])[["test", "retrain_test", "dense_test", "agreement"]].mean().round(3)

# %% [markdown]
# Three columns, three questions: **test** is the model that the method returns, **retrain_test** a fresh model trained
# on the sparse graph alone, **agreement** the share of nodes that are answered as on all edges. Only numbers of the same
# column can be compared.

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True, layout="constrained")
for axis, column in zip(axes, ("test", "retrain_test"), strict=True):
    means = table.pivot_table(index="sparsity", columns="method", values=column)
    means.plot(ax=axis, marker="o", title=column)
    axis.axhline(table["dense_test"].mean(), color="grey", linestyle="--", linewidth=1)
    axis.set_xticks([0.5, 0.8])

# %% [markdown]
# Two seeds say little: for a claim, take at least five and look at differences of the same seed. `gst bench` does that
# for whole grids, stores every run, and goes on where it was interrupted; `gst report` makes a page of it.
#
# ## A sparsifier of your own in the same loop
#
# One function is enough. The base class makes the budget exact, trains and measures.

# %%
from gst import EdgeSet, TopologySparsifier, register


@register("common-neighbours")
class CommonNeighbours(TopologySparsifier):
    """Keeps the edges that close the most triangles."""

    def edge_scores(self, edges: EdgeSet):
        from gst.graph.triangles import triangles

        return triangles(edges).double()


gst.sparsify(data, "common-neighbours", sparsity=0.5, seed=0, **few)
