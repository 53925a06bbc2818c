"""MACs against a count of what the layers really multiply."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from graphs import random_graph
from gst.graph.edgeset import EdgeSet
from gst.inference.cost import amdahl_limit, count_macs, paper_macs
from gst.nn.backbones import BACKBONES
from gst.nn.backbones.gat import GATLayer
from gst.nn.features import SparseFeatures, as_features
from gst.sparse import kernels


class Products(TorchDispatchMode):
    """Counts the multiplications of every matrix product, of torch or of gst: stored entries times width."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = self.sparse = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if name in ("mm", "addmm"):
            left, right = args[-2:]
            if left.layout == torch.sparse_csr:
                self.sparse += left.values().numel() * right.shape[1]
            else:
                self.dense += left.shape[0] * left.shape[1] * right.shape[1]
        return func(*args, **(kwargs or {}))

    def of_kernel(self, crow, col, values, x, *rest, **named):
        self.sparse += col.size * x.shape[1]
        return PRODUCT(crow, col, values, x, *rest, **named)


PRODUCT = kernels.product


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("hidden", [4, 64])
@pytest.mark.parametrize("thin", [False, True])
def test_counts_are_those_of_the_products(backbone, hidden, thin, monkeypatch):
    data = random_graph(nodes=30, edges=200, features=40)
    if thin:
        data.x = data.x * (torch.rand_like(data.x, dtype=torch.float32) < 0.03)
    x, edges = as_features(data.x), EdgeSet.from_edge_index(data.edge_index, 30)
    assert isinstance(x, SparseFeatures) == thin
    model = BACKBONES[backbone](40, hidden, 3, layers=3, **({"heads": 2} if backbone == "gat" else {})).eval()
    with torch.no_grad(), Products() as seen:
        monkeypatch.setattr(kernels, "product", seen.of_kernel)
        model.run(x, edges.adjacency.blocks(3))
    macs = count_macs(model, x, edges.adjacency.pattern.nnz)
    of_features = macs.dense - seen.dense if thin else 0  # torch sees them as sparse products
    scores = sum(2 * 30 * layer.weight.shape[1] for layer in model.layers if isinstance(layer, GATLayer))
    assert macs.dense - of_features == seen.dense + (scores if not thin else 0)
    assert macs.total == seen.dense + seen.sparse + scores


@given(nodes=st.integers(2, 20), inputs=st.integers(1, 20), hidden=st.integers(1, 20))
def test_a_full_graph_costs_what_torch_counts_of_dense_matrices(nodes, inputs, hidden):
    full = torch.ones(nodes, nodes).nonzero().t()
    model = BACKBONES["gcn"](inputs, hidden, 3).eval()
    edges = EdgeSet.from_edge_index(full[:, full[0] != full[1]], nodes)
    nnz = edges.adjacency.pattern.nnz
    assert nnz == nodes**2
    matrix, hidden_state = torch.rand(nodes, nodes), torch.rand(nodes, inputs)
    counts = []
    for order in range(4):  # every order of every layer: the counted one is the cheapest
        with FlopCounterMode(display=False) as flops:
            state: Tensor = hidden_state
            for i, layer in enumerate(model.layers):
                state = matrix @ state @ layer.weight if order >> i & 1 else matrix @ (state @ layer.weight)
        counts.append(flops.get_total_flops() // 2)
    assert count_macs(model, hidden_state, nnz).total == min(counts)


def test_the_paper_s_figure_of_cora():
    """N·F·512 + N·512·C, then less by the share removed."""
    model = BACKBONES["gcn"](1433, 512, 7)
    assert paper_macs(model, 2708) == 2708 * 1433 * 512 + 2708 * 512 * 7
    assert paper_macs(model, 2708, 0.25) == round(0.75 * paper_macs(model, 2708))


@given(share=st.floats(0, 1), kept=st.floats(0.01, 1))
def test_the_limit_is_what_is_left(share, kept):
    limit = amdahl_limit(share, kept)
    assert 1 - 1e-9 <= limit <= 1 / kept + 1e-9
    assert limit == pytest.approx(100 / (100 * (1 - share) + 100 * share * kept))
