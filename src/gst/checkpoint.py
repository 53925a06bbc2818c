"""Nothing lost: what a run has done so far, on disk, and the way back to it.

A run is a chain of phases, each a loop over epochs. :meth:`Checkpoint.loop` runs the epochs of one and writes its whole
state every few seconds; the same call in a later process finds it and goes on with the next epoch. Two states of a
phase are kept, so one that turns out damaged costs a few seconds more, not the run.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from gst import artifact, distributed, state
from gst.cache import Cache, NoCache
from gst.errors import InputError, InterruptedRunError
from gst.graph import EdgeSet
from gst.lock import Lock
from gst.version import __version__

FORMAT = 1
EVERY = 5.0  # seconds between two states
PATIENCE = 40  # a state that takes long to write is written more seldom: at most 1/40 of the time goes into it
_RUN = "run.json"


class NoCheckpoint:
    """Keeps nothing; what a run without a folder has."""

    store: Cache = NoCache()
    before = 0.0  # seconds that earlier processes worked on this run
    stop: int | None = None  # the signal that asked to stop at the end of the epoch

    def clock(self) -> float:
        """Seconds from some moment on, those of earlier processes in the same phase included."""
        return time.perf_counter()

    def loop(self, phase: str, epochs: int, at: Any, edges: EdgeSet) -> Iterator[int]:
        """The epochs of a phase that are still to do, 1 … ``epochs``; ``at`` is all that goes from one to the next.

        Where an interrupted run left this phase, ``at`` and the random generators are put back before this returns.
        """
        return iter(range(1, epochs + 1))


class Checkpoint(NoCheckpoint):
    """A folder with the state of one run, which one process at a time may work on.

    Args:
        folder: made if it is not there; may hold the result of a run as well.
        every: seconds between two states; 0 writes one after every epoch.
        words: whatever else shall be found by the next process, see :func:`read_run`.
    """

    def __init__(self, folder: str | PathLike[str], every: float = EVERY, words: Mapping[str, Any] | None = None):
        self.run, self.folder, self.every = Path(folder), Path(folder) / "checkpoint", every
        self.words = dict(words or {})
        self._lock = Lock(self.run) if distributed.rank() == 0 else None  # of several workers the first one writes
        if self._lock is not None:
            artifact.sweep(self.run)
            artifact.sweep(self.folder)
        self.store = Cache(self.folder)
        self._carried = 0.0
        self._begun = self._saved = time.perf_counter()
        self._cost = 0.0
        self._newest: dict[str, str] = {}  # the slot of each phase that must not be written next

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Says what is about to run; refuses where the folder holds something else that is unfinished."""
        now = {**identity, "gst": __version__, "torch": torch.__version__, "threads": torch.get_num_threads()}
        unfinished = distributed.same(read_run(self.run) if self._lock is not None else None)
        if unfinished is None:
            if self._lock is None:
                return
            self.clear()  # what a clearing that was killed has left belongs to another run
            artifact.write_json(self.folder / _RUN, {"format": FORMAT, "identity": now, "words": self.words})
            return
        then = unfinished["identity"]
        for key in [*now, *then]:
            if now.get(key) != then.get(key):
                raise InputError(
                    f"{self.run} holds an unfinished run with {_difference(key, then.get(key), now.get(key))}: "
                    f"resume it as it was, choose another folder, or remove {self.folder}"
                )
        states = [found for path in self.folder.glob("*.[ab].safetensors") if (found := _read(path)) is not None]
        self.before = max((words["elapsed"] for _, words in states), default=0.0)

    def clock(self) -> float:
        return time.perf_counter() + self._carried

    def loop(self, phase: str, epochs: int, at: Any, edges: EdgeSet) -> Iterator[int]:
        entered = self.clock()
        captured = {"at": state.capture(at), "random": state.random_state()}
        # a loop that begins at another state is another loop, whatever its name
        start = state.hash_of([captured, edges.columns, edges.num_edges, epochs])
        slots = {slot: found for slot in "ab" if (found := _read(self._path(phase, slot))) is not None}
        start, slots = distributed.same((start, slots if self._lock is not None else {}))
        mine = {words["epoch"]: slot for slot, (_, words) in slots.items() if words["start"] == start}
        done = max(mine, default=0)
        if done:
            self._newest[phase] = mine[done]
            tensors, words = slots[mine[done]]
            tree = state.join(tensors, words["tree"], edges.loops.device)
            state.restore(at, tree["at"])
            state.restore_random(tree["random"])
            self._carried += words["seconds"]
        return self._epochs(phase, done, epochs, at, start, entered)

    def _epochs(self, phase: str, done: int, epochs: int, at: Any, start: str, entered: float) -> Iterator[int]:
        for epoch in range(done + 1, epochs + 1):
            yield epoch
            last = epoch == epochs
            self.stop = distributed.same(self.stop)
            if self._lock is not None and (last or self.stop is not None or self._waited()):
                self._save(phase, epoch, at, {"start": start, "seconds": self.clock() - entered})
            if self.stop is not None:
                raise InterruptedRunError(
                    self.stop, f"interrupted after epoch {epoch} of {epochs} of the {phase} phase"
                )

    def _waited(self) -> bool:
        wait = max(self.every, PATIENCE * self._cost) if self.every else 0.0
        return time.perf_counter() - self._saved >= wait

    def _save(self, phase: str, epoch: int, at: Any, words: dict[str, Any]) -> None:
        began = time.perf_counter()
        tensors, tree = state.split({"at": state.capture(at), "random": state.random_state()})
        words |= {"phase": phase, "epoch": epoch, "elapsed": self.elapsed(), "tree": tree}
        slot = "b" if self._newest.get(phase) == "a" else "a"
        artifact.write_tensors(self._path(phase, slot), tensors, words)
        self._newest[phase] = slot
        self._saved = time.perf_counter()
        self._cost = self._saved - began

    def _path(self, phase: str, slot: str) -> Path:
        return self.folder / f"{phase}.{slot}.safetensors"

    def elapsed(self) -> float:
        """Seconds that all processes together worked on this run."""
        return self.before + time.perf_counter() - self._begun

    def clear(self) -> None:
        """Removes the states, and nothing else, once the result they lead to is safe."""
        if self._lock is None:
            return
        for path in (self.folder / _RUN, *self.folder.glob("*.safetensors")):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Lets other processes work on the folder; leaves none that is empty."""
        if self._lock is None:
            return
        self._lock.release()
        for folder in (self.folder, self.run):
            with suppress(OSError):
                folder.rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def opened(checkpoint: NoCheckpoint | str | PathLike[str] | None) -> Iterator[NoCheckpoint]:
    """What a ``checkpoint=`` argument means: a folder, one that is open already, or nothing."""
    if isinstance(checkpoint, NoCheckpoint):
        yield checkpoint
    elif checkpoint is None:
        yield NoCheckpoint()
    else:
        with Checkpoint(checkpoint) as mine:
            yield mine


def read_run(run: str | PathLike[str]) -> dict[str, Any] | None:
    """``identity`` and ``words`` of an unfinished run; None where there is none."""
    path = Path(run) / "checkpoint" / _RUN
    if not path.exists():
        return None
    content = artifact.read_json(path)
    if content.get("format") != FORMAT:
        raise InputError(f"{path} has format {content.get('format')!r}: this gst resumes format {FORMAT}")
    if not isinstance(content.get("identity"), dict) or not isinstance(content.get("words"), dict):
        raise InputError(f"{path} does not say what it is of: remove {path.parent} to start anew")
    return content


def _read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
    """A state, if it is there and whole."""
    try:
        return artifact.read_tensors(path)
    except InputError:
        return None


def _difference(key: str, then: Any, now: Any) -> str:
    return "other data" if key == "data" else f"{key} = {then}, not {now}"
