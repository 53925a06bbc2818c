"""GST's recipe "deploy": the edges that a trained model needs to keep its answers."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gst.artifact import flatten, unflatten
from gst.cache import Content
from gst.greedy.engine import Path, follow, make_search
from gst.greedy.target import Target
from gst.nn.network import Network
from gst.problem import Problem
from gst.sparsifiers.base import Found
from gst.training import Progress

STAGES = 25  # in which a path is found; after each, the state is saved and validation looked at


def deploy(problem: Problem, kept: int) -> Found:
    """The first ``kept`` edges of the path of the model trained on all edges, with that model as it is."""
    network, edges = problem.network(), problem.edges
    network.module.load_state_dict(problem.dense.model)
    network.module.eval()
    way = Way()
    if 0 < kept < edges.num_edges:
        way = find_way(problem, network, kept)
        scores = way.path.scores(edges.num_edges, kept).to(problem.device)
    else:
        scores = torch.full((edges.num_edges,), float(kept > 0), dtype=torch.float64, device=problem.device)
    keep = scores > 0
    with torch.no_grad():
        logits = network.logits(edges.subset(keep))
    val = problem.task.score(logits[problem.task.val], "val")
    seconds = {"anchor": problem.dense.meta["seconds"], "topology": 0.0, "sparse": way.seconds}
    history = [step for step in way.history if step["kept"] <= kept]
    return Found(keep, scores, network.module, logits, val, seconds, history)


@dataclass
class Way:
    """A path and how it was found."""

    path: Path = field(default_factory=Path)
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def find_way(problem: Problem, network: Network, kept: int) -> Way:
    """A path of ``kept`` edges or more; one that is stored is used and, where it is too short, extended."""
    depends = {**problem.depends, "sparse_epochs": problem.settings.sparse_epochs}

    def enough(content: Content) -> bool:
        return content[0]["order"].numel() >= kept

    def make(content: Content | None) -> Content:
        way = Way() if content is None else _unpack(content)
        _extend(problem, network, way, kept)
        tensors = {"order": way.path.order, **flatten("memory", way.path.memory)}
        return tensors, {"history": way.history, "seconds": way.seconds}

    return _unpack(problem.store.grow("path", depends, enough, make))


def _unpack(content: Content) -> Way:
    tensors, meta = content
    return Way(Path(tensors["order"], unflatten("memory", tensors)), list(meta["history"]), meta["seconds"])


def _extend(problem: Problem, network: Network, way: Way, kept: int) -> None:
    edges, task, clock = problem.edges, problem.task, problem.checkpoint.clock
    start, before, done = clock(), way.seconds, way.path.order.numel()
    ends = torch.linspace(done, kept, STAGES + 1).round().long().tolist()[1:]
    stages = problem.checkpoint.loop("greedy", STAGES, way, edges)
    wanted = problem.dense.logits
    search = make_search([network], edges, [wanted], Target.of(wanted, task.multilabel), path=way.path)
    best = max((step["val"] for step in way.history), default=0.0)
    for stage in stages:
        follow(search, way.path, ends[stage - 1])
        val = _validate(problem, network, torch.from_numpy(search.keep))
        best = max(best, val)
        way.history.append({"epoch": len(way.history) + 1, "val": val, "kept": way.path.order.numel()})
        way.seconds = before + clock() - start
        problem.watch(Progress("greedy", stage, STAGES, val, best, 1 - way.path.order.numel() / edges.num_edges))


@torch.no_grad()
def _validate(problem: Problem, network: Network, keep: Tensor) -> float:
    nodes = problem.task.val
    return problem.task.score(network.logits(problem.edges.subset(keep.to(problem.device)), None, nodes), "val")
