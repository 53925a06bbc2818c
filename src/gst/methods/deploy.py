"""GST's recipe "deploy": the edges that a trained model needs to keep its answers."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from gst.base.versions import of_method
from gst.methods.base import Found
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.path import Path, follow, make_search
from gst.nn.network import Network
from gst.storage.cache import Content
from gst.storage.files import flatten, unflatten
from gst.train.run import Dense, Problem
from gst.train.trainer import Progress

MARKS = 50  # shares of all edges at which validation looks at a path, and its state can be saved


def deploy(problem: Problem, kept: int, trained: bool = False) -> Found:
    """The ``kept`` edges on the path of the model trained on all edges, with that model as it is.

    ``trained``: the user's model is that model; else it is trained first, plainly, for E + D epochs.
    """
    if trained:
        problem.dense = _as_it_is(problem)
    network, edges = problem.network(), problem.edges
    network.module.load_state_dict(problem.dense.model)
    network.module.eval()
    way = Way()
    if 0 < kept < edges.num_edges:
        way = find_way(problem, network, kept)
        scores = way.path.scores(kept, edges.num_edges).to(problem.device)
    else:
        scores = torch.full((edges.num_edges,), float(kept > 0), dtype=torch.float64, device=problem.device)
    keep = scores > 0
    with torch.no_grad():
        logits = network.logits(edges.subset(keep))
    val = problem.task.score(logits[problem.task.val], "val")
    seconds = {"anchor": problem.dense.meta["seconds"], "topology": 0.0, "sparse": way.seconds}
    history = [step for step in way.history if (step["kept"] >= kept if way.path.down else step["kept"] <= kept)]
    return Found(keep, scores, network.module, logits, val, seconds, history, problem.agreement(logits))


@torch.no_grad()
def _as_it_is(problem: Problem) -> Dense:
    network, task = problem.network(), problem.task
    network.module.eval()
    logits = network.logits(problem.edges)
    scores = {f"dense_{split}": task.score(logits[getattr(task, split)], split) for split in ("val", "test")}
    return Dense(network.module.state_dict(), logits, {**scores, "seconds": 0.0})


@dataclass
class Way:
    """A path and how it was found."""

    path: Path = field(default_factory=Path)
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def find_way(problem: Problem, network: Network, kept: int) -> Way:
    """A path to ``kept`` edges or beyond; one that is stored is used and, where it is too short, extended."""
    way = Way(Path.towards(kept, problem.edges, network))
    steps, down = way.path.steps(kept, problem.edges.num_edges), way.path.down
    depends = {**problem.depends, "sparse_epochs": problem.settings.sparse_epochs}
    depends |= {"search": of_method("deploy"), "direction": "down" if down else "up"}

    def enough(content: Content) -> bool:
        return content[0]["order"].numel() >= steps

    def make(content: Content | None) -> Content:
        found = way if content is None else _unpack(content, down)
        _extend(problem, network, found, steps)
        tensors = {"order": found.path.order, **flatten("memory", found.path.memory)}
        return tensors, {"history": found.history, "seconds": found.seconds}

    return _unpack(problem.store.grow("path", depends, enough, make), down)


def _unpack(content: Content, down: bool) -> Way:
    tensors, meta = content
    return Way(Path(tensors["order"], unflatten("memory", tensors), down), list(meta["history"]), meta["seconds"])


def _extend(problem: Problem, network: Network, way: Way, steps: int) -> None:
    edges, task, clock = problem.edges, problem.task, problem.checkpoint.clock
    start, before, done = clock(), way.seconds, way.path.order.numel()
    marks = [round(edges.num_edges * mark / MARKS) for mark in range(1, MARKS + 1)]
    ends = [end for end in marks if done < end < steps] + [steps]
    stages = problem.checkpoint.loop("greedy", len(ends), way, edges)
    path, wanted = way.path, problem.dense.logits
    search = make_search([network], edges, [wanted], Target.of(wanted, task.multilabel), path=path)
    best = max((step["val"] for step in way.history), default=0.0)
    for stage in stages:
        follow(search, path, ends[stage - 1])
        val, length = _validate(problem, network, torch.from_numpy(search.keep)), int(search.keep.sum())
        best = max(best, val)
        if ends[stage - 1] in marks:  # where a path ends shall leave no trace in one that goes on
            way.history.append({"epoch": len(way.history) + 1, "val": val, "kept": length})
        way.seconds = before + clock() - start
        problem.watch(Progress("greedy", stage, len(ends), val, best, 1 - length / edges.num_edges))


@torch.no_grad()
def _validate(problem: Problem, network: Network, keep: Tensor) -> float:
    nodes = problem.task.val
    return problem.task.score(network.logits(problem.edges.subset(keep.to(problem.device)), None, nodes), "val")
