"""Models of PyG's layers that gst recognises, small and with weights as after training."""

import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Data

NODES, FEATURES, CLASSES = 30, 6, 4


class Residual(nn.Module):
    """An encoder, convolutions with norms and skip connections, a decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.end = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)
        self.convs = nn.ModuleList([pyg.GCNConv(8, 8), pyg.SAGEConv(8, 8), pyg.GraphConv(8, 8)])
        self.norms = nn.ModuleList([nn.BatchNorm1d(8), nn.LayerNorm(8), nn.Identity()])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = nn.functional.gelu(self.start(x))
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = x + nn.functional.dropout(norm(conv(x, edge_index)).relu(), training=self.training)
        return self.end(x).log_softmax(-1)


class Initial(nn.Module):
    """Each layer reads the first one."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        self.start, self.end = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)
        self.convs = nn.ModuleList([pyg.GCN2Conv(8, 0.1, 0.5, layer + 1, **options) for layer in range(3)])

    def forward(self, data: Data) -> Tensor:
        x = first = self.start(data.x).relu()
        for conv in self.convs:
            x = conv(x, first, data.edge_index).relu()
        return self.end(x)


def stack(*layers: object) -> nn.Module:
    return pyg.Sequential("x, edge_index", [(layer, "x, edge_index -> x") for layer in layers])


def model(kind: type[nn.Module], **options: object) -> nn.Module:
    return kind(FEATURES, 8, num_layers=3, out_channels=CLASSES, **options)


KNOWN = {
    "GCN": lambda: model(pyg.GCN, norm="batch"),
    "GCN improved": lambda: stack(pyg.GCNConv(FEATURES, 8, improved=True), pyg.GCNConv(8, 4, add_self_loops=False)),
    "GraphSAGE": lambda: model(pyg.GraphSAGE, act="elu"),
    "GraphSAGE sum": lambda: model(pyg.GraphSAGE, aggr="sum", root_weight=False),
    "GraphSAGE projected": lambda: model(pyg.GraphSAGE, project=True, normalize=True),
    "GIN": lambda: model(pyg.GIN, norm="batch", train_eps=True),
    "GAT": lambda: model(pyg.GAT, heads=2, act="elu", norm="batch"),
    "GAT residual": lambda: stack(pyg.GATConv(FEATURES, 4, heads=2, residual=True), pyg.GATConv(8, 4, concat=False)),
    "GATv2": lambda: model(pyg.GAT, heads=2, v2=True),
    "Transformer": lambda: stack(pyg.TransformerConv(FEATURES, 4, heads=2, beta=True), pyg.TransformerConv(8, 4)),
    "JumpingKnowledge cat": lambda: model(pyg.GCN, jk="cat"),
    "JumpingKnowledge max": lambda: model(pyg.GCN, jk="max", act_first=True, norm="batch"),
    "residual": Residual,
    "GCN2": Initial,
    "GCN2 unshared": lambda: Initial(shared_weights=False),
    "SGC": lambda: stack(pyg.SGConv(FEATURES, CLASSES, K=2)),
    "TAG": lambda: stack(pyg.TAGConv(FEATURES, CLASSES)),
    "APPNP": lambda: stack(pyg.GCNConv(FEATURES, CLASSES), pyg.APPNP(3, 0.1)),
    "LightGCN": lambda: stack(pyg.LGConv(), pyg.LGConv()),
    "ARMA": lambda: stack(pyg.ARMAConv(FEATURES, CLASSES, num_stacks=2, num_layers=2)),
    "LE": lambda: stack(pyg.LEConv(FEATURES, CLASSES)),
    "ClusterGCN": lambda: stack(pyg.ClusterGCNConv(FEATURES, CLASSES)),
    "GraphConv mean": lambda: stack(pyg.GraphConv(FEATURES, CLASSES, aggr="mean")),
}


def graph(*, directed: bool = False, seed: int = 0) -> Data:
    """Some repeated columns, some self-loops, one node without edges."""
    draw = torch.Generator().manual_seed(seed)
    columns = torch.randint(NODES - 1, (2, 60), generator=draw)
    if not directed:
        columns = torch.cat([columns, columns.flip(0)], dim=1)
    return Data(x=torch.randn(NODES, FEATURES, generator=draw), edge_index=columns)


def trained(name: str) -> nn.Module:
    """With statistics and offsets that are not those of a new model."""
    torch.manual_seed(1)
    made = KNOWN[name]()
    for tensor in [*made.parameters(), *made.buffers()]:
        if tensor.is_floating_point():
            tensor.data.add_(0.2 * torch.rand_like(tensor))
    return made.eval()
