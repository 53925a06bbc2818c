"""New nodes after the cut: their edges, chosen by the rule that chose the others."""

from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.api.result import Result
from gst.base.errors import InputError
from gst.base.modes import plain_torch, usable
from gst.graph.edgeset import EdgeSet
from gst.graph.select import top_k
from gst.methods import METHODS
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import make_search
from gst.methods.greedy.prior import edge_agreement, local_rank
from gst.nn.network import Network
from gst.train.models import build_network
from gst.train.task import SPLITS, Task

Rule = Literal["auto", "method", "greedy", "agreement", "random"]
_SCORES = tuple(f"{model}{part}" for model in ("", "retrain_", "dense_") for part in ("val", "test"))
_OLD = (*_SCORES, "agreement", "inference", "seconds", "out")


@plain_torch()
def extend(result: Result, data: Data, rule: Rule = "auto") -> Result:
    """The sparse graph of a run with new nodes in it.

    What the run decided stays. Of the edges at new nodes as many are kept as hold the run's sparsity s exactly on the
    grown graph: E' − round(s·E') in all. Nothing is trained; where the rule asks the model, it passes once over the
    dense graph.

    Args:
        result: of the run.
        data: the grown graph. The old nodes have their old numbers and come first, and between them are the edges that
            the run has seen.
        rule: how the new edges are ranked. ``"method"``: by the scores of the topology method on the grown graph;
            ``"greedy"``: always the edge that brings the model's answers closest to those on the dense graph;
            ``"agreement"``: every node keeps the neighbours of which the model believes the same; ``"random"``: a
            control. ``"auto"``: method for topology methods, greedy for those that train a model.
    """
    if rule not in get_args(Rule):
        raise InputError(f"rule {rule!r}: choose from {', '.join(get_args(Rule))}")
    if result.metrics.get("options", {}).get("weights"):
        raise InputError("this run gave its edges weights of their own, which depend on all others: run it again")
    edges, data = EdgeSet.from_data(data), usable(data)
    kept, new = old_decisions(result, data, edges)
    count = edges.num_edges - round(result.metrics["sparsity"] * edges.num_edges) - int(kept.sum())
    by = _rule_of(result) if rule == "auto" else rule
    network = None if result.model is None else _network(result, data)
    scores = _scores(result, data, edges, kept, new, count, by, network)
    keep = kept | top_k(scores.masked_fill(~new, -torch.inf), count)
    scores = scores.masked_fill(kept, torch.inf).masked_fill(~(kept | new), -torch.inf)
    metrics = {name: value for name, value in result.metrics.items() if name not in _OLD}
    metrics |= {"sparsity": 1 - int(keep.sum()) / edges.num_edges, "edges_total": edges.num_edges}
    metrics |= {"edges_kept": int(keep.sum()), "directed": edges.directed}
    metrics["extended"] = {
        "nodes": int(data.num_nodes) - int(result.graph.num_nodes),
        "edges": int(new.sum()),
        "kept": count,
        "rule": by,
    }
    if network is not None:
        metrics |= _measured(network, data, edges, keep)
    return replace(
        result,
        graph=edges.sparse_graph(data, keep),
        edge_mask=edges.to_columns(keep, True),
        scores=edges.to_columns(scores, torch.inf),
        metrics=metrics,
    )


def old_decisions(result: Result, data: Data, edges: EdgeSet) -> tuple[Tensor, Tensor]:
    """Which edges of the grown graph the run kept, and which it has not seen: those at new nodes."""
    nodes, grown = int(result.graph.num_nodes), int(data.num_nodes)
    if grown < nodes:
        raise InputError(f"the grown graph has {grown} nodes, the run {nodes}: old nodes stay and come first")
    if data.get("x") is None or data.x.shape[1] != result.graph.x.shape[1]:
        raise InputError(f"the grown graph needs x with {result.graph.x.shape[1]} features a node, as the run had")
    new = (edges.pairs >= nodes).any(0)
    seen = edges.num_edges - int(new.sum())
    if seen != result.metrics["edges_total"]:
        raise InputError(
            f"between old nodes are {seen} edges, in the run were {result.metrics['edges_total']}: "
            "only edges at new nodes can be chosen, others need a new run"
        )
    kept = torch.zeros(edges.num_edges, dtype=torch.bool)
    if result.graph.edge_index.shape[1]:
        number = edges.pairs[0] * grown + edges.pairs[1]
        ends = result.graph.edge_index[:, result.graph.edge_index[0] != result.graph.edge_index[1]]
        ends = ends if edges.directed else ends.sort(0).values
        wanted = (ends[0] * grown + ends[1]).unique()
        kept = torch.isin(number, wanted) & ~new
        if int(kept.sum()) != wanted.numel():
            raise InputError("kept edges are not in the grown graph: old nodes must have their old numbers")
    if int(kept.sum()) != result.metrics["edges_kept"]:
        raise InputError("the grown graph is directed otherwise than the run's: give both arcs of every pair, or one")
    return kept, new


