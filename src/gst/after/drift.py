"""Drift: how far sparse and dense graph diverge when features or weights change after sparsification."""

from collections.abc import Sequence
from typing import Any

import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.base.randomness import seeded
from gst.graph.edgeset import EdgeSet
from gst.methods.result import Result
from gst.nn.feature_changes import dropped, shuffled
from gst.nn.network import Network
from gst.train.links import refuse_links
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
    """Compares the predictions of a run's model on the dense and the sparse graph, one row per change.

    Features: a random share of the columns is *dropped* (0 for all nodes) or *shuffled* (values permuted over the
    nodes), as when a data source fails or is mixed up. Weights: the model is trained further, on either graph.

    Args:
        result: of the run, with its model.
        data: the dense graph of the run.
        shares: of the features that change.
        epochs: of further training, with the run's learning rate and the training labels of ``data``.
        seed: of the random choices.

    Every row has ``change``, ``amount``, ``agreement`` (share of nodes with the same prediction on both graphs),
    ``divergence`` (KL of the sparse from the dense predictions, mean over nodes), ``dense_test`` and ``test`` (of the
    same model on the dense and on the sparse graph).
    """
    if result.model is None:
        raise InputError(
            "this run has an own model, which is not saved with it: give it to Result.load(folder, model=…)"
        )
    refuse_links(data, "drift")
    dense, sparse = both_graphs(result, data)
    data = data.clone()
    task = Task.from_data(data)
    rows = [{"change": "none", "amount": 0, **_compare(_network(result, data), task, dense, sparse)}]
    for change, changed in (("features dropped", dropped), ("features shuffled", shuffled)):
        for share in shares:
            data.x = changed(result.graph.x, share, seed)
            rows.append({"change": change, "amount": share, **_compare(_network(result, data), task, dense, sparse)})
    data.x = result.graph.x
    for name, edges in (("dense", dense), ("sparse", sparse)):
        for count in epochs:
            network = _train_further(result, data, task, edges, count, seed)
            row = {"change": f"trained on, {name} graph", "amount": count}
            rows.append({**row, **_compare(network, task, dense, sparse)})
    return rows


def both_graphs(result: Result, data: Data) -> tuple[EdgeSet, EdgeSet]:
    """The edges of the dense and of the sparse graph; refuses a dense graph that is not that of the run."""
    columns = data.edge_index.shape[1]
    if columns != result.edge_mask.numel():
        raise InputError(
            f"the graph has {columns} columns, that of the run {result.edge_mask.numel()}: give the run's dense graph"
        )
    kept = data.edge_index[:, result.edge_mask]
    if not torch.equal(kept, result.graph.edge_index[:, : kept.shape[1]]):
        raise InputError("the graph has other edges than that of the run: give the run's dense graph")
    if data.get("x") is None or data.x.shape != result.graph.x.shape:
        raise InputError("the graph has other features than that of the run: give the run's dense graph")
    dense = EdgeSet.from_data(data, result.metrics.get("by", "pairs"))
    if result.metrics.get("self_weights"):
        graph = result.graph
        return dense, EdgeSet.from_edge_index(graph.edge_index, dense.num_nodes, graph.edge_weight, "arcs")
    is_edge = dense.column_edge >= 0  # not a self-loop
    keep_mask = torch.zeros(dense.num_edges, dtype=torch.bool)
    keep_mask[dense.column_edge[is_edge]] = result.edge_mask[is_edge]
    return dense, dense.subset(keep_mask)


def _network(result: Result, data: Data) -> Network:
    """A copy of the run's model, bound to the features of ``data``."""
    return build_network(result.model, "gcn", data, None, result.training.model_copy(update={"device": "cpu"}))


@torch.no_grad()
def _compare(network: Network, task: Task, dense: EdgeSet, sparse: EdgeSet) -> dict[str, float]:
    network.module.eval()
    on_dense, on_sparse = network.logits(dense), network.logits(sparse)
    return {
        "agreement": task.agreement(on_dense, on_sparse),
        "divergence": float(task.divergence(on_dense, on_sparse)),
        "dense_test": task.score(on_dense[task.test], "test"),
        "test": task.score(on_sparse[task.test], "test"),
    }


def _train_further(result: Result, data: Data, task: Task, edges: EdgeSet, epochs: int, seed: int) -> Network:
    """The run's model after ``epochs`` more epochs on ``edges``."""
    network = _network(result, data)
    trainer = Trainer(network, task, lr=result.training.lr, weight_decay=result.training.weight_decay)
    with seeded(seed):
        for _ in range(epochs):
            trainer.step(edges)
    return network
