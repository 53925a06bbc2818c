"""Deploy: the edges that a trained model needs to keep its answers."""

from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.names import resolve_name
from gst.base.versions import method_version
from gst.graph.adjacency_input import with_edge_index
from gst.graph.edgeset import By, check_by
from gst.graph.typed import TypedEdges
from gst.methods.base import LearnedSparsifier
from gst.methods.found import Found
from gst.methods.greedy.batched import BatchedSearch, trials_of_path
from gst.methods.greedy.cost import announce, show_time_left
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.links import link_objective
from gst.methods.greedy.network_arrays import all_known
from gst.methods.greedy.path import Path, extend_path, make_search
from gst.methods.greedy.self_weights import self_weights, sums, with_self_loops
from gst.methods.registry import register
from gst.methods.scenarios import (
    CANDIDATES,
    TOLERATED,
    Robustness,
    Scenarios,
    copies,
    held_out,
    on_features,
    robustness,
    validated,
)
from gst.nn.feature_changes import CHANGES
from gst.nn.heads import check_head, units
from gst.nn.links import LinkNetwork
from gst.nn.network import Network
from gst.nn.recognise import TapeNetwork, recognised
from gst.nn.trained import TrainedNetwork
from gst.storage.cache import Content
from gst.storage.checkpoint import BaseCheckpoint
from gst.storage.files import flatten, unflatten
from gst.train.links import has_links
from gst.train.run import Run
from gst.train.trainer import Progress, Watcher, silent

