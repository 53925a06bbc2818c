"""The contract that every sparsifier keeps, as checks for a method of your own.

>>> import gst
>>> from gst.testing import check_sparsifier
>>> check_sparsifier(gst.SCAN)
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.graph.cap import capped_budget
from gst.graph.edgeset import By, EdgeSet
from gst.methods import Result, Sparsifier, TopologySparsifier

# one short epoch of a narrow network shows what the contract is about
QUICK: dict[str, Any] = {"hidden": 4, "anchor_epochs": 1, "sparse_epochs": 2, "cache": False}
KINDS: tuple[dict[str, bool], ...] = (
    {},
    {"directed": True},
    {"loops": True, "duplicates": True},
    {"directed": True, "loops": True, "duplicates": True},
    {"weighted": True},
    {"weighted": True, "directed": True, "loops": True},
)


def check_sparsifier(method: Callable[..., Sparsifier], **params: Any) -> None:
    """Raises an ``AssertionError`` that says which promise a sparsifier breaks.

    On small graphs of every kind: exact budgets, caps on what a node reads, a subset of the input, both arcs of a pair
    alike where pairs count, attributes aligned, self-loops untouched, the same seed giving the same graph, random
    numbers of the caller left alone, arguments that can be read, set and cloned, bad ones refused.

    Args:
        method: the class, or a function that makes one from arguments.
        params: arguments to give besides the budget; of training, short ones are given.
    """
    params = {**QUICK, **params}
    check_arguments(method, params)
    for kind in KINDS:
        data = random_graph(nodes=20, edges=40, **kind)
        edges = EdgeSet.from_data(data).num_edges  # no more than there are arcs
        shares = ({"sparsity": 0.0}, {"sparsity": 0.5}, {"sparsity": 0.9}, {"keep": 1}, {"keep": edges // 3})
        capped = ({"max_degree": 2}, {"max_degree": 1, "keep": 5}, {"max_degree": 3, "sparsity": 0.8})
        for amount in (*shares, *capped):
            check_fit(method(**amount, **params), data, **amount)
        check_too_little_room(method, data, params)
        check_seed(method, data, params)


def check_fit(method: Sparsifier, data: Data, **amount: Any) -> None:
    """Fits a method, and checks the result and all that it may be used as."""
    fitted = method.fit(data)
    assert fitted is method, "fit must return self"
    check_result(method.result_, data, **amount)
    transformed = method.transform(data)
    assert torch.equal(transformed.edge_index, method.result_.graph.edge_index), "transform and result_ differ"
    if isinstance(method, TopologySparsifier):
        called = method(data)
        assert torch.equal(called.edge_index, transformed.edge_index), "called as a transform it gives another graph"
        scores = method.score(data)
        assert torch.equal(scores, method.result_.scores), "score(data) and result_.scores differ"


def check_result(result: Result, data: Data, **amount: Any) -> None:
    """Exact budget, attributes aligned, one score per column."""
    by = result.metrics["by"]
    check_mask(data, result.edge_mask, by=by, **amount)
    check_graph(data, result.graph, result.edge_mask)
    edges, scores = EdgeSet.from_data(data, by), result.scores
    assert scores.dtype == torch.float64 and scores.shape == result.edge_mask.shape, "one float64 score per column"
    assert bool(scores[edges.column_edge < 0].isinf().all()), "self-loops score infinity"
    assert not bool(scores.isnan().any()), "a score is NaN"
    for edge in range(edges.num_edges):
        assert scores[edges.column_edge == edge].unique().numel() == 1, "columns of one edge score differently"


def check_mask(
    data: Data,
    mask: Tensor,
    sparsity: float | None = None,
    keep: int | None = None,
    max_degree: int | None = None,
    by: By = "pairs",
) -> None:
    """Exact budget, no node that reads more than ``max_degree`` neighbours, self-loops untouched, duplicates together.

    By pairs, also both arcs alike.
    """
    edges = EdgeSet.from_data(data, by)
    assert mask.dtype == torch.bool and mask.numel() == data.edge_index.shape[1], "one truth value per column"
    kept: dict[int, bool] = {}
    for edge, stays in zip(edges.column_edge.tolist(), mask.tolist(), strict=True):
        if edge < 0:
            assert stays, "a self-loop was removed"
        else:
            assert kept.setdefault(edge, stays) == stays, "columns of one edge were separated"
    expected = capped_budget(edges, max_degree, sparsity, keep)
    assert sum(kept.values()) == expected, "the budget is not exact"
    readers = [edges.pairs[1, edge].item() for edge, stays in kept.items() if stays]
    if max_degree is not None:
        assert max(map(readers.count, readers), default=0) <= max_degree, "a node reads more neighbours than max_degree"


def check_graph(data: Data, sparse: Data, mask: Tensor) -> None:
    """The sparse graph is the input without the removed columns, and nothing else."""
    assert torch.equal(sparse.edge_index, data.edge_index[:, mask]), "columns are missing, moved or added"
    assert sparse.num_nodes == data.num_nodes, "nodes were lost"
    for name in data.keys():  # noqa: SIM118 - Data iterates over pairs
        if name != "edge_index":
            expected = data[name][mask] if name.startswith("edge_") else data[name]
            same = expected == sparse[name]
            assert bool(same.all()) if isinstance(same, Tensor) else same, f"{name} is not that of the kept columns"


def check_too_little_room(method: Callable[..., Sparsifier], data: Data, params: dict[str, Any]) -> None:
    """A budget beyond the cap is refused with the largest number that fits, which is then accepted."""
    edges = EdgeSet.from_data(data, "arcs")
    fits = int(torch.bincount(edges.pairs[1]).clamp(max=1).sum())
    try:
        method(max_degree=1, keep=fits + 1, **params).fit(data)
    except InputError as error:
        assert f"keep = {fits} at most" in str(error), "the refusal does not say what fits"
    else:
        raise AssertionError("a budget beyond max_degree is accepted")
    check_fit(method(max_degree=1, keep=fits, **params), data, max_degree=1, keep=fits)


def check_arguments(method: Callable[..., Sparsifier], params: dict[str, Any]) -> None:
    """Arguments can be read and set, and bad budgets are refused."""
    made = method(sparsity=0.5, **params)
    given = made.get_params()
    assert given["sparsity"] == 0.5 and all(given[name] == value for name, value in params.items()), "get_params"
    again = type(made)(**given)
    assert all(again.get_params()[name] is value for name, value in given.items()), "the constructor changes arguments"
    assert made.set_params(sparsity=0.25) is made and made.sparsity == 0.25, "set_params"
    for bad in (
        {"sparsity": 1.0},
        {"sparsity": -0.1},
        {"keep": -1},
        {},
        {"max_degree": 0},
        {"sparsity": 0.5, "keep": 3},
    ):
        try:
            method(**bad, **params)
        except InputError:
            continue
        raise AssertionError(f"{bad} is accepted as a budget")


def check_seed(method: Callable[..., Sparsifier], data: Data, params: dict[str, Any]) -> None:
    """The same seed gives the same graph, and random numbers of the caller are left alone."""
    graphs = []
    for state in (5, 6):
        torch.manual_seed(state)
        expected = torch.rand(3)
        torch.manual_seed(state)
        graphs.append(method(sparsity=0.5, seed=3, **params).fit(data).result_.graph)
        assert torch.equal(torch.rand(3), expected), "torch's own random numbers were drawn from"
    assert torch.equal(graphs[0].edge_index, graphs[1].edge_index), "the same seed gave another graph"


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
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(0, nodes - 1, (2, edges), generator=generator)
    index = index[:, index[0] != index[1]]
    if not directed:
        index = torch.cat([index, index.flip(0)], dim=1)
    index = torch.unique(index, dim=1)
    if duplicates:
        pair = index[:, :1]
        index = torch.cat([index, pair] if directed else [index, pair, pair.flip(0)], dim=1)
    if loops:
        index = torch.cat([index, torch.tensor([[0, 3], [0, 3]])], dim=1)
    index = index[:, torch.randperm(index.shape[1], generator=generator)]
    role = torch.randperm(nodes, generator=generator) % 3
    role[:classes] = 0
    data = Data(
        x=torch.randn(nodes, features, generator=generator),
        edge_index=index,
        y=torch.arange(nodes) % classes,
        train_mask=role == 0,
        val_mask=role == 1,
        test_mask=role == 2,
    )
    if weighted:
        low, high = index.amin(0), index.amax(0)
        data.edge_weight = 0.5 + ((low * 7 + high * 3) % 10) / 10
    return data
