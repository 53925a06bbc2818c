"""Deploy: the edges that a trained model needs to keep its answers."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.base.versions import method_version
from gst.graph.edgeset import By, check_by
from gst.methods.base import LearnedSparsifier
from gst.methods.found import Found
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.links import link_objective
from gst.methods.greedy.path import Path, extend_path, make_search
from gst.methods.registry import register
from gst.nn.links import LinkNetwork
from gst.nn.network import Network, OwnNetwork
from gst.nn.recognise import native
from gst.storage.cache import Content
from gst.storage.files import flatten, unflatten
from gst.train.run import Run
from gst.train.trainer import Progress

FORMAT = 2  # of a stored path
Objective = tuple[Network, Tensor, Target]  # what is searched with, its wanted answers and their divergence
MARKS = 50  # shares of all edges at which a path is validated and its state can be saved


@register("deploy")
@dataclass(kw_only=True, eq=False, repr=False)
class Deploy(LearnedSparsifier):
    r"""Keeps the edges that a trained model needs for its answers; the model itself is not touched.

    .. math:: M ← M + \arg\min_{e ∉ M} D_T(M + e), \quad M = ∅ \text{ at first}

    D_T is the divergence of the model's answers on M from those on all edges
    (:class:`~gst.methods.greedy.divergence.Target`). Where most edges stay, those that go are sought instead. One path
    serves every sparsity. What is kept are the answers about *these* nodes with *these* features; a model trained from
    scratch on the sparse graph is another matter (``retrain=True`` measures it).

    A trained model needs no symmetric graph: every arc is an edge of its own, which the budget counts, also where the
    data are undirected. ``by="pairs"`` keeps or removes both arcs of a pair together.

    ``Deploy(model)`` takes your trained model with the weights it has; ``Deploy(backbone=…)`` first trains one on all
    edges, E + D epochs.

    Args:
        by: what counts as an edge of an undirected graph, ``"arcs"`` or ``"pairs"``.

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = gst.Deploy(sparsity=0.8, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> metrics = est.result_.metrics
    >>> metrics["edges_kept"] == metrics["edges_total"] - round(0.8 * metrics["edges_total"])
    True
    """

    by: str = "arcs"

    complexity: ClassVar[str] = "E + D epochs, one greedy path"
    reference: ClassVar[str] = "this project"
    takes_trained_model: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        if check_by(self.by) == "pairs" and self.max_degree is not None:
            raise InputError('max_degree and by = "pairs": a cap on what a node reads counts arcs, take by = "arcs"')

    @property
    def counts_by(self) -> By:
        return check_by(self.by)

    def search(self, run: Run, num_kept: int) -> Found:
        edges = run.edges
        network = run.network()
        network.module.load_state_dict(run.dense.model)
        network.module.eval()
        record = PathRecord()
        if 0 < num_kept < edges.num_edges:
            record = find_path(run, searched(network), num_kept)
            scores = record.path.scores(num_kept, edges.num_edges).to(run.device)
        else:
            scores = torch.full((edges.num_edges,), float(num_kept > 0), dtype=torch.float64, device=run.device)
        keep_mask = scores > 0
        with torch.no_grad():
            logits = network.logits(edges.subset(keep_mask))
        return Found(
            keep_mask,
            scores,
            network.module,
            logits,
            val=run.task.score(logits[run.task.val], "val"),
            seconds={"anchor": run.dense.seconds, "topology": 0.0, "sparse": record.seconds},
            history=[mark for mark in record.history if _is_before(mark["kept"], num_kept, record.path.down)],
            agreement=run.agreement(logits),
        )


def searched(network: Network) -> Network:
    """The network in the form that the kernels read, if they can; else as it is."""
    if not isinstance(network, OwnNetwork):
        return network
    return native(network.module, network.data) or network


def _is_before(mark: int, num_kept: int, down: bool) -> bool:
    """Whether a path that ends with ``num_kept`` edges has passed a mark."""
    return mark >= num_kept if down else mark <= num_kept


@dataclass
class PathRecord:
    """A path and how it was found."""

    path: Path = field(default_factory=Path)
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def find_path(run: Run, network: Network, num_kept: int) -> PathRecord:
    """A path to ``num_kept`` edges or beyond; a stored one is used and, where it is too short, extended."""
    objective = _objective(run, network)
    new = PathRecord(Path.for_budget(num_kept, run.edges, objective[0]) if run.cap is None else Path())
    steps, down = new.path.steps(num_kept, run.edges.num_edges), new.path.down
    depends = {**run.depends_on_all, "search": method_version("deploy"), "direction": "down" if down else "up"}
    depends |= {"format": FORMAT, "max_degree": run.max_degree}

    def enough(content: Content) -> bool:
        return content[0]["order"].numel() >= steps

    def make(content: Content | None) -> Content:
        record = new if content is None else _unpack(content, down)
        _extend(run, network, objective, record, steps)
        tensors = {"order": record.path.order, **flatten("memory", record.path.memory)}
        return tensors, {"history": record.history, "seconds": record.seconds}

    return _unpack(run.store.grow("path", depends, enough, make), down)


def _unpack(content: Content, down: bool) -> PathRecord:
    tensors, meta = content
    path = Path(tensors["order"], unflatten("memory", tensors), down)
    return PathRecord(path, list(meta["history"]), meta["seconds"])


def _objective(run: Run, network: Network) -> Objective:
    if isinstance(network, LinkNetwork):
        return link_objective(network, run.edges, run.dense.logits)
    return network, run.dense.logits, Target.of(run.dense.logits, run.task.multilabel)


def _extend(run: Run, network: Network, objective: Objective, record: PathRecord, steps: int) -> None:
    """Follows the path to so many steps, validating it at every mark."""
    edges, path, clock = run.edges, record.path, run.checkpoint.clock
    start, seconds_before, done = clock(), record.seconds, path.order.numel()
    marks = [round(edges.num_edges * mark / MARKS) for mark in range(1, MARKS + 1)]
    ends = [end for end in marks if done < end < steps] + [steps]
    stages = run.checkpoint.loop("greedy", len(ends), record, edges)
    path = record.path  # a resumed loop has put another one there
    searched, wanted, target = objective
    room = None if run.cap is None else run.cap.room
    search = make_search([searched], edges, [wanted], target, path=path, room=room)
    best = max((mark["val"] for mark in record.history), default=0.0)
    for stage in stages:
        extend_path(search, path, ends[stage - 1])
        val, length = _validate(run, network, torch.from_numpy(search.keep_mask)), int(search.keep_mask.sum())
        best = max(best, val)
        if ends[stage - 1] in marks:  # the end of a path is no mark: one that goes on must not remember it
            record.history.append({"epoch": len(record.history) + 1, "val": val, "kept": length})
        record.seconds = seconds_before + clock() - start
        run.watch(Progress("greedy", stage, len(ends), val, best, 1 - length / edges.num_edges))


@torch.no_grad()
def _validate(run: Run, network: Network, keep_mask: Tensor) -> float:
    nodes = run.task.val
    return run.task.score(network.logits(run.subset(keep_mask), None, nodes), "val")
