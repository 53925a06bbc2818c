"""PyTorch Lightning: a model that it trained on fewer edges, and its training on a sparse graph.

python examples/lightning_model.py    (pip install lightning)
"""

import logging
import warnings

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import gst


class Network(nn.Module):
    """An ordinary PyG model."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = GCNConv(inputs, 64)
        self.second = GCNConv(64, outputs)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Classifier(lightning.LightningModule):
    """An ordinary module of Lightning; nothing in it knows of gst."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def training_step(self, data: Data, index: int) -> Tensor:
        logits = self.network(data.x, data.edge_index)
        return nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01, weight_decay=5e-4)


def train(network: nn.Module, data: Data, epochs: int = 60) -> None:
    """Full batches: the loader hands out the one graph."""
    loader = DataLoader([data], batch_size=None)
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    trainer = lightning.Trainer(max_epochs=epochs, accelerator="cpu", log_every_n_steps=1, **quiet)
    trainer.fit(Classifier(network), loader)


@torch.no_grad()
def accuracy(network: nn.Module, graph: Data) -> float:
    """On the test nodes, in percent."""
    network.eval()
    right = network(graph.x, graph.edge_index).argmax(1) == graph.y
    return 100 * float(right[graph.test_mask].double().mean())


def main() -> None:
    logging.getLogger("lightning.pytorch").setLevel("ERROR")
    warnings.simplefilter("ignore")
    lightning.seed_everything(0, verbose=False)
    data = gst.load("digits:nodes=900")
    network = Network(64, 10)
    train(network, data)
    print(f"trained by Lightning on all edges: {accuracy(network, data):.1f}")
    kept = gst.Deploy(network, sparsity=0.6).fit(data).result_.graph
    print(f"the same model on the edges that it needs, 40 %: {accuracy(network, kept):.1f}")
    similar = gst.LocalSimilarity(sparsity=0.6)(data)
    fresh = Network(64, 10)
    train(fresh, similar)
    print(f"trained by Lightning on 40 % of the edges, those of most similar nodes: {accuracy(fresh, similar):.1f}")


if __name__ == "__main__":
    main()