FORMAT = 3  # of a stored path
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

    ``Deploy(model)`` takes your trained model with the weights it has, on a graph with or without labels and splits;
    ``Deploy(backbone=…)`` first trains one on all edges, E + D epochs.

    Args:
        by: what counts as an edge of an undirected graph, ``"arcs"`` or ``"pairs"``.
        head: what the outputs of your model mean: ``"classes"``, ``"labels"`` (several yes/no), ``"logit"`` (one),
            ``"regression"``, ``"embedding"``; ``"auto"``: as y says, classes without y, embeddings of a ``GAE``.
        output: which part holds the answers of a model that returns a tuple, list or dict.
        scenarios: copies of the features, changed, on which the answers are kept as well, 8 for instance; ``"auto"``:
            those that validation (without labels, agreement) on other draws finds best, at 0.2 points as cut.
        change: what happens to the features of a copy: ``"dropped"`` or ``"shuffled"`` columns, ``"perturbed"`` cells.
        strength: the share of the features that change.
        compensate: of networks that sum over neighbours (gin): give nodes self-loops whose weights make up for the sums
            that are missing (:mod:`~gst.methods.greedy.self_weights`). They are in the ``edge_weight`` of the sparse
            graph, after its other columns, cost no read and are counted in ``metrics["self_weights"]``.

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = gst.Deploy(sparsity=0.8, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> metrics = est.result_.metrics
    >>> metrics["edges_kept"] == metrics["edges_total"] - round(0.8 * metrics["edges_total"])
    True
    """

    by: str = "arcs"
    head: str = "auto"
    output: int | str | None = None
    scenarios: int | Literal["auto"] | None = None
    change: str = "dropped"
    strength: float = 0.4
    compensate: bool = False

    complexity: ClassVar[str] = "E + D epochs, one greedy path"
    reference: ClassVar[str] = "this project"
    takes_trained_model: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        if check_by(self.by) == "pairs" and self.max_degree is not None:
            raise InputError('max_degree and by = "pairs": a cap on what a node reads counts arcs, take by = "arcs"')
        check_head(self.head)
        resolve_name("change", self.change, tuple(CHANGES))
        if not 0 < self.strength < 1:
            raise InputError(f"strength {self.strength} is outside (0, 1): it is the share of features that change")
        whole = isinstance(self.scenarios, int) and not isinstance(self.scenarios, bool) and self.scenarios >= 0
        if self.scenarios not in (None, "auto") and not whole:
            raise InputError(f"scenarios {self.scenarios!r}: give a number of copies, 'auto' or None")

    @property
    def model_options(self) -> dict[str, Any]:
        return {"head": self.head, "output": self.output}

    def run(self, data: Any, checkpoint: BaseCheckpoint | None = None, watch: Watcher = silent) -> Run:
        return super().run(with_edge_index(data), checkpoint, watch)

    def transform(self, data: Data) -> Data:
        return super().transform(with_edge_index(data))

    @property
    def counts_by(self) -> By:
        return check_by(self.by)

    def _path(self, run: Run, wanted: "Wanted", num_kept: int) -> "PathRecord":
        """The path that these arguments ask for; with ``scenarios="auto"`` the best of several."""
        if isinstance(self.scenarios, int) or self.scenarios is None:
            scenarios = Scenarios(self.scenarios, self.change, self.strength) if self.scenarios else None
            return find_path(run, wanted.with_copies(run, scenarios), num_kept)
        draws = [on_features(wanted.judge, x) for x in held_out(changeable(run), run.training.seed)]
        best, safe, seconds = PathRecord(), Robustness(-inf, -inf), 0.0
        for scenarios in CANDIDATES:
            record = find_path(run, wanted.with_copies(run, scenarios), num_kept)
            seconds += record.seconds
            keep_mask = record.path.scores(num_kept, run.edges.num_edges) > 0
            found = robustness(run, wanted.judge, draws, keep_mask)
            if scenarios is None:
                best, safe = record, found
            elif found.as_cut >= safe.as_cut - TOLERATED and found.changed > safe.changed:
                best, safe = record, Robustness(safe.as_cut, found.changed)
        best.seconds = seconds
        return best

    def search(self, run: Run, num_kept: int) -> Found:
        network = run.network()
        network.module.load_state_dict(run.dense.model)
        network.module.eval()
        record, weights, data = PathRecord(), None, run.data
        if self.compensate and num_kept < run.edges.num_edges:
            weights = self._self_weights(run, network)
            run = run.compensated_by(weights)
        edges = run.edges
        if 0 < num_kept < edges.num_edges:
            record = self._path(run, objective(run, network), num_kept)
            scores = record.path.scores(num_kept, edges.num_edges).to(run.device)
        else:
            scores = torch.full((edges.num_edges,), float(num_kept > 0), dtype=torch.float64, device=run.device)
        keep_mask = scores > 0
        with torch.no_grad():
            logits = network.logits(edges.subset(keep_mask))
        return Found(
            keep_mask,
            scores,
            network.whole if isinstance(network, TrainedNetwork) else network.module,
            logits,
            val=run.task.score(logits[run.task.val], "val"),
            seconds={"anchor": run.dense.seconds, "topology": 0.0, "sparse": record.seconds},
            history=[mark for mark in record.history if _is_before(mark["kept"], num_kept, record.path.down)],
            agreement=run.agreement(logits),
            graph=None if weights is None else with_self_loops(edges.sparse_graph(data, keep_mask), weights.cpu()),
        )

    def _self_weights(self, run: Run, network: Network) -> Tensor:
        if not sums(network):
            raise InputError(
                "compensate is for networks that sum over neighbours: take --backbone gin, or leave it out"
            )
        return self_weights(network, run.edges, run.dense.logits, Target.of(run.dense.logits, run.task.multilabel))


@dataclass(frozen=True)
class Wanted:
    """What a search is to keep.

    Attributes:
        networks: first the one to serve, then its copies on changed features.
        answers: those that each should keep.
        target: their divergence.
        judge: the network to serve as it is validated.
        scenarios: what the copies are.
    """

    networks: list[Network]
    answers: list[Tensor]
    target: Target
    judge: Network
    scenarios: Scenarios | None = None

    def with_copies(self, run: Run, scenarios: Scenarios | None) -> "Wanted":
        """The same, and copies of the network on changed features."""
        if scenarios is None:
            return self
        x = changeable(run)
        networks, answers = copies(self.networks[0], run.edges, self.answers[0], x, scenarios, run.training.seed)
        return replace(self, networks=networks, answers=answers, scenarios=scenarios)


def changeable(run: Run) -> Tensor:
    """The features of the run, for scenarios."""
    x = run.data.get("x") if isinstance(run.data, Data) else None
    if x is None or run.task.num_classes == 0 or has_links(run.data):
        raise InputError("scenarios change x, for answers of nodes of one type: leave them out here")
    return x.to(run.device)


def objective(run: Run, network: Network) -> Wanted:
    """The network in the form that the kernels read, if they can, and the answers that it should keep.

    Several numbers per node are compared in units of their standard deviation.
    """
    wanted = run.dense.logits
    if isinstance(network, LinkNetwork):
        searched, answers, target = link_objective(network, run.edges, wanted)
        return Wanted([searched], [answers], target, network)
    if not isinstance(network, TrainedNetwork):
        return Wanted([network], [wanted], Target.for_head(run.task.head, wanted), network)
    unit = units(wanted) if run.task.head == "regression" else None
    known: TrainedNetwork | TapeNetwork
    try:
        known = recognised(network.module, network.data, network.output)
    except InputError as error:
        known, network.reason = network, str(error)
    judge = known.in_units(unit)
    wanted = wanted if unit is None else wanted / unit
    return Wanted([judge], [wanted], Target.for_head(run.task.head, wanted), judge)


def _is_before(mark: int, num_kept: int, down: bool) -> bool:
    """Whether a path that ends with ``num_kept`` edges has passed a mark."""
    return mark >= num_kept if down else mark <= num_kept


@dataclass
class PathRecord:
    """A path and how it was found."""

    path: Path = field(default_factory=Path)
    history: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0


def find_path(run: Run, wanted: Wanted, num_kept: int) -> PathRecord:
    """A path to ``num_kept`` edges or beyond; a stored one is used and, where it is too short, extended."""
    new = PathRecord(Path.for_budget(num_kept, run.edges, wanted.networks[0]) if run.cap is None else Path())
    steps, down = new.path.steps(num_kept, run.edges.num_edges), new.path.down
    depends = {**run.depends_on_all, "search": method_version("deploy"), "direction": "down" if down else "up"}
    depends |= {"format": FORMAT, "max_degree": run.max_degree}
    if not isinstance(run.edges, TypedEdges) and not all_known(wanted.networks):
        depends["trials"] = dict(trials_of_path(wanted.networks[0], run.edges, run.cap is not None))
    if wanted.scenarios is not None:
        depends["scenarios"] = asdict(wanted.scenarios)

    def enough(content: Content) -> bool:
        return content[0]["order"].numel() >= steps

    def make(content: Content | None) -> Content:
        record = new if content is None else _unpack(content, down)
        _extend(run, wanted, record, steps)
        tensors = {"order": record.path.order, **flatten("memory", record.path.memory)}
        return tensors, {"history": record.history, "seconds": record.seconds}

    return _unpack(run.store.grow("path", depends, enough, make), down)


def _unpack(content: Content, down: bool) -> PathRecord:
    tensors, meta = content
    path = Path(tensors["order"], unflatten("memory", tensors), down)
    return PathRecord(path, list(meta["history"]), meta["seconds"])


def _extend(run: Run, wanted: Wanted, record: PathRecord, steps: int) -> None:
    """Follows the path to so many steps, validating it at every mark."""
    edges, path, clock = run.edges, record.path, run.checkpoint.clock
    start, seconds_before, done = clock(), record.seconds, path.order.numel()
    marks = [round(edges.num_edges * mark / MARKS) for mark in range(1, MARKS + 1)]
    ends = [end for end in marks if done < end < steps] + [steps]
    stages = run.checkpoint.loop("greedy", len(ends), record, edges)
    path = record.path  # a resumed loop has put another one there
    network, room = wanted.networks[0], None if run.cap is None else run.cap.room
    search = make_search(wanted.networks, edges, wanted.answers, wanted.target, path=path, room=room)
    best = max((mark["val"] for mark in record.history), default=0.0)
    slow = isinstance(network, TrainedNetwork) and isinstance(search, BatchedSearch)
    if isinstance(search, BatchedSearch) and isinstance(network, TrainedNetwork):
        announce(search, steps - done, type(network.module).__name__, network.reason)
    for stage in stages:
        extend_path(search, path, ends[stage - 1])
        val = validated(run, wanted.judge, torch.from_numpy(search.keep_mask))
        length = int(search.keep_mask.sum())
        best = max(best, val)
        if ends[stage - 1] in marks:  # the end of a path is no mark: one that goes on must not remember it
            record.history.append({"epoch": len(record.history) + 1, "val": val, "kept": length})
        record.seconds = seconds_before + clock() - start
        left = (clock() - start) * max(steps - ends[stage - 1], 0) / max(ends[stage - 1] - done, 1)
        run.watch(Progress("greedy", stage, len(ends), val, best, 1 - length / edges.num_edges, left))
        if slow and run.watch is silent:
            show_time_left(stage, len(ends), left)
