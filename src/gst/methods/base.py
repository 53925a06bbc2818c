"""The contract of every sparsifier: named arguments, ``search``, ``fit``, ``transform``."""

import time
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import BaseTransform

from gst.base.callers import users_level
from gst.base.errors import AgreementWarning, InputError
from gst.base.modes import plain_torch
from gst.base.versions import method_version
from gst.data.registry import published_name
from gst.graph.cap import Cap, capped_budget, check_max_degree
from gst.graph.edgeset import By, EdgeSet, check_data, check_graph
from gst.graph.select import budget
from gst.graph.typed import TypedEdges
from gst.methods.criteria.typed import typed_scores
from gst.methods.display import estimator_html
from gst.methods.found import Found
from gst.methods.result import Result
from gst.storage.cache import BaseCache, Content
from gst.storage.checkpoint import BaseCheckpoint, opened
from gst.train.callbacks import CallbackList, Callbacks, History, Log
from gst.train.link_run import LinkRun
from gst.train.links import has_links
from gst.train.models import check_model
from gst.train.presets import preset
from gst.train.run import Run
from gst.train.settings import Batching, Config, Training, Value, check_names, make_config
from gst.train.trainer import Watcher, silent
from gst.train.typed_run import TypedRun

LEAST_AGREEMENT = 0.98  # share of the dense model's answers that a sparse graph should keep


