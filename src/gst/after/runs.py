"""Many runs of one problem that differ in seed and sparsity alone: what can be shared is, what is done stays done."""

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gst.api.result import Result
from gst.api.sparsify import sparsify
from gst.base.errors import AgreementWarning, InputError
from gst.base.names import resolve_name
from gst.base.versions import surroundings
from gst.data.registry import published_name
from gst.methods import METHODS
from gst.nn.backbones import BACKBONES
from gst.storage import files
from gst.storage.cache import Cache, NoCache, fingerprint
from gst.storage.checkpoint import Checkpoint, NoCheckpoint, read_run
from gst.storage.run_folder import SEARCH, SHARED
from gst.storage.state_tree import capture, hash_of
from gst.train.settings import make_settings

FORMAT = 1
_PARTS = [f"{kind}{part}" for kind in ("", "dense_", "retrain_") for part in ("val", "test")]


class Runs:
    """Measures every run once; made by :func:`opened_runs`."""

    def __init__(self, data: Data, method: str, chosen: dict[str, Any], *, retrain: bool, place: NoCheckpoint) -> None:
        self.data, self.method, self.chosen, self.place = data, resolve_name("method", method, METHODS), chosen, place
        self.retrain, self.identity = retrain, self._identity()
        self._path = place.run / SEARCH if isinstance(place, Checkpoint) else None
        self._measured = {} if self._path is None else _read(self._path, self.identity)

    def metrics(self, seed: int, sparsity: float) -> dict[str, Any]:
        """val and test of the sparse, the dense and, if asked for, a fresh model, and the number of edges kept."""
        key = f"{seed} {sparsity:g}"
        if key not in self._measured or (self.retrain and "retrain_val" not in self._measured[key]):
            found = self.result(seed, sparsity).metrics
            self._measured[key] = {name: found[name] for name in [*_PARTS, "edges_kept"] if name in found}
            if self._path is not None:
                words = {"format": FORMAT, "identity": self.identity, "runs": self._measured}
                files.write_json(self._path, words)
            self.forget()
        return self._measured[key]

    def result(self, seed: int, sparsity: float) -> Result:
        """The run itself; a run that was measured before gives the same again."""
        unfinished = read_run(self.place.run) if isinstance(self.place, Checkpoint) else None
        now = {"method": self.method, "seed": seed, "sparsity": sparsity, "retrain": self.retrain}
        if unfinished is not None and any(unfinished["identity"].get(name) != now[name] for name in now):
            self.forget()  # another order of runs than that of the process before
        more: dict[str, Any] = {"dense": True, "retrain": self.retrain, "checkpoint": self.place}
        with warnings.catch_warnings():  # most runs of a search only find out what is too much
            warnings.simplefilter("ignore", AgreementWarning)
            return sparsify(self.data, self.method, sparsity=sparsity, seed=seed, **more, **self.chosen)

    def forget(self) -> None:
        """Clears the state of a run that is finished: the next one would refuse to begin."""
        if isinstance(self.place, Checkpoint):
            self.place.clear()
            self.place.before = 0.0
        if not isinstance(self.place.store, NoCache):
            self.place.store.drop("selection")  # one a run, as large as the graph

    def _identity(self) -> dict[str, Any]:
        """All that the outcome of a run depends on besides seed and sparsity."""
        own = {"cache", "watch", "model", "backbone", *METHODS[self.method].options}
        given = {name: value for name, value in self.chosen.items() if name not in own}
        backbone = resolve_name("backbone", self.chosen.get("backbone", "gcn"), BACKBONES)
        settings = make_settings(published_name(self.data), backbone, given).model_dump()
        model = self.chosen.get("model")
        return {
            "data": fingerprint(self.data),
            "method": self.method,
            "options": {name: self.chosen[name] for name in METHODS[self.method].options if name in self.chosen},
            "backbone": backbone,
            "model": None if model is None else f"{type(model).__name__} {hash_of(capture(model))}",
            **{name: value for name, value in settings.items() if name != "seed"},
            **surroundings(),
        }


@contextmanager
def opened_runs(data: Data, method: str, place: NoCheckpoint, chosen: dict[str, Any], **more: Any) -> Iterator[Runs]:
    """Runs that share what does not depend on the sparsity, also where the cache is off or knows no own models.

    Anchors, dense baselines, the paths of iterative methods and of the recipe deploy are made once for each seed.
    """
    with tempfile.TemporaryDirectory() as folder:
        if chosen.get("model") is not None or chosen.get("cache") is False:
            place.store = Cache(place.run / SHARED if isinstance(place, Checkpoint) else Path(folder))
        yield Runs(data, method, chosen, place=place, **more)


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
