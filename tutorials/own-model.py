# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Your own PyG model, on fewer edges
#
# You have a graph and a model of PyTorch Geometric, trained your way. Which edges does it need for its answers? At the
# end of these five minutes you have a sparse graph, the same model, and a file that plain PyG opens.

# %%
import torch
from torch import nn
from torch_geometric.nn import SAGEConv

import gst

torch.manual_seed(0)
data = gst.load("digits:nodes=900")  # or gst.load(my_data), gst.from_files("edges.csv", "nodes.csv", "labels.csv")
data

# %% [markdown]
# An ordinary model and an ordinary training loop: nothing here knows of gst.


# %%
class MyModel(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = SAGEConv(inputs, 64)
        self.second = SAGEConv(64, outputs)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


model = MyModel(data.num_features, 10)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for _ in range(60):
    optimiser.zero_grad()
    logits = model(data.x, data.edge_index)
    nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
    optimiser.step()

# %% [markdown]
# ## Remove the edges it does not need
#
# `Deploy` takes the trained model as it is and never changes its weights. It first measures that a removed edge means
# the same to your layers as an edge that was never there, then looks for the edges that keep the answers.

# %%
deploy = gst.Deploy(model, sparsity=0.6).fit(data)
deploy.result_

# %% [markdown]
# A result shows what was measured. `agreement` is the share of all nodes that get the same answer as on all edges: the
# number to look at before you put the sparse graph into production.

# %%
{
    name: deploy.result_.metrics[name]
    for name in ("edges_total", "edges_kept", "dense_test", "test", "agreement")
    if name in deploy.result_.metrics
}

# %%
deploy.result_.plot()

# %% [markdown]
# ## Is that good? Compare with chance
#
# The same model on the same number of random edges:

# %%
kept = gst.Random(sparsity=0.6, seed=0)(data)
with torch.no_grad():
    dense = model(data.x, data.edge_index).argmax(1)
    random = model(data.x, kept.edge_index).argmax(1)
    sparse = model(data.x, deploy.result_.graph.edge_index).argmax(1)
print(
    f"same answers: {(sparse == dense).double().mean():.1%} with Deploy, {(random == dense).double().mean():.1%} with random edges"
)

# %% [markdown]
# ## Take it with you
#
# `gst export` on the command line, or in Python: the file is a dict of tensors, which PyG opens without gst and without
# running any code from it.

# %%
import tempfile
from pathlib import Path

from torch_geometric.data import Data

from gst.storage.export import export

folder = Path(tempfile.mkdtemp())
export(deploy.result_.graph, "pyg", folder / "graph.pt")
graph = Data.from_dict(torch.load(folder / "graph.pt"))
assert torch.equal(graph.edge_index, deploy.result_.graph.edge_index)
graph

# %% [markdown]
# Next: how few edges are enough? `gst search` finds the largest sparsity within half a point of
# the dense model; the guide on *inference* compiles graph and model together.
