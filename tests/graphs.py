"""Graphs for tests: random ones of every kind, and strategies for those nobody thought of."""

import inspect
from typing import Any

import torch
from hypothesis import strategies as st
from torch_geometric.data import Data

from gst import Random
from gst.methods import METHODS
from gst.testing import KINDS, random_graph
from gst.train.run import Run

__all__ = ["KINDS", "graphs", "new_run", "pairs", "random_graph", "taken"]


def new_run(data: Data, **params: Any) -> Run:
    """What a search works on, with these arguments of a method."""
    return Random(keep=1, **params).run(data)


def taken(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Those of the arguments that a method has."""
    names = inspect.signature(METHODS[method]).parameters
    return {name: value for name, value in params.items() if name in names}


def pairs(*ends: tuple[int, int], nodes: int, directed: bool = False) -> Data:
    """A graph of these pairs with features, labels, a split and an attribute of its columns."""
    nodes = max(nodes, 4)  # a split needs some
    index = torch.tensor(ends).t()
    index = index if directed else torch.cat([index, index.flip(0)], dim=1)
    ids = torch.arange(nodes)
    data = Data(x=torch.randn(nodes, 3), edge_index=index, y=ids % 2, num_nodes=nodes)
    data.train_mask, data.val_mask, data.test_mask = ids < 2, ids == 2, ids > 2
    data.edge_attr = torch.arange(2.0 * index.shape[1]).view(-1, 2)
    return data


@st.composite
def graphs(draw, max_nodes: int = 12) -> Data:
    """Any small graph with at least one edge: directed or not, with loops, duplicates, isolated nodes."""
    nodes = draw(st.integers(2, max_nodes))
    node = st.integers(0, nodes - 1)
    arcs = draw(st.lists(st.tuples(node, node), min_size=0, max_size=40))
    arcs.append(draw(st.tuples(node, node).filter(lambda arc: arc[0] != arc[1])))
    if draw(st.booleans()):
        arcs += [(v, u) for u, v in arcs]
    index = torch.tensor(draw(st.permutations(arcs))).t().contiguous()
    return Data(x=torch.randn(nodes, 3), edge_index=index, num_nodes=nodes)
