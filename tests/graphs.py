"""Graphs for tests: random ones of every kind, and strategies for those nobody thought of."""

import torch
from hypothesis import strategies as st
from torch_geometric.data import Data


def random_graph(
    nodes: int = 12,
    edges: int = 30,
    *,
    directed: bool = False,
    loops: bool = False,
    duplicates: bool = False,
    weighted: bool = False,
    features: int = 5,
    classes: int = 3,
    seed: int = 0,
) -> Data:
    """A random graph with features, labels and a split; the last node is isolated."""
    g = torch.Generator().manual_seed(seed)
    index = torch.randint(0, nodes - 1, (2, edges), generator=g)
    index = index[:, index[0] != index[1]]
    if not directed:
        index = torch.cat([index, index.flip(0)], dim=1)
    index = torch.unique(index, dim=1)
    if duplicates:
        pair = index[:, :1]
        index = torch.cat([index, pair] if directed else [index, pair, pair.flip(0)], dim=1)
    if loops:
        index = torch.cat([index, torch.tensor([[0, 3], [0, 3]])], dim=1)
    index = index[:, torch.randperm(index.shape[1], generator=g)]
    y = torch.arange(nodes) % classes
    role = torch.randperm(nodes, generator=g) % 3
    role[:classes] = 0
    data = Data(
        x=torch.randn(nodes, features, generator=g),
        edge_index=index,
        y=y,
        train_mask=role == 0,
        val_mask=role == 1,
        test_mask=role == 2,
    )
    if weighted:
        low, high = index.amin(0), index.amax(0)
        data.edge_weight = 0.5 + ((low * 7 + high * 3) % 10) / 10
    return data


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


KINDS = [
    {},
    {"directed": True},
    {"loops": True, "duplicates": True},
    {"directed": True, "loops": True, "duplicates": True},
    {"weighted": True},
    {"weighted": True, "directed": True, "loops": True},
]