def _rule_of(result: Result) -> str:
    method = METHODS.get(result.metrics["method"])
    return "method" if method is not None and method.kind == "topology" else "greedy"


def _scores(
    result: Result,
    data: Data,
    edges: EdgeSet,
    kept: Tensor,
    new: Tensor,
    count: int,
    rule: str,
    network: Network | None,
) -> Tensor:
    """One per edge, the highest of the new ones come first."""
    if rule == "random":
        return torch.rand(edges.num_edges, generator=torch.Generator().manual_seed(result.settings.seed)).double()
    if rule == "method":
        method = METHODS[result.metrics["method"]]
        if method.kind != "topology":
            raise InputError(f"rule 'method': {result.metrics['method']} does not score graphs alone; take greedy")
        given: dict[str, Any] = {"keep": 1, "seed": result.settings.seed, **result.metrics.get("options", {})}
        return method.make(**given).edge_scores(edges).double()
    if network is None:
        raise InputError(f"rule {rule!r} asks the model: give it to Result.load(folder, model=…)")
    with torch.no_grad():
        logits = network.logits(edges)
    task = _task(data, logits.shape[1])
    if rule == "greedy":
        return greedy_scores(network, edges, logits, kept, new, count, task.multilabel)
    return local_rank(edges, edge_agreement(edges, logits, task)).double()


def _task(data: Data, classes: int) -> Task:
    """What is known of labels: those of training nodes, if any."""
    none, y = torch.zeros(0, dtype=torch.long), data.get("y")
    if y is None or data.get("train_mask") is None:
        return Task(torch.full((int(data.num_nodes),), -1), none, none, none, classes, "accuracy")
    y = y.view(-1) if y.dim() == 2 and y.shape[1] == 1 else y
    return Task(y.nan_to_num(nan=-1).long(), data.train_mask.nonzero().flatten(), none, none, classes, "accuracy")


def greedy_scores(
    network: Network, edges: EdgeSet, logits: Tensor, kept: Tensor, new: Tensor, count: int, labels: bool = False
) -> Tensor:
    """The order in which a trained network wants the new edges, those of the run being there."""
    among = kept | new
    part, ids = edges.subset(among), among.nonzero().flatten()
    order, _ = make_search([network], part, [logits], Target.of(logits, labels), keep=kept[ids]).add(count)
    scores = torch.zeros(edges.num_edges, dtype=torch.float64)
    scores[ids[order]] = torch.arange(order.numel(), 0, -1, dtype=torch.float64)
    return scores


def _network(result: Result, data: Data) -> Network:
    assert result.model is not None
    network = build_network(result.model, "gcn", data, None, result.settings.model_copy(update={"device": "cpu"}))
    network.module.eval()
    return network


@torch.no_grad()
def _measured(network: Network, data: Data, edges: EdgeSet, keep: Tensor) -> dict[str, Any]:
    """How the model does on the grown sparse graph, and how often it answers as on the dense one."""
    sparse, dense = network.logits(edges.subset(keep)), network.logits(edges)
    found: dict[str, Any] = {"agreement": _task(data, sparse.shape[1]).agreement(sparse, dense)}
    if all(data.get(f"{split}_mask") is not None for split in SPLITS) and data.get("y") is not None:
        task = Task.from_data(data)
        found |= {part: task.score(sparse[getattr(task, part)], part) for part in ("val", "test")}
    return found
