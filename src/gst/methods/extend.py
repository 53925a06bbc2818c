"""New nodes after the cut: their edges, chosen by the rule that chose the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.modes import plain_torch, without_inference_tensors
from gst.graph.cap import Cap
from gst.graph.edgeset import EdgeSet
from gst.graph.select import top_k
from gst.inference.serving.base import agreement, probabilities
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import make_search
from gst.methods.greedy.prior import edge_agreement, local_rank
from gst.methods.registry import METHODS
from gst.methods.removed import Removed
from gst.nn.network import Network
from gst.train.links import refuse_links
from gst.train.models import build_network
from gst.train.settings import Training
from gst.train.task import SPLITS, Task

Rule = Literal["auto", "method", "greedy", "agreement", "local", "random"]
_SCORES = tuple(f"{model}{part}" for model in ("", "retrain_", "dense_") for part in ("val", "test"))
_OUTDATED = (*_SCORES, "agreement", "measures", "inference", "seconds", "out")  # metrics of the graph before it grew


@dataclass(frozen=True)
class Extension:
    """What changes in a result when its graph has grown."""

    graph: Data
    edge_mask: Tensor
    scores: Tensor
    metrics: dict[str, Any]
    removed: Removed


@plain_torch()
def extend(
    graph: Data, metrics: Mapping[str, Any], model: nn.Module | None, training: Training, data: Data, rule: Rule
) -> Extension:
    """The sparse graph of a run with new nodes in it; see :meth:`gst.Result.extend`.

    Nothing is trained; where the rule asks the model, it passes once over the dense graph.
    """
    if rule not in get_args(Rule):
        raise InputError(f"rule {rule!r}: choose from {', '.join(get_args(Rule))}")
    options = metrics.get("options", {})
    if options.get("weights") or options.get("compensate"):
        raise InputError("this run gave its edges weights of their own, which depend on all others: run it again")
    edges, data = EdgeSet.from_data(data, metrics.get("by", "pairs")), without_inference_tensors(data)
    kept, new = old_decisions(graph, metrics, data, edges)
    num_added = edges.num_edges - round(metrics["sparsity"] * edges.num_edges) - int(kept.sum())
    limit = metrics.get("max_degree")
    room = None if limit is None else Cap.of(edges, limit).without(kept)
    if room is not None:
        num_added = min(num_added, room.among(new).capacity)
    resolved = _default_rule(metrics) if rule == "auto" else rule
    network = None if model is None else _network(model, data, training)
    if resolved == "random":
        generator = torch.Generator().manual_seed(training.seed)
        scores = torch.rand(edges.num_edges, generator=generator).double()
    elif resolved == "method":
        scores = _method_scores(metrics, edges, training.seed)
    elif network is None:
        raise InputError(f"rule {resolved!r} asks the model: give it to Result.load(folder, model=…)")
    else:
        scores = _model_scores(network, data, edges, kept, new, num_added, resolved, limit)
    if room is None:
        keep_mask = kept | top_k(scores.masked_fill(~new, -torch.inf), num_added)
    else:
        keep_mask = kept | room.top_k(scores, num_added, new)
    scores = scores.masked_fill(kept, torch.inf).masked_fill(~(kept | new), -torch.inf)
    grown = {name: value for name, value in metrics.items() if name not in _OUTDATED}
    grown |= {"sparsity": 1 - int(keep_mask.sum()) / edges.num_edges, "edges_total": edges.num_edges}
    grown |= {"edges_kept": int(keep_mask.sum()), "directed": not edges.symmetric, "by": edges.by}
    grown["extended"] = {
        "nodes": int(data.num_nodes) - int(graph.num_nodes),
        "edges": int(new.sum()),
        "kept": num_added,
        "rule": resolved,
    }
    if network is not None:
        grown |= _measured(network, data, edges, keep_mask)
    return Extension(
        graph=edges.sparse_graph(data, keep_mask),
        edge_mask=edges.to_columns(keep_mask, True),
        scores=edges.to_columns(scores, torch.inf),
        metrics=grown,
        removed=Removed.of(data, edges.to_columns(keep_mask, True)),
    )


def old_decisions(graph: Data, metrics: Mapping[str, Any], data: Data, edges: EdgeSet) -> tuple[Tensor, Tensor]:
    """Which edges of the grown graph the run kept, and which it has not seen: those at new nodes."""
    nodes, grown = int(graph.num_nodes), int(data.num_nodes)
    if grown < nodes:
        raise InputError(f"the grown graph has {grown} nodes, the run {nodes}: old nodes stay and come first")
    refuse_links(data, "extend")
    if data.get("x") is None or data.x.shape[1] != graph.x.shape[1]:
        raise InputError(f"the grown graph needs x with {graph.x.shape[1]} features a node, as the run had")
    new = (edges.pairs >= nodes).any(0)
    seen = edges.num_edges - int(new.sum())
    if seen != metrics["edges_total"]:
        raise InputError(
            f"between old nodes are {seen} edges, in the run were {metrics['edges_total']}: "
            "only edges at new nodes can be chosen, others need a new run"
        )
    kept = torch.zeros(edges.num_edges, dtype=torch.bool)
    if graph.edge_index.shape[1]:
        number = edges.pairs[0] * grown + edges.pairs[1]
        ends = graph.edge_index[:, graph.edge_index[0] != graph.edge_index[1]]
        ends = ends if edges.directed else ends.sort(0).values
        wanted = (ends[0] * grown + ends[1]).unique()
        kept = torch.isin(number, wanted) & ~new
        if int(kept.sum()) != wanted.numel():
            raise InputError("kept edges are not in the grown graph: old nodes must have their old numbers")
    if int(kept.sum()) != metrics["edges_kept"]:
        raise InputError("the grown graph is directed otherwise than the run's: give both arcs of every pair, or one")
    return kept, new


def _default_rule(metrics: Mapping[str, Any]) -> str:
    method = METHODS.get(metrics["method"])
    return "method" if method is not None and method.kind == "topology" else "greedy"


def _method_scores(metrics: Mapping[str, Any], edges: EdgeSet, seed: int) -> Tensor:
    """The scores of the run's topology method on the grown graph."""
    method = METHODS.get(metrics["method"])
    if method is None or method.kind != "topology":
        raise InputError(f"rule 'method': {metrics['method']} does not score graphs alone; take greedy")
    return method(keep=1, seed=seed, **metrics.get("options", {})).edge_scores(edges).double()


