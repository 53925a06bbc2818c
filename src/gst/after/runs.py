"""Many runs on one graph that differ in seed and sparsity alone: shared work is done once, finished runs are kept."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gst.base.errors import AgreementWarning, InputError
from gst.base.versions import environment
from gst.methods import Result, Sparsifier
from gst.storage import files
from gst.storage.cache import fingerprint
from gst.storage.checkpoint import BaseCheckpoint
from gst.storage.run_folder import SEARCH
from gst.storage.state_tree import capture, hash_of
from gst.train.settings import Batching, Training

FORMAT = 2
_SCORES = [f"{kind}{part}" for kind in ("", "dense_", "retrain_") for part in ("val", "test")]


class Runs:
    """Measures every run once; made by :func:`opened_runs`.

    Args:
        data: the graph.
        estimator: the method with its arguments; each run has a seed and a sparsity of its own.
        retrain: whether a fresh model is trained on every sparse graph.
        checkpoint: where finished runs and the state of the one under way are kept.
    """

    def __init__(self, data: Data, estimator: Sparsifier, *, retrain: bool, checkpoint: BaseCheckpoint) -> None:
        self.data = data
        self.estimator = estimator
        self.checkpoint = checkpoint
        self.retrain = retrain
        self.identity = self._identity()
        self._path = None if checkpoint.folder is None else checkpoint.folder / SEARCH
        self._measured = {} if self._path is None else _read(self._path, self.identity)

    def metrics(self, seed: int, sparsity: float) -> dict[str, Any]:
        """val and test of the sparse, the dense and, if asked for, a fresh model, and the number of edges kept."""
        key = f"{seed} {sparsity:g}"
        if key not in self._measured or (self.retrain and "retrain_val" not in self._measured[key]):
            metrics = self.result(seed, sparsity).metrics
            self._measured[key] = {name: metrics[name] for name in [*_SCORES, "edges_kept"] if name in metrics}
            if self._path is not None:
                content = {"format": FORMAT, "identity": self.identity, "runs": self._measured}
                files.write_json(self._path, content)
            self.forget()
        return self._measured[key]

    def result(self, seed: int, sparsity: float) -> Result:
        """The run itself; a run that was measured before gives the same again."""
        unfinished = self.checkpoint.unfinished()
        now = {"method": self.estimator.name, "seed": seed, "sparsity": sparsity, "retrain": self.retrain}
        if unfinished is not None and any(unfinished["identity"].get(name) != now[name] for name in now):
            self.forget()  # the process before has made its runs in another order
        with warnings.catch_warnings():  # most runs of a search only find out what is too much
            warnings.simplefilter("ignore", AgreementWarning)
            this = {"seed": seed, "sparsity": sparsity, "checkpoint": self.checkpoint}
            estimator = type(self.estimator)(**{**self.estimator.get_params(), **this})
            return estimator.fit(self.data, dense=True, retrain=self.retrain).result_

    def forget(self) -> None:
        """Clears the state of a finished run, beside which the next one could not begin."""
        self.checkpoint.clear()
        self.checkpoint.store.drop("selection")  # one per run, as large as the graph

    def _identity(self) -> dict[str, Any]:
        """All that the outcome of a run depends on besides seed and sparsity."""
        estimator = self.estimator
        training = [estimator.config(kind, self.data).model_dump() for kind in (Training, Batching)]
        settings = {**training[0], **training[1], **estimator.settings(self.data)}
        model = estimator.model
        return {
            "data": fingerprint(self.data),
            "method": estimator.name,
            "backbone": estimator.backbone,
            "model": None if model is None else f"{type(model).__name__} {hash_of(capture(model))}",
            **{name: value for name, value in settings.items() if name != "seed"},
            **environment(),
        }


@contextmanager
def opened_runs(data: Data, estimator: Sparsifier, checkpoint: BaseCheckpoint, *, retrain: bool) -> Iterator[Runs]:
    """Runs that share what does not depend on the sparsity, also where the cache is off or knows no own models.

    Anchors, dense baselines, the paths of iterative methods and of Deploy are made once for each seed.
    """
    uncached = estimator.model is not None or estimator.cache is False
    with checkpoint.shared_store() if uncached else nullcontext():
        yield Runs(data, estimator, retrain=retrain, checkpoint=checkpoint)


def _read(path: Path, identity: dict[str, Any]) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    content = files.read_json(path)
    then, runs = content.get("identity"), content.get("runs")
    if content.get("format") != FORMAT or not isinstance(then, dict) or not isinstance(runs, dict):
        raise InputError(f"{path} does not hold the runs of a search: choose another folder")
    for name in [*identity, *then]:
        if identity.get(name) != then.get(name):
            what = "other data" if name == "data" else f"{name} = {then.get(name)}, not {identity.get(name)}"
            raise InputError(f"{path.parent} holds a search with {what}: choose another folder")
    return runs
