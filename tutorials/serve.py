# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Serve answers
#
# From a result to something that answers requests: bind model and sparse graph together, check that the answers are the
# same, measure what it gains, and write one file that loads without training code.

# %%
import tempfile
import warnings
from pathlib import Path

import torch

import gst

warnings.simplefilter("ignore", gst.AgreementWarning)
data = gst.load("digits:nodes=900")
few = {"hidden": 64, "anchor_epochs": 40, "sparse_epochs": 40, "lr": 0.01, "cache": False}
result = gst.sparsify(data, "deploy", sparsity=0.7, seed=0, dense=True, **few)
result

# %% [markdown]
# ## Compile
#
# `compile` reorders nodes for the cache, drops what only training needs and uses vector kernels. `compiled()` gives the
# logits of all nodes, in the order of the data.

# %%
compiled = result.compile()
logits = compiled()
with torch.no_grad():
    plain = result.model(result.graph.x, result.graph.edge_index)
print("same classes as the plain model:", bool((logits.argmax(1) == plain.argmax(1)).all()))
print("largest difference:", f"{(logits - plain).abs().max().item():.1e}")

# %% [markdown]
# ## Write, load, answer
#
# On the command line `gst export RUN --layout fast` writes it. The file is safetensors with hashes: loading it executes
# nothing.

# %%
folder = Path(tempfile.mkdtemp())
result.save(folder / "run")
compiled.save(folder / "model.gst")
served = gst.load_compiled(folder / "model.gst")
answers = served().argmax(1)
f"{(answers == logits.argmax(1)).double().mean():.0%} of the answers are those from before"
