"""Nothing of size N × N or E × D is ever built by a learned method."""

import pytest
import torch
from contract import LEARNED
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from gst import load
from gst.graph.edgeset import EdgeSet


class Largest(TorchDispatchMode):
    """The bytes of the largest tensor that any operation gives."""

    nbytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided:
                self.nbytes = max(self.nbytes, leaf.nbytes)
        return result


@pytest.mark.parametrize("name", [name for name in LEARNED if not name.endswith("tickets")])
def test_no_array_over_pairs_of_nodes_or_edges_times_features(name):
    data = load("synthetic:nodes=1500,degree=30,features=128")
    edges = EdgeSet.from_data(data).num_edges
    more = {"iterations": 2} if name.startswith("wd") else {}
    with Largest() as largest:
        LEARNED[name](sparsity=0.97 if "deploy" in name else 0.1, layers=2, **more).fit(data)  # a path takes long
    nodes, features = data.x.shape
    allowed = max(3 * 8 * (2 * edges + nodes), 8 * nodes * features)  # a few numbers an entry, or the features
    assert largest.nbytes <= allowed < 4 * min(nodes * nodes, edges * features) / 5