@dataclass(kw_only=True, eq=False, repr=False)
class Sparsifier(BaseTransform):
    """A method that makes a graph sparse. Its arguments are its fields; a subclass says how it searches.

    Arguments of training that are None take the value that goes with a published data set (:mod:`gst.train.presets`),
    for any other the default in brackets.

    Args:
        sparsity: share of edges to remove; of a typed graph also a dictionary with a share by relation.
        keep: number of edges to keep, instead of a share.
        max_degree: the most neighbours that a node reads: kept arcs into it, self-loops not counted. Edges are then
            counted by arcs, in every method. Without ``sparsity`` and ``keep``, as many arcs stay as the cap allows.
        backbone: the network, ``"gcn"``, ``"gin"``, ``"gat"``, ``"sage"``, ``"cluster-gcn"`` or one you registered.
        model: your own ``nn.Module`` of PyG ``MessagePassing`` layers, instead of a backbone; a copy is trained.
        seed: of all random numbers.
        anchor_epochs: E, epochs on the full graph [200].
        sparse_epochs: D, epochs on the sparse graph [400].
        hidden: width of the hidden layers [512].
        layers: number of graph convolutions [2].
        residual: a learnable skip connection around each layer [False].
        norm: ``"layer"`` for LayerNorm between layers ["none"].
        heads: attention heads of GAT [8].
        decoder: how links are scored: ``"dot"``, the dot product of both ends' embeddings, or ``"mlp"`` ["dot"].
        dropout: share of features dropped before each layer [0.5].
        lr: learning rate of Adam [0.001].
        weight_decay: ℓ2 penalty [5e-4].
        inductive: hide validation and test nodes and their edges from training [False].
        device: torch device ["cpu"].
        batch: what a training step sees: ``"full"``, ``"clusters"`` or ``"neighbors"`` ["full"].
        loader: who draws mini-batches, ``"gst"`` or ``"pyg"`` ["gst"].
        clusters: number of clusters, 0: one per 500 nodes [0].
        clusters_per_batch: clusters in a step [16].
        batch_nodes: training nodes in a step with sampled neighbourhoods [1024].
        fanout: neighbours drawn per node and layer [10].
        cache: whether what can be reused is kept on disk (never of an own ``model``), or the cache to keep it in.
        callbacks: told what ``fit`` does: a function called with a :class:`gst.Progress` after every epoch, a
            :class:`gst.Callback`, among them the trackers, or a list of them.
        checkpoint: folder for the state of ``fit``; the same call in a later process goes on from there.
        target: of a typed graph, the type of the nodes with labels, where several have some.
        protect: of a typed graph, the relations whose edges all stay; in a text, with commas between.
        scope: of a typed graph, what topology is judged on, ``"union"`` for all relations as one graph or
            ``"relation"`` for each alone ["union"].

    ``fit`` sets ``result_`` (the :class:`~gst.Result` that :func:`gst.sparsify` returns), ``found_`` (what the search
    came back with, one value per edge) and ``edges_``.

    >>> import gst
    >>> scan = gst.SCAN(sparsity=0.5)
    >>> scan.set_params(sparsity=0.25).get_params()["sparsity"]
    0.25
    """

    sparsity: float | Mapping[Any, float] | None = None
    keep: int | None = None
    max_degree: int | None = None
    backbone: str = "gcn"
    model: nn.Module | None = None
    seed: int = 0
    anchor_epochs: int | None = None
    sparse_epochs: int | None = None
    hidden: int | None = None
    layers: int | None = None
    residual: bool | None = None
    norm: str | None = None
    heads: int | None = None
    decoder: str | None = None
    dropout: float | None = None
    lr: float | None = None
    weight_decay: float | None = None
    inductive: bool | None = None
    device: str | None = None
    batch: str | None = None
    loader: str | None = None
    clusters: int | None = None
    clusters_per_batch: int | None = None
    batch_nodes: int | None = None
    fanout: int | None = None
    cache: bool | BaseCache = True
    callbacks: Callbacks = ()
    checkpoint: BaseCheckpoint | str | PathLike[str] | None = None
    target: str | None = None
    protect: str | Sequence[Any] | None = None
    scope: str | None = None

    name: ClassVar[str] = ""  # by which it is registered
    kind: ClassVar[str]  # "topology": scores the graph alone; "learned": trains
    complexity: ClassVar[str] = "–"  # of a learned method in epochs, each O(|E|·h + N·F·h)
    reference: ClassVar[str] = "–"
    configs: ClassVar[tuple[type[Config], ...]] = (Training, Batching)  # the frozen configs that its arguments fill
    takes_trained_model: ClassVar[bool] = False  # whether ``model`` is used as it is
    transductive_only: ClassVar[bool] = False
    takes_typed: ClassVar[bool] = True  # whether it works on typed graphs

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuses bad arguments before any work; a subclass adds its own. What depends on the data is for ``fit``."""
        check_max_degree(self.max_degree)
        if self.max_degree is None or (self.sparsity, self.keep) != (None, None):
            check_amount(self.sparsity, self.keep)
        check_typed_arguments(self.target, self.protect, self.scope)
        check_model(self.model)
        CallbackList(self.callbacks)
        for config in self.configs:
            self.config(config)

    # ---- arguments

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every argument by name, as scikit-learn has it."""
        return {argument.name: getattr(self, argument.name) for argument in fields(self) if argument.init}

    def set_params(self, **params: Any) -> Self:
        """Sets arguments; one line for a name or a value that is not known."""
        before = self.get_params()
        check_names(type(self).__name__, params, before)
        try:
            self._assign(params)
            self.check()
        except InputError:
            self._assign(before)
            raise
        return self

    def _assign(self, params: dict[str, Any]) -> None:
        for name, value in params.items():
            setattr(self, name, value)

    def config(self, kind: type[Any], data: Data | None = None) -> Any:
        """One of the method's frozen configs: the arguments given, over the settings that go with the data."""
        return make_config(kind, {} if data is None else self.preset(data), self.get_params())

    def preset(self, data: Data) -> dict[str, Value]:
        """The settings that go with the data, where it is a published data set."""
        values = preset(published_name(data), self.backbone)
        return {**values, "inductive": False} if self.transductive_only else values

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that only this method has, beside those of its configs."""
        return {name: getattr(self, name) for name in own_arguments(type(self))}

    def settings(self, data: Data) -> dict[str, Any]:
        """All that the search depends on besides training and batches: the method's configs and its options."""
        configs = [self.config(kind, data) for kind in self.configs if kind not in (Training, Batching)]
        return {name: value for config in configs for name, value in config.model_dump().items()} | self.options

    @property
    def model_options(self) -> dict[str, Any]:
        """What is to be known of a trained model: the arguments ``head`` and ``output`` of a run."""
        return {}

    @property
    def counts_by(self) -> By:
        """What counts as an edge of an undirected graph."""
        return "pairs" if self.max_degree is None else "arcs"

    def num_kept(self, edges: EdgeSet) -> int:
        """How many of these edges stay."""
        return capped_budget(edges, self.max_degree, self.sparsity, self.keep)

    # ---- the work

    @abstractmethod
    def search(self, run: Run, num_kept: int) -> Found:
        """The sparse graph with exactly ``num_kept`` edges, and a model on it."""

    def run(self, data: Data, checkpoint: BaseCheckpoint | None = None, watch: Watcher = silent) -> Run:
        """What a search works on."""
        kind: Any = Run
        typed: dict[str, Any] = {}
        if isinstance(data, HeteroData):
            self._check_typed()
            typed = {"target": self.target, "protect": self.protect, "sparsity": self.sparsity}
            kind, typed = TypedRun, typed | {"scope": self.scope or "union"}
        else:
            self._check_plain(data)
            kind = LinkRun if has_links(data) else kind
        return kind(
            data,
            backbone=self.backbone,
            model=self.model,
            trained=self.takes_trained_model and self.model is not None,
            **self.model_options,
            training=self.config(Training, data),
            batching=self.config(Batching, data),
            by=self.counts_by,
            max_degree=self.max_degree,
            cache=self.cache,
            watch=watch,
            checkpoint=checkpoint,
            **typed,
        )

    def _check_plain(self, data: Data) -> None:
        """Refuses a graph of one type that is invalid, and arguments that only typed graphs have."""
        check_graph(data)
        given = {"target": self.target, "protect": self.protect, "scope": self.scope}
        if wrong := [name for name, value in given.items() if value is not None]:
            raise InputError(f"{wrong[0]} is for typed graphs (HeteroData): this graph has one type")
        if isinstance(self.sparsity, Mapping):
            raise InputError("a sparsity by relation is for typed graphs (HeteroData): this graph has one type")

    def _check_typed(self) -> None:
        if self.max_degree is not None:
            raise InputError("max_degree is for graphs of one type, and this one has several")
        if not self.takes_typed:
            raise InputError(f"{type(self).__name__} is for graphs of one type: take deploy, gst or a topology method")

    def edges_of(self, data: Any) -> EdgeSet:
        """The edges of a graph as this method counts them."""
        if isinstance(data, HeteroData):
            self._check_typed()
            return TypedEdges.from_hetero(data, self.target, self.protect, self.sparsity)
        self._check_plain(data)
        return EdgeSet.from_data(data, self.counts_by)

    @plain_torch()
    def fit(self, data: Data, *, dense: bool = False, retrain: bool = False, distill: bool = False) -> Self:
        """Finds the sparse graph of ``data`` and measures it.

        Args:
            data: a PyG ``Data`` with x, y, edge_index and the three split masks.
            dense: also train on the full graph for as many epochs, for ``metrics["dense_test"]`` and
                ``metrics["agreement"]``: the share of all nodes (of several labels: of nodes and labels) that the
                returned model answers on the sparse graph as the dense model does on all edges. Deploy has the
                agreement in any case. Below 0.98 an :class:`~gst.base.errors.AgreementWarning` says so.
            retrain: also train a fresh model on the sparse graph, for ``metrics["retrain_test"]``.
            distill: also train a fresh model on the sparse graph that learns from the dense model's answers at nodes
                outside validation and test, for ``metrics["distilled_test"]``, and the control without any edge, for
                ``metrics["edgeless_test"]``.
        """
        start = time.perf_counter()
        measures = {"dense": dense, "retrain": retrain, "distill": distill}
        history = History()
        told = CallbackList((history, Log(), *CallbackList(self.callbacks)))
        with opened(self.checkpoint) as checkpoint:
            run = self.run(data, checkpoint, told.on_epoch)
            run.begin(self.identity(run, **measures))
            with told.during(self._announced(run)):
                self.fit_run(run, **measures)
            self.result_.metrics["seconds"]["total"] = checkpoint.before + time.perf_counter() - start
        self.result_.history = tuple(history.epochs)
        warn_of_agreement(self.result_)
        told.on_end(self.result_)
        return self

    def _announced(self, run: Run) -> dict[str, Any]:
        """What callbacks are told before the first epoch."""
        amount = {"sparsity": self.sparsity, "keep": self.keep}
        name = {"dataset": getattr(run.data, "name", None) or "own data", "method": self.name or type(self).__name__}
        training, batching = run.training.model_dump(), run.batching.model_dump()
        return {**name, "backbone": run.model_name, **amount, **training, **batching, **self.settings(run.data)}

    @plain_torch()
    def fit_run(self, run: Run, *, dense: bool = False, retrain: bool = False, distill: bool = False) -> Self:
        """The same for a run at hand, which may serve many fits."""
        self.edges_ = run.edges.to(torch.device("cpu"))
        self.found_ = self.search(run, self.num_kept(self.edges_))
        params = {"method": self.name or type(self).__name__, "options": self.settings(run.data)}
        self.result_ = Result.measured(run, self.found_, params, dense=dense, retrain=retrain, distill=distill)
        return self

    def identity(self, run: Run, **measures: bool) -> dict[str, Any]:
        """What the outcome depends on besides the run: an interrupted fit goes on only with the same."""
        method = self.name or type(self).__name__
        shares = self.sparsity
        if isinstance(shares, Mapping):
            shares = {str(name): share for name, share in shares.items()}
        amount = {"sparsity": shares, "keep": self.keep, "max_degree": self.max_degree}
        return {"method": method, "search": method_version(method), **self.settings(run.data), **amount, **measures}

    def transform(self, data: Data) -> Data:
        """The sparse graph: ``data`` with only the kept columns of ``edge_index`` and of every edge-level attribute."""
        if not hasattr(self, "result_"):
            raise InputError(f"this {type(self).__name__} has not been fitted: call fit(data) first")
        found, seen = number_of_columns(data), self.edges_.column_edge.numel()
        if found != seen:
            raise InputError(
                f"data has {found} columns, the fitted graph {seen}: transform takes the graph that fit has seen"
            )
        return self.edges_.sparse_graph(data, self.found_.keep_mask)

    def forward(self, data: Data) -> Data:
        """As a transform of PyG: fits and gives the sparse graph."""
        return self.fit(data).result_.graph

    def __repr__(self) -> str:
        network = self.backbone if self.model is None else type(self.model).__name__
        return f"{type(self).__name__}({network}, {self._amount})"

    @property
    def _amount(self) -> str:
        amounts = {"sparsity": self.sparsity, "keep": self.keep, "max_degree": self.max_degree}
        return ", ".join(f"{name}={value}" for name, value in amounts.items() if value is not None)

    def _repr_html_(self) -> str:
        defaults = {argument.name: argument.default for argument in fields(self) if argument.init}
        result = self.result_ if hasattr(self, "result_") else None
        return estimator_html(type(self).__name__, self.get_params(), defaults, result)


