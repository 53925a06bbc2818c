"""Link prediction: which edges carry messages, which are to be predicted, and which pairs stand against them."""

from copy import copy

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet, check_graph
from gst.graph.pairs import Keys, draw_negatives

PARTS = ("train", "val", "test")


def link_split(data: Data, *, seed: int = 0, val: float = 0.05, test: float = 0.1, supervision: float = 0.3) -> Data:
    """``data`` for link prediction: some edges are taken out of ``edge_index`` to be predicted.

    The graph that is left carries the messages. A supervised edge, of training, validation or test, is never one of
    them, nor is its reverse. New are ``train_pairs``, ``val_pairs`` and ``test_pairs`` [2, P], the supervised edges,
    and ``train_negatives``, …, as many pairs without an edge (fewer, if the graph has fewer): those of training are no
    edge that training may know, those of validation and test no edge at all.

    Args:
        data: a graph with ``x``; labels and masks are not needed and left as they are.
        seed: of the choice.
        val: share of the edges for validation.
        test: share of the edges for the test.
        supervision: share of the other edges to learn from.

    >>> from torch import arange, stack, zeros
    >>> ring = stack([arange(100), (arange(100) + 1) % 100])
    >>> split = link_split(Data(x=zeros(100, 1), edge_index=ring), test=0.2)
    >>> split.num_edges, split.train_pairs.shape[1], split.val_pairs.shape[1], split.test_negatives.shape[1]
    (53, 22, 5, 20)
    """
    check_graph(data)
    for name, share in (("val", val), ("test", test), ("supervision", supervision)):
        if not isinstance(share, int | float) or not 0 < share < 1:
            raise InputError(f"{name} = {share!r}: a share of the edges between 0 and 1 is needed")
    edges = EdgeSet.from_data(data)
    generator = torch.Generator().manual_seed(seed)
    pair = _unordered(edges)
    total = int(pair.max()) + 1
    sizes = _sizes(total, val, test, supervision)
    order = torch.randperm(total, generator=generator)
    part = torch.full((total,), len(PARTS))
    for number, chosen in enumerate(order.split(sizes)[: len(PARTS)]):
        part[chosen] = number
    part_of_edge = part[pair]
    split = edges.sparse_graph(copy(data), part_of_edge == len(PARTS))
    known = part_of_edge != PARTS.index("val")
    known &= part_of_edge != PARTS.index("test")
    for number, name in enumerate(PARTS):
        positives = edges.pairs[:, part_of_edge == number]
        avoid = edges.pairs[:, known] if name == "train" else edges.pairs
        split[f"{name}_pairs"] = positives
        split[f"{name}_negatives"] = draw_negatives(positives.shape[1], edges.num_nodes, Keys.of(avoid), generator)
    return split


def _unordered(edges: EdgeSet) -> Tensor:
    """The unordered pair of every edge, numbered from 0: both arcs of a directed graph share one."""
    low, high = edges.pairs.amin(0), edges.pairs.amax(0)
    return torch.unique(low * edges.num_nodes + high, return_inverse=True)[1]


def _sizes(total: int, val: float, test: float, supervision: float) -> list[int]:
    """Pairs of training, validation, test and the rest, which carries messages."""
    held_out = [round(val * total), round(test * total)]
    train = round(supervision * (total - sum(held_out)))
    rest = total - sum(held_out) - train
    if min(*held_out, train, rest) < 1:
        raise InputError(
            f"{total} pairs of nodes with an edge are too few for these shares: "
            f"training {train}, validation {held_out[0]}, test {held_out[1]}, messages {rest}; each needs one"
        )
    return [train, *held_out, rest]
