"""A result: the sparse graph, the model, what was measured; on disk as safetensors and JSON."""

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from math import isnan
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.graph.edgeset import EdgeSet
from gst.inference.compiled import Compiled, compile_model
from gst.inference.serving import Decisions, Engine, make_engine
from gst.methods import display
from gst.methods.extend import Rule, extend
from gst.methods.found import Found
from gst.methods.removed import FILED, Removed, unpack_removed
from gst.methods.typed_result import empty_rgcn, typed_metrics
from gst.methods.why import Why, why
from gst.nn.links import PART, add_decoder, link_scores
from gst.nn.own_input import graph_for
from gst.nn.own_model import call_model
from gst.storage import files, run_folder
from gst.storage.graph_file import pack_graph, unpack_graph
from gst.storage.run_metrics import check_metrics
from gst.storage.typed_file import pack_typed, unpack_typed
from gst.train.links import LinkTask
from gst.train.models import build_backbone
from gst.train.run import Run
from gst.train.settings import Batching, Training, make_config
from gst.train.trainer import Progress
from gst.train.typed_run import TypedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NO_REMOVED = "this result does not hold the edges that were removed: run it again with this gst"


@dataclass(repr=False)
class Result:
    """What :func:`gst.sparsify` found; a notebook shows it as a table with a curve.

    Attributes:
        graph: the PyG ``Data`` with only the kept columns [2, kept columns]; nodes are never renumbered.
        edge_mask: bool, one per column of the dense ``edge_index``.
        scores: float64, one per column; infinite for self-loops, which stay.
        metrics: what was measured, plain values by name.
        model: trained on the sparse graph.
        history: a :class:`gst.Progress` for every epoch.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> gst.sparsify(data, "random", sparsity=0.5, hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    ... # doctest: +ELLIPSIS
    Result(random, gcn on synthetic:nodes=60,degree=4,classes=2: 60 of 120 pairs kept, test accuracy ...)
    """

    graph: Any  # Data or HeteroData: only kept edges, every edge-level attribute filtered, nodes never relabelled
    edge_mask: Any  # bool, one per column of the dense edge_index; of a typed graph a dictionary by edge type
    scores: Any  # float64, one per column, likewise; infinite for self-loops and protected relations
    metrics: dict[str, Any]
    model: nn.Module | None  # trained on the sparse graph; None when an own model was saved and not given to load
    training: Training
    batching: Batching
    own_model: bool = False
    removed: Removed | None = None  # the other columns of the dense graph; None in a run saved by an earlier gst
    history: tuple[Progress, ...] = ()  # every epoch of the fit in this process; it is not saved

    @classmethod
    def measured(
        cls, run: Run, found: Found, params: Mapping[str, Any], *, dense: bool, retrain: bool, distill: bool
    ) -> "Result":
        """What a search found in a run, with its scores; ``params``: ``method`` and its ``options``."""
        task, edges = run.task, run.edges.to(torch.device("cpu"))
        keep_mask, logits = found.keep_mask.cpu(), found.logits.to(run.device)
        num_kept = int(keep_mask.sum())
        test = task.score(logits[task.test], "test") if found.test is None else found.test
        scores: dict[str, Any] = {"val": found.val, "test": test}  # NaN without labels
        if retrain and found.fresh:
            scores |= {"retrain_val": found.val, "retrain_test": test}
        elif retrain:
            scores |= run.train_fresh(keep_mask, "retrain")[1]
        if dense:
            scores |= {"dense_val": run.dense.val, "dense_test": run.dense.test}
        scores["agreement"] = run.agreement(logits) if dense and found.agreement is None else found.agreement
        if distill:
            scores |= run.distilled_scores(keep_mask.to(run.device))
        named = {"test": logits} | ({"dense_test": run.dense.logits} if dense else {})
        measured = {name: task.measures(each[task.test], "test") for name, each in named.items()}
        metrics = {
            "dataset": getattr(run.data, "name", None) or "own data",
            **params,
            "backbone": run.model_name,
            "seed": run.training.seed,
            "sparsity": 1 - num_kept / edges.num_edges,
            "edges_total": edges.num_edges,
            "edges_kept": num_kept,
            "directed": not edges.symmetric,
            "by": edges.by,
            "max_degree": run.max_degree,
            **({} if found.updates is None else {"updates": found.updates}),
            "metric": task.metric,
            **({"head": task.head} if run.trained else {}),
            **{name: None if value is not None and isnan(value) else value for name, value in scores.items()},
            "task": "links" if isinstance(task, LinkTask) else "nodes",
            **({"measures": measured} if measured["test"] else {}),
            "seconds": dict(found.seconds),
        }
        if isinstance(run, TypedRun):
            metrics |= typed_metrics(run, keep_mask)
        plain = found.graph is None and isinstance(run.data, Data)
        if metrics["options"].get("compensate") and found.graph is not None:
            metrics["self_weights"] = found.graph.num_edges - int(edges.to_columns(keep_mask, True).sum())
        removed = Removed.of(run.data, edges.to_columns(keep_mask, True)) if plain else None
        return cls(
            graph=edges.sparse_graph(run.data, keep_mask) if found.graph is None else found.graph,
            edge_mask=edges.column_values(keep_mask, True),
            scores=edges.column_values(found.scores.cpu().double(), torch.inf),
            metrics=metrics,
            model=found.model,
            training=run.training,
            batching=run.batching,
            own_model=run.model is not None,
            removed=removed,
        )

    def __repr__(self) -> str:
        return display.line(self.metrics)

    def _repr_html_(self) -> str:
        return display.html(self)

    def plot(self) -> "Figure":
        """A matplotlib figure: validation by epoch, test scores, scores of kept and removed edges.

        In a notebook it is shown; elsewhere ``result.plot().savefig("run.png")``.

        Raises:
            InputError: matplotlib, the extra ``plots``, is not installed.
        """
        return display.plot(self)

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting of the run, flat: of training, of batches and of the method."""
        return {**self.training.model_dump(), **self.batching.model_dump(), **self.metrics.get("options", {})}

    def save(self, folder: str | PathLike[str]) -> Path:
        """Writes the run folder in one step: at every instant it holds the result that was there before, or this one.

        A folder that is neither empty nor a run of gst is refused, and left as it is.
        """
        as_path("folder", folder)
        model = self._model()
        if isinstance(self.graph, HeteroData):
            tensors, attributes = pack_typed(self.graph, self.edge_mask, self.scores)
        else:
            tensors, attributes = pack_graph(self.graph)
            tensors |= {"edge_mask": self.edge_mask, "scores": self.scores}
            tensors |= {} if self.removed is None else self.removed.pack()
        facts = {"own_model": self.own_model, "metrics": self.metrics, "settings": self.settings}
        parts = {"graph": files.pack(tensors, attributes), "model": files.pack(model.state_dict())}
        return run_folder.write(folder, facts, parts)

    def extend(self, data: Data, rule: Rule = "auto") -> "Result":
        """The same run with new nodes: the sparse graph of the grown ``data``; nothing is trained.

        What the run decided stays. Of the edges at new nodes as many are kept as hold the run's sparsity s exactly on
        the grown graph: E' − round(s·E') in all, or under a ``max_degree`` as many of them as fit.

        Args:
            data: the grown graph. The old nodes have their old numbers and come first, and between them are the edges
                that the run has seen.
            rule: how the new edges are ranked. ``"method"``: by the scores of the topology method on the grown graph;
                ``"greedy"``: the edge next that brings the model's answers closest to those on the dense graph;
                ``"agreement"``: every node keeps the neighbours that the model gives the same answer; ``"local"``: as
                ``engine.update`` does, by the agreement of the answers without the new edges; ``"random"``: a control.
                ``"auto"``: method for topology methods, greedy for those that train a model.
        """
        if isinstance(self.graph, HeteroData):
            raise InputError("extend is for graphs of one type: run the method on the grown typed graph")
        grown = extend(self.graph, self.metrics, self.model, self.training, data, rule)
        return replace(self, **vars(grown))

    @classmethod
    @plain_torch()
    def load(cls, folder: str | PathLike[str], model: nn.Module | None = None) -> "Result":
        """Reads a run folder, also one that you do not trust: nothing in it is executed.

        ``model`` receives the weights of a run with an own model; without it such a run loads with ``model=None``.
        """
        place = as_path("folder", folder) / run_folder.RUN
        run, parts = run_folder.read(folder)
        metrics, settings = run.get("metrics"), run.get("settings")
        if not isinstance(metrics, dict) or not isinstance(settings, dict):
            raise InputError(f"{place} has no metrics or no settings: it is not a whole run")
        check_metrics(metrics, place)
        metrics.setdefault("by", "arcs" if metrics["directed"] else "pairs")  # of runs that are older
        settings = {"inductive": settings.get("setting") == "inductive", **settings}  # its name in formats 1 and 2
        training, batching = make_config(Training, settings), make_config(Batching, settings)
        sealed = run["format"] > 1
        (graph_path, graph_content), (model_path, model_content) = parts["graph"], parts["model"]
        tensors, attributes = files.parse(graph_content, graph_path, sealed=sealed)
        others: Removed | None = None
        if "typed" in attributes:
            graph, mask, scores = unpack_typed(tensors, attributes, graph_path)  # type: tuple[Any, Any, Any]
        else:
            graph, mask, scores, others = _unpacked(tensors, attributes, graph_path)
        state, _ = files.parse(model_content, model_path, sealed=sealed)
        own_model = bool(run.get("own_model"))
        if not own_model:
            empty: Any = empty_rgcn if isinstance(graph, HeteroData) else _empty_backbone
            model = empty(str(metrics.get("backbone")), state, graph, training, model_path)
        if model is not None:
            try:
                model.load_state_dict(state, assign=not own_model)
            except RuntimeError as error:
                reason = str(error).splitlines()[-1].strip()
                raise InputError(f"{model_path} does not fit the model: {reason}") from None
            model.eval()
        return cls(graph, mask, scores, metrics, model, training, batching, own_model, others)

    def engine(
        self, features: str | PathLike[str] | None = None, products: bool = False, updates: bool = False
    ) -> Engine:
        """Answers by node: ``engine(nodes)`` reads only what these answers depend on in the sparse graph.

        A native model runs in compiled kernels; any other module runs as it is on the extracted part of the graph
        (``engine.native`` says which).

        Args:
            features: an ``.npy`` file with the features in float32, which is mapped into memory and read where needed.
            products: keep X·W of the first layer for all nodes: more memory, less time.
            updates: also keep what ``engine.update`` needs to change the graph: all edges, and the run's answers.

        >>> import gst
        >>> data = gst.load("synthetic:nodes=200,degree=8")
        >>> result = gst.sparsify(data, sparsity=0.8, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False)
        >>> engine = result.engine()
        >>> engine([3, 7]).shape, engine.reads(3).nodes < 50
        (torch.Size([2, 5]), True)
        """
        if isinstance(self.graph, HeteroData):
            raise InputError("engines are for graphs of one type: call result.model on result.graph")
        if updates and self.metrics.get("max_degree") is not None:
            raise InputError("updates are for runs without max_degree: make the engine, or serve, without them")
        decisions = self.decisions() if updates else None
        return make_engine(self._model(), self.graph, features=features, products=products, decisions=decisions)

    def decisions(self) -> Decisions:
        """Every edge of the dense graph, whether it was kept, and its score."""
        if self.removed is None:
            raise InputError(_NO_REMOVED)
        index, weight = self.removed.dense(self.graph, self.edge_mask)
        edges = EdgeSet.from_edge_index(index, int(self.graph.num_nodes), weight, self.metrics["by"])
        columns = edges.column_edge >= 0
        kept = torch.zeros(edges.num_edges, dtype=torch.bool)
        scores = torch.zeros(edges.num_edges, dtype=torch.float64)
        kept[edges.column_edge[columns]] = self.edge_mask[columns]
        scores[edges.column_edge[columns]] = self.scores[columns].double()
        y = self.graph.get("y")
        return Decisions(edges, kept, scores, multilabel=y is not None and y.dim() == 2 and y.shape[1] > 1)

    def why(self, u: int, v: int, data: Data | None = None) -> Why:
        """Whether the edge from u to v (or between them) is kept, its place in the order, and what it changes.

        Three passes over the whole graph: on all edges, on the sparse graph, and with this edge removed or returned.

        Args:
            u: source of the arc, or one end of the pair.
            v: its target, or the other end.
            data: the dense graph; needed only where edges have attributes besides their weight.
        """
        if isinstance(self.graph, HeteroData):
            raise InputError("why is for graphs of one type")
        return why(self._model(), data or self.dense_graph(), self.decisions(), self.training, u, v)

    def dense_graph(self) -> Data:
        """The graph before any edge was removed."""
        extra = [name for name in self.graph.edge_attrs() if name not in ("edge_index", "edge_weight")]
        if extra:
            raise InputError(f"a run has {extra[0]} of the edges that it kept alone: give the dense graph as data")
        if self.removed is None:
            raise InputError(_NO_REMOVED)
        data = copy(self.graph)
        data.edge_index, weight = self.removed.dense(self.graph, self.edge_mask)
        if weight is not None:
            data.edge_weight = weight
        return data

    def _model(self) -> nn.Module:
        if self.model is None:
            raise InputError("this result was loaded without its own model: give it to Result.load(folder, model=…)")
        return self.model

    @torch.no_grad()
    def link_scores(self, pairs: Tensor) -> Tensor:
        """[P] the score of a link between the two nodes of each pair [2, P], by the model on the sparse graph."""
        model = self._model().eval()
        return link_scores(model, call_model(model, graph_for(model, self.graph)), pairs)

    def compile(self, layout: str = "auto", features: str = "float32") -> Compiled:
        """The model and the sparse graph bound together for inference.

        ``compile()()`` gives the logits of all nodes, in the order of the data.
        """
        if isinstance(self.graph, HeteroData):
            raise InputError("compiled models are for graphs of one type: call result.model on result.graph")
        return compile_model(self._model(), self.graph, layout, features)


def _unpacked(tensors: dict[str, Tensor], attributes: dict[str, Any], graph_path: Path) -> tuple[Any, ...]:
    """The graph, edge mask, scores and removed columns of a run on a graph of one type, checked."""
    if "edge_mask" not in tensors or "scores" not in tensors:
        raise InputError(f"{graph_path} has no edge_mask or no scores: it is not the graph of a run")
    mask, scores = tensors.pop("edge_mask"), tensors.pop("scores")
    removed = {name: tensors.pop(name) for name in FILED if name in tensors}
    graph = unpack_graph(tensors, attributes, graph_path)
    if mask.dtype != torch.bool or mask.dim() != 1 or scores.shape != mask.shape:
        raise InputError(f"{graph_path}: edge_mask and scores have no value for each column of the dense graph")
    more = graph.edge_index[:, int(mask.sum()) :]  # self-loops that make up for missing sums
    if graph.edge_index.shape[1] < int(mask.sum()) or not bool((more[0] == more[1]).all()):
        raise InputError(f"{graph_path}: edge_mask keeps {int(mask.sum())} columns, edge_index has others")
    return graph, mask, scores, unpack_removed(removed, mask, int(graph.num_nodes), graph_path)


def _classes(state: Mapping[str, Tensor], path: Path) -> int:
    """Number of outputs, from the last layer's weights."""
    named = (re.fullmatch(r"layers\.(\d{1,9})\.weight", name) for name in state)
    numbers = [int(match[1]) for match in named if match]
    weight = state[f"layers.{max(numbers)}.weight"] if numbers else torch.empty(0)
    if weight.dim() != 2:
        raise InputError(f"{path} holds no backbone of gst")
    return weight.shape[1]


def _empty_backbone(name: str, state: Mapping[str, Tensor], graph: Data, training: Training, path: Path) -> nn.Module:
    """A backbone without memory for its weights: what the settings claim is only allocated if the file holds it."""
    if training.layers > len(state):
        raise InputError(f"{path} holds {len(state)} tensors: too few for {training.layers} layers")
    with torch.device("meta"):
        model = build_backbone(name, graph.x.shape[1], _classes(state, path), training)
        if any(key.startswith(f"{PART}.") for key in state):
            add_decoder(model, model.outputs, "mlp")
    for key, wanted in model.state_dict().items():
        if key in state and (state[key].shape != wanted.shape or state[key].dtype != wanted.dtype):
            raise InputError(f"{path} does not fit the model: {key} has shape {list(state[key].shape)}")
    return model
