"""Many runs of one problem that differ in seed and sparsity alone: what can be shared is, what is done stays done."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from gst import artifact
from gst.cache import Cache, fingerprint
from gst.checkpoint import Checkpoint, NoCheckpoint
from gst.errors import InputError
from gst.graph import EdgeSet
from gst.models import build_network
from gst.problem import Problem
from gst.protocol import sparsify
from gst.resolve import resolve_name
from gst.result import Result
from gst.select import budget, top_k
from gst.settings import make_settings
from gst.sparsifiers import METHODS
from gst.state import capture, hash_of
from gst.version import __version__

FORMAT = 1
_RUNS = "runs.json"
_PARTS = [f"{kind}{part}" for kind in ("", "dense_", "retrain_") for part in ("val", "test")]


class Runs:
    """Measures every run once; made by :func:`opened_runs`.

    A method whose scores are the order in which a trained model wants its edges (``nested``) runs once a seed, at the
    lowest sparsity: any other is the same model with fewer of the best edges.
    """

    def __init__(
        self, data: Data, method: str, chosen: dict[str, Any], *, retrain: bool, lowest: float, place: NoCheckpoint
    ) -> None:
        self.data, self.method, self.chosen, self.place = data, resolve_name("method", method, METHODS), chosen, place
        self.retrain, self.lowest = retrain, lowest
        self.nested = self.method == "gst" and chosen.get("recipe") == "deploy"
        self.identity = self._identity()
        self._path = place.run / _RUNS if isinstance(place, Checkpoint) else None
        self._measured = {} if self._path is None else _read(self._path, self.identity)
        self._wholes: dict[int, Result] = {}

    def metrics(self, seed: int, sparsity: float) -> dict[str, Any]:
        """val and test of the sparse, the dense and, if asked for, a fresh model, and the number of edges kept."""
        key = f"{seed} {sparsity:g}"
        if key not in self._measured or (self.retrain and "retrain_val" not in self._measured[key]):
            found = self.result(seed, sparsity).metrics
            self._measured[key] = {name: found[name] for name in [*_PARTS, "edges_kept"] if name in found}
            if self._path is not None:
                words = {"format": FORMAT, "identity": self.identity, "runs": self._measured}
                artifact.write_json(self._path, words)
            self.forget()
        return self._measured[key]

    def result(self, seed: int, sparsity: float) -> Result:
        """The run itself; a run that was measured before gives the same again."""
        if not self.nested or sparsity < self.lowest:
            return self._run(seed, sparsity)
        if seed not in self._wholes:
            self._wholes[seed] = self._run(seed, self.lowest)
        whole = self._wholes[seed]
        if sparsity == self.lowest:
            return whole
        given = {name: value for name, value in self.chosen.items() if name not in METHODS[self.method].options}
        problem = Problem(self.data, checkpoint=self.place, seed=seed, **given)
        return cut(whole, problem, sparsity, self.retrain)

    def _run(self, seed: int, sparsity: float) -> Result:
        more: dict[str, Any] = {"dense": True, "retrain": self.retrain, "checkpoint": self.place}
        return sparsify(self.data, self.method, sparsity=sparsity, seed=seed, **more, **self.chosen)

    def forget(self) -> None:
        """Clears the state of a run that is finished: the next one would refuse to begin."""
        if isinstance(self.place, Checkpoint):
            self.place.clear()
            self.place.before = 0.0

    def _identity(self) -> dict[str, Any]:
        """All that the outcome of a run depends on besides seed and sparsity."""
        own = {"cache", "watch", "model", "backbone", *METHODS[self.method].options}
        given = {name: value for name, value in self.chosen.items() if name not in own}
        settings = make_settings(self.data.get("name"), self.chosen.get("backbone", "gcn"), given).model_dump()
        model = self.chosen.get("model")
        return {
            "data": fingerprint(self.data),
            "method": self.method,
            "options": {name: self.chosen[name] for name in METHODS[self.method].options if name in self.chosen},
            "backbone": self.chosen.get("backbone", "gcn"),
            "model": None if model is None else f"{type(model).__name__} {hash_of(capture(model))}",
            **{name: value for name, value in settings.items() if name != "seed"},
            "gst": __version__,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
        }


@contextmanager
def opened_runs(data: Data, method: str, place: NoCheckpoint, chosen: dict[str, Any], **more: Any) -> Iterator[Runs]:
    """Runs whose anchors and dense baselines are trained once, also where the cache is off or knows no own models."""
    with tempfile.TemporaryDirectory() as folder:
        if chosen.get("model") is not None or chosen.get("cache") is False:
            place.store = Cache(place.run / "shared" if isinstance(place, Checkpoint) else Path(folder))
        yield Runs(data, method, chosen, place=place, **more)


def cut(whole: Result, problem: Problem, sparsity: float, retrain: bool) -> Result:
    """The same model with only the best edges of a run, by its scores."""
    assert whole.model is not None
    edges, task = problem.edges, problem.task
    everything = edges.to(torch.device("cpu"))
    kept = budget(edges.num_edges, sparsity)
    keep = top_k(edge_scores(everything, whole.scores), kept)
    network = build_network(whole.model, problem.backbone, problem.data, task.num_classes, problem.settings)
    network.module.eval()
    with torch.no_grad():
        logits = network.logits(edges.subset(keep.to(problem.device)))
    metrics = {part: task.score(logits[getattr(task, part)], part) for part in ("val", "test")}
    metrics |= problem.train_fresh(keep, "retrain")[1] if retrain else {}
    amount = {"sparsity": 1 - kept / edges.num_edges, "edges_kept": kept}
    return replace(
        whole,
        graph=everything.sparse_graph(problem.data, keep),
        edge_mask=everything.to_columns(keep, True),
        metrics={**whole.metrics, **amount, **metrics},
    )


def edge_scores(edges: EdgeSet, column_scores: torch.Tensor) -> torch.Tensor:
    """One score per edge from one per column."""
    real = edges.column_edge >= 0
    scores = column_scores.new_zeros(edges.num_edges)
    scores[edges.column_edge[real]] = column_scores[real]
    return scores


def _read(path: Path, identity: dict[str, Any]) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    content = artifact.read_json(path)
    then, runs = content.get("identity"), content.get("runs")
    if content.get("format") != FORMAT or not isinstance(then, dict) or not isinstance(runs, dict):
        raise InputError(f"{path} does not hold the runs of a search: choose another folder")
    for name in [*identity, *then]:
        if identity.get(name) != then.get(name):
            what = "other data" if name == "data" else f"{name} = {then.get(name)}, not {identity.get(name)}"
            raise InputError(f"{path.parent} holds a search with {what}: choose another folder")
    return runs