@dataclass(kw_only=True, eq=False, repr=False)
class LearnedSparsifier(Sparsifier):
    """A sparsifier that trains while it searches; a subclass defines ``search``.

    >>> import gst
    >>> isinstance(gst.GST(sparsity=0.5), LearnedSparsifier), gst.GST.kind
    (True, 'learned')
    """

    model: nn.Module | None = field(default=None, kw_only=False)

    kind: ClassVar[str] = "learned"


@dataclass(kw_only=True, eq=False, repr=False)
class TopologySparsifier(Sparsifier):
    """Keeps the edges of highest score, by the graph alone; a subclass says only how edges are scored.

    As a transform it needs neither labels nor features. ``fit`` trains a fresh model on the sparse graph.

    >>> import gst
    >>> class Oldest(TopologySparsifier):
    ...     def edge_scores(self, edges):
    ...         return -edges.pairs.amax(0).double()
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> Oldest(keep=50)(data).num_edges
    100
    """

    sparsity: float | Mapping[Any, float] | None = field(default=None, kw_only=False)
    keep: int | None = field(default=None, kw_only=False)

    kind: ClassVar[str] = "topology"
    scores_typed: ClassVar[bool] = False  # whether ``edge_scores`` knows the edges of a typed graph

    @abstractmethod
    def edge_scores(self, edges: EdgeSet) -> Tensor:
        """One score per edge."""

    @plain_torch()
    def score(self, data: Data) -> Tensor:
        """float64, one per column of ``edge_index``, both arcs of a pair alike; infinite for self-loops, which stay.

        Of a typed graph a dictionary by edge type; protected relations stay, too.
        """
        edges = self.edges_of(data)
        return edges.column_values(self.scores_of(edges), torch.inf)

    def scores_of(self, edges: EdgeSet) -> Tensor:
        """float64, one score per edge, whatever the kind of graph."""
        if isinstance(edges, TypedEdges) and not self.scores_typed:
            return typed_scores(self.edge_scores, edges, self.scope or "union")
        return self.edge_scores(edges).double()

    def select(self, edges: EdgeSet) -> tuple[Tensor, Tensor]:
        """Which edges stay, and the score of each."""
        return self._top(edges, self.num_kept(edges))

    @plain_torch()
    def _top(self, edges: EdgeSet, num_kept: int) -> tuple[Tensor, Tensor]:
        scores = self.scores_of(edges)
        return self.highest(edges, scores, num_kept), scores

    def highest(self, edges: EdgeSet, scores: Tensor, num_kept: int) -> Tensor:
        """The edges of highest score, as many as are to stay."""
        if self.max_degree is None:
            return edges.choose(scores, num_kept)
        return Cap.of(edges, self.max_degree).top_k(scores, num_kept)

    @plain_torch()
    def forward(self, data: Data) -> Data:
        edges = self.edges_of(data)
        return edges.sparse_graph(data, self.select(edges)[0])

    def reweighted(self, data: Data, num_kept: int) -> Data | None:
        """The sparse graph with weights of the method's own; None where it gives none."""
        return None

    def transform(self, data: Data) -> Data:
        """The sparse graph of the data that was fitted, or, without ``fit``, of any."""
        return super().transform(data) if hasattr(self, "result_") else self(data)

    def choose(self, run: Run, num_kept: int) -> tuple[Tensor, Tensor, float]:
        """Which edges of a run stay, the score of each, and the seconds that took."""
        edges = run.edges.to(torch.device("cpu"))
        clock = run.checkpoint.clock

        def select() -> Content:
            start = clock()
            keep_mask, scores = self._top(edges, num_kept)
            return {"kept": keep_mask, "scores": scores}, {"seconds": clock() - start}

        depends = {**self.identity(run), **run.depends_on_all, "num_kept": num_kept}
        tensors, meta = run.checkpoint.store.get("selection", depends, select)
        return tensors["kept"], tensors["scores"], meta["seconds"]

    def search(self, run: Run, num_kept: int) -> Found:
        clock = run.checkpoint.clock
        keep_mask, scores, seconds = self.choose(run, num_kept)
        start = clock()
        weighted = self.reweighted(run.data, num_kept)
        trained_on = run if weighted is None else run.on(weighted)
        trained_mask = keep_mask if weighted is None else None
        network, fresh = trained_on.train_fresh(trained_mask, "retrain")
        return Found(
            keep_mask,
            scores,
            network.module,
            logits=trained_on.answers(network, trained_mask),
            val=fresh["retrain_val"],
            test=fresh["retrain_test"],
            seconds={"anchor": 0.0, "topology": seconds, "sparse": clock() - start},
            fresh=True,
            graph=weighted,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._amount})"


