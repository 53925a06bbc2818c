"""Remove the edges that your own trained PyG model does not need: python examples/own_model.py"""

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import gst


class MyModel(nn.Module):
    """An ordinary PyG model; nothing in it knows of gst."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = SAGEConv(inputs, 64)
        self.second = SAGEConv(64, outputs)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = nn.functional.dropout(self.first(x, edge_index).relu(), training=self.training)
        return self.second(hidden, edge_index)


def train(model: nn.Module, data: Data, epochs: int = 100) -> None:
    """An ordinary training loop on all edges."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimiser.zero_grad()
        logits = model(data.x, data.edge_index)
        nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimiser.step()


def main() -> None:
    torch.manual_seed(0)
    data = gst.load("digits:nodes=900")
    model = MyModel(64, 10)
    train(model, data)
    result = gst.Deploy(model, sparsity=0.6).fit(data, dense=True).result_
    m = result.metrics
    print(f"kept {m['edges_kept']:,} of {m['edges_total']:,} pairs")
    print(f"test accuracy: {m['dense_test']:.1f} on all edges, {m['test']:.1f} on the kept ones")
    print(f"{m['agreement']:.1%} of the nodes are answered as before")


if __name__ == "__main__":
    main()
