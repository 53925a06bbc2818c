"""Drift: how the sparse and the dense graph part when features or weights change after the cut."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.api.result import Result
from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.base.randomness import seeded
from gst.graph.edgeset import EdgeSet
from gst.nn.network import Network
from gst.sparse.layouts import entries, is_sparse
from gst.train.models import build_network
from gst.train.task import Task
from gst.train.trainer import Trainer

SHARES = (0.1, 0.2, 0.3)
EPOCHS = (10, 50)


@plain_torch()
def drift(
    result: Result,
    data: Data,
    *,
    shares: Sequence[float] = SHARES,
    epochs: Sequence[int] = EPOCHS,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """One row a change: what the model of a run says on the dense and on the sparse graph once things have changed.

    Features: a share of them, chosen at random, is *dropped* (0 for all nodes) or *shuffled* (its values change
    owners), as when a source dries up or goes astray. Weights: the model trains on for some epochs, on either graph.

    Args:
        result: of the run, with its model.
        data: the dense graph that the run began with.
        shares: of the features.
        epochs: of further training, with the run's learning rate and the training labels of ``data``.
        seed: of what is chosen at random.

    Every row has ``change``, ``amount``, ``agreement`` (share of nodes that both graphs answer alike), ``divergence``
    (KL of the sparse answers from the dense ones, mean over nodes), ``dense_test`` and ``test`` (of the same model on
    the dense and on the sparse graph).
    """
    if result.model is None:
        raise InputError("this run has a model of your own: give it to Result.load(folder, model=…)")
    dense, sparse = both_graphs(result, data)
    data = data.clone()
    task = Task.from_data(data)
    rows = [{"change": "none", "amount": 0, **_parted(_network(result, data), task, dense, sparse)}]
    for change, make in (("features dropped", dropped), ("features shuffled", shuffled)):
        for share in shares:
            data.x = make(result.graph.x, share, seed)
            rows.append({"change": change, "amount": share, **_parted(_network(result, data), task, dense, sparse)})
    data.x = result.graph.x
    for name, edges in (("dense", dense), ("sparse", sparse)):
        for count in epochs:
            network = _trained_on(result, data, task, edges, count, seed)
            row = {"change": f"trained on, {name} graph", "amount": count}
            rows.append({**row, **_parted(network, task, dense, sparse)})
    return rows


def dropped(x: Tensor, share: float, seed: int) -> Tensor:
    """``x`` without a share of its columns: they are 0."""
    columns = _columns(x, share, seed)
    if is_sparse(x):
        row, column, value = entries(x)
        return _sparse(row, column, value.masked_fill(torch.isin(column, columns), 0), x)
    changed = x.clone()
    changed[:, columns] = 0
    return changed


def shuffled(x: Tensor, share: float, seed: int) -> Tensor:
    """``x`` with the values of a share of its columns given to other nodes, each column by itself."""
    columns, generator = _columns(x, share, seed), torch.Generator().manual_seed(seed + 1)
    if not is_sparse(x):
        changed = x.clone()
        for column in columns.tolist():
            changed[:, column] = x[torch.randperm(x.shape[0], generator=generator), column]
        return changed
    row, column_of, value = entries(x)
    by_column = torch.sort(column_of, stable=True).indices
    start = torch.searchsorted(column_of[by_column], torch.arange(x.shape[1] + 1)).tolist()
    for column in columns.tolist():
        here = by_column[start[column] : start[column + 1]]
        row[here] = torch.randperm(x.shape[0], generator=generator).argsort()[row[here]]  # who gets what each had
    return _sparse(row, column_of, value, x)


def _sparse(row: Tensor, column: Tensor, value: Tensor, like: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(torch.stack([row, column]), value, like.shape).to_sparse_csr()


def _columns(x: Tensor, share: float, seed: int) -> Tensor:
    if not 0 <= share <= 1:
        raise InputError(f"share {share} is outside [0, 1]: it is the share of features that change")
    order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(seed))
    return order[: round(share * x.shape[1])]


def both_graphs(result: Result, data: Data) -> tuple[EdgeSet, EdgeSet]:
    """The edges of the dense and of the sparse graph; refuses a dense graph that is not the run's."""
    columns = data.edge_index.shape[1]
    if columns != result.edge_mask.numel():
        raise InputError(f"the graph has {columns} columns, that of the run {result.edge_mask.numel()}: it is another")
    if not torch.equal(data.edge_index[:, result.edge_mask], result.graph.edge_index):
        raise InputError("the graph has other edges than that of the run: it is another")
    if data.get("x") is None or data.x.shape != result.graph.x.shape:
        raise InputError("the graph has other features than that of the run: it is another")
    dense = EdgeSet.from_data(data)
    real = dense.column_edge >= 0
    keep = torch.zeros(dense.num_edges, dtype=torch.bool)
    keep[dense.column_edge[real]] = result.edge_mask[real]
    return dense, dense.subset(keep)


def _network(result: Result, data: Data) -> Network:
    """A copy of the run's model, bound to these features."""
    return build_network(result.model, "gcn", data, None, result.settings.model_copy(update={"device": "cpu"}))


@torch.no_grad()
def _parted(network: Network, task: Task, dense: EdgeSet, sparse: EdgeSet) -> dict[str, float]:
    network.module.eval()
    whole, part = network.logits(dense), network.logits(sparse)
    return {
        "agreement": task.agreement(whole, part),
        "divergence": float(task.divergence(whole, part)),
        "dense_test": task.score(whole[task.test], "test"),
        "test": task.score(part[task.test], "test"),
    }


def _trained_on(result: Result, data: Data, task: Task, edges: EdgeSet, epochs: int, seed: int) -> Network:
    """The run's model after so many more epochs on these edges."""
    network, settings = _network(result, data), result.settings
    trainer = Trainer(network, task, lr=settings.lr, weight_decay=settings.weight_decay)
    with seeded(seed):
        for _ in range(epochs):
            trainer.step(edges)
    return network
