"""Sparsify the graph of your own PyG model: python examples/own_model.py"""

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

import gst


class MyModel(nn.Module):
    """An ordinary PyG model; nothing in it knows of gst."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(inputs, 64), SAGEConv(64, outputs)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = nn.functional.dropout(self.first(x, edge_index).relu(), training=self.training)
        return self.second(hidden, edge_index)


def main() -> None:
    torch.manual_seed(0)
    data = gst.load("digits")
    result = gst.sparsify(data, model=MyModel(64, 10), sparsity=0.6, dense=True, retrain=True, lr=0.01)
    m = result.metrics
    print(f"kept {m['edges_kept']:,} of {m['edges_total']:,} pairs")
    print(f"test accuracy: dense {m['dense_test']:.1f}, sparse {m['test']:.1f}, retrained {m['retrain_test']:.1f}")


if __name__ == "__main__":
    main()