def _model_scores(
    network: Network,
    data: Data,
    edges: EdgeSet,
    kept: Tensor,
    new: Tensor,
    num_added: int,
    rule: str,
    limit: int | None,
) -> Tensor:
    """One per edge by what the model answers; the highest of the new ones come first."""
    with torch.no_grad():
        logits = network.logits(edges.subset(kept) if rule == "local" else edges)
    task = _task(data, logits.shape[1])
    if rule == "greedy":
        return greedy_scores(network, edges, logits, kept, new, num_added, task.multilabel, limit)
    if rule == "local":  # as an engine ranks them: new nodes have no edges yet and answer by their features alone
        p = probabilities(logits.numpy(), task.multilabel)
        u, v = edges.pairs.numpy()
        return torch.from_numpy(agreement(p[u], p[v], task.multilabel)).double()
    return local_rank(edges, edge_agreement(edges, logits, task)).double()


def _task(data: Data, classes: int) -> Task:
    """What is known of labels: those of training nodes, if any."""
    none, y = torch.zeros(0, dtype=torch.long), data.get("y")
    if y is None or data.get("train_mask") is None:
        return Task(torch.full((int(data.num_nodes),), -1), none, none, none, classes, "accuracy")
    y = y.view(-1) if y.dim() == 2 and y.shape[1] == 1 else y
    return Task(y.nan_to_num(nan=-1).long(), data.train_mask.nonzero().flatten(), none, none, classes, "accuracy")


def greedy_scores(
    network: Network,
    edges: EdgeSet,
    logits: Tensor,
    kept: Tensor,
    new: Tensor,
    count: int,
    labels: bool = False,
    limit: int | None = None,
) -> Tensor:
    """The order in which a trained network wants the new edges, those of the run being there."""
    among = kept | new
    part, ids = edges.subset(among), among.nonzero().flatten()
    room = None if limit is None else Cap.of(part, limit).room
    search = make_search([network], part, [logits], Target.of(logits, labels), keep_mask=kept[ids], room=room)
    order, _ = search.add(count)
    scores = torch.zeros(edges.num_edges, dtype=torch.float64)
    scores[ids[order]] = torch.arange(order.numel(), 0, -1, dtype=torch.float64)
    return scores


def _network(model: nn.Module, data: Data, training: Training) -> Network:
    network = build_network(model, "gcn", data, None, training.model_copy(update={"device": "cpu"}))
    network.module.eval()
    return network


@torch.no_grad()
def _measured(network: Network, data: Data, edges: EdgeSet, keep: Tensor) -> dict[str, Any]:
    """How the model does on the grown sparse graph, and how often it answers as on the dense one."""
    sparse, dense = network.logits(edges.subset(keep)), network.logits(edges)
    metrics: dict[str, Any] = {"agreement": _task(data, sparse.shape[1]).agreement(sparse, dense)}
    if all(data.get(f"{split}_mask") is not None for split in SPLITS) and data.get("y") is not None:
        task = Task.from_data(data)
        metrics |= {part: task.score(sparse[getattr(task, part)], part) for part in ("val", "test")}
    return metrics