def number_of_columns(data: Any) -> int:
    """Of ``edge_index``, in all relations of a typed graph."""
    if isinstance(data, HeteroData):
        return sum(data[kind].edge_index.shape[1] for kind in data.edge_types)
    return check_data(data).shape[1]


def check_amount(sparsity: Any, keep: Any) -> None:
    """Refuses a budget that no graph could have."""
    if isinstance(sparsity, Mapping):
        if keep is not None:
            raise InputError("give either sparsity= by relation or keep= (number of edges to keep)")
        for share in sparsity.values():
            budget(1, share)
    else:
        budget(keep if type(keep) is int and keep > 0 else 1, sparsity, keep)


def check_typed_arguments(target: Any, protect: Any, scope: Any) -> None:
    if target is not None and not isinstance(target, str):
        raise InputError(f"target is a {type(target).__name__}: the name of a node type is needed")
    if protect is not None and not isinstance(protect, str | list | tuple | set | frozenset):
        raise InputError(f"protect is a {type(protect).__name__}: names of relations are needed")
    if scope not in (None, "union", "relation"):
        raise InputError(f"scope = {scope!r}: choose from union, relation")


def own_arguments(method: type[Sparsifier]) -> list[str]:
    """The names of the arguments that are neither every method's nor of one of its configs."""
    shared = {argument.name for argument in fields(Sparsifier)}
    shared |= {name for config in method.configs for name in config.model_fields}
    return [argument.name for argument in fields(method) if argument.init and argument.name not in shared]


def warn_of_agreement(result: Result) -> None:
    """Warns where fewer answers than :data:`LEAST_AGREEMENT` are those of the dense model."""
    agreement = result.metrics.get("agreement")
    if agreement is not None and agreement < LEAST_AGREEMENT:
        which = f"{result.metrics['method']} at sparsity {result.metrics['sparsity']:.1%}"
        text = (
            f"{which}: only {agreement:.1%} of the answers are those of the dense model (below {LEAST_AGREEMENT:.0%})"
        )
        warnings.warn(text, AgreementWarning, stacklevel=users_level())
