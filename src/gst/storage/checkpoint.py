"""Nothing lost: what a run has done so far, on disk, and the way back to it.

A run is a chain of phases, each a loop over epochs. :meth:`Checkpoint.loop` runs the epochs of one and writes its whole
state every few seconds; the same call in a later process finds it and goes on with the next epoch. Two states of a
phase are kept, so one that turns out damaged costs a few seconds more, not the run.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from gst.base import distributed, randomness
from gst.base.arguments import as_path, check_options
from gst.base.errors import InputError, InterruptedRunError
from gst.base.user_paths import remove_folders
from gst.base.versions import surroundings
from gst.graph.edgeset import EdgeSet
from gst.storage import files as storage_files
from gst.storage import run_folder, state_tree
from gst.storage.cache import Cache, Content, NoCache
from gst.storage.lock import Lock

FORMAT = 2
EVERY = 5.0  # seconds between two states
PATIENCE = 40  # a state that takes long to write is written more seldom: at most 1/40 of the time goes into it


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
        folder: made if it is not there; may hold the result of a run as well. One that is neither empty nor a run of
            gst is refused. Nothing in it changes before the work begins.
        every: seconds between two states; 0 writes one after every epoch.
        words: whatever else shall be found by the next process, see :func:`read_run`.
    """

    def __init__(self, folder: str | PathLike[str], every: float = EVERY, words: Mapping[str, Any] | None = None):
        check_options("checkpoint", every=(every, float, lambda v: v >= 0, "seconds from 0 up"))
        self.run, self.every = Path(folder), every
        self.words, self._manifest = dict(words or {}), _manifest({}, {})
        self._committed = False
        self._bare = False  # whether this process has noted what runs, and kept nothing of it yet
        self._lock: Lock | None = None
        if distributed.rank() == 0:  # of several workers the first one writes
            self.run = run_folder.claim(folder)
            self._lock = Lock(self.run)
        self.folder = self.run / run_folder.STATES
        self.store = _Store(self)
        self._carried = 0.0
        self._begun = self._saved = time.perf_counter()
        self._cost = 0.0
        self._newest: dict[str, str] = {}  # the slot of each phase that must not be written next

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Says what is about to run; refuses where the folder holds something else that is unfinished."""
        now = {**identity, **surroundings()}
        unfinished = distributed.same(read_run(self.run) if self._lock is not None else None)
        if unfinished is None:
            self._manifest = _manifest(now, self.words)
            return
        then = unfinished["identity"]
        for key in [*now, *then]:
            if now.get(key) != then.get(key):
                raise InputError(
                    f"{self.run} holds an unfinished run with {_difference(key, then.get(key), now.get(key))}: "
                    f"resume it as it was, choose another folder, or remove {self.folder}"
                )
        self._manifest = unfinished
        states = [found for name in unfinished["files"] if (found := _read(self.folder / name)) is not None]
        self.before = max((words["elapsed"] for _, words in states if "elapsed" in words), default=0.0)

    def commit(self) -> None:
        """Notes on disk what runs and removes what dead processes left; before work begins, it may still be refused."""
        if self._lock is None or self._committed:
            return
        self._committed = True
        storage_files.sweep(self.run)
        storage_files.sweep(self.folder)
        if not (self.run / run_folder.UNFINISHED).exists():
            self._remove_cleared()
            storage_files.write_json(self.run / run_folder.UNFINISHED, self._manifest)
            self._bare = True

    def keep(self, path: Path, tensors: Mapping[str, torch.Tensor], words: Mapping[str, Any]) -> None:
        """Writes a file of this run. Its name is noted before it is there: what is noted is what will be removed."""
        self.commit()
        files = self._manifest["files"]
        if path.name not in files:
            if path.exists():
                raise InputError(f"{path} is there and not of this run: move it away or choose another folder")
            self._manifest = {**self._manifest, "files": [*files, path.name]}
            storage_files.write_json(self.run / run_folder.UNFINISHED, self._manifest)
        storage_files.write_tensors(path, tensors, words)
        self._bare = False

    def clock(self) -> float:
        return time.perf_counter() + self._carried

    def loop(self, phase: str, epochs: int, at: Any, edges: EdgeSet) -> Iterator[int]:
        entered = self.clock()
        self.commit()
        captured = {"at": state_tree.capture(at), "random": randomness.random_state()}
        # a loop that begins at another state is another loop, whatever its name
        start = state_tree.hash_of([captured, edges.columns, edges.num_edges, epochs])
        slots = {slot: found for slot in "ab" if (found := _read(self._path(phase, slot))) is not None}
        start, slots = distributed.same((start, slots if self._lock is not None else {}))
        mine = {words["epoch"]: slot for slot, (_, words) in slots.items() if words["start"] == start}
        done = max(mine, default=0)
        if done:
            self._newest[phase] = mine[done]
            tensors, words = slots[mine[done]]
            tree = state_tree.join(tensors, words["tree"], edges.loops.device)
            state_tree.restore(at, tree["at"])
            randomness.restore_random(tree["random"])
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
        tensors, tree = state_tree.split({"at": state_tree.capture(at), "random": randomness.random_state()})
        words |= {"phase": phase, "epoch": epoch, "elapsed": self.elapsed(), "tree": tree}
        slot = "b" if self._newest.get(phase) == "a" else "a"
        self.keep(self._path(phase, slot), tensors, words)
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
        self._committed = self._bare = False
        unfinished, cleared = self.run / run_folder.UNFINISHED, self.run / run_folder.CLEARED
        with storage_files.one_line(unfinished):
            if unfinished.exists():
                unfinished.replace(cleared)  # from now on there is no run
            self._remove_cleared()

    def _remove_cleared(self) -> None:
        """Removes the files of a run that was cleared, also where that was cut off."""
        cleared = self.run / run_folder.CLEARED
        if cleared.exists():
            for name in _read_manifest(cleared)["files"]:
                (self.folder / name).unlink(missing_ok=True)
            cleared.unlink()
        storage_files.sweep(self.folder)
        remove_folders([self.folder])

    def close(self) -> None:
        """Lets other processes work on the folder; leaves none that was made in vain."""
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, InputError) and self._bare:
            self.clear()  # refused before there was anything to keep
        self.close()


class _Store(Cache):
    """The cache of a run that has no other; goes with its states."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.folder, self._checkpoint = checkpoint.folder, checkpoint

    def grow(self, *given: Any, **more: Any) -> Content:
        self._checkpoint.commit()
        return super().grow(*given, **more)

    def write(self, path: Path, content: Content) -> None:
        self._checkpoint.keep(path, *content)


@contextmanager
def opened(checkpoint: NoCheckpoint | str | PathLike[str] | None) -> Iterator[NoCheckpoint]:
    """What a ``checkpoint=`` argument means: a folder, one that is open already, or nothing."""
    if isinstance(checkpoint, NoCheckpoint):
        yield checkpoint
    elif checkpoint is None:
        yield NoCheckpoint()
    else:
        with Checkpoint(as_path("checkpoint", checkpoint)) as mine:
            yield mine


def read_run(run: str | PathLike[str]) -> dict[str, Any] | None:
    """``identity`` and ``words`` of an unfinished run; None where there is none."""
    path = Path(run) / run_folder.UNFINISHED
    return _read_manifest(path) if path.exists() else None


def _manifest(identity: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "identity": dict(identity), "words": dict(words), "files": []}


def _read_manifest(path: Path) -> dict[str, Any]:
    """What an unfinished run is of, and the names of its files, none of which leads elsewhere."""
    content = storage_files.read_json(path)
    if content.get("format") != FORMAT:
        raise InputError(
            f"{path} has format {content.get('format')!r}, this gst resumes {FORMAT}: remove {path.parent} first"
        )
    kinds = {"identity": dict, "words": dict, "files": list}
    if not all(isinstance(content.get(key), kind) for key, kind in kinds.items()):
        raise InputError(f"{path} does not say what it is of: remove {path.parent} to start anew")
    if not all(isinstance(name, str) and run_folder.is_state_name(name) for name in content["files"]):
        raise InputError(f"{path} names files that are no states: remove {path.parent} to start anew")
    return content


def _read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
    """A state, if it is there and whole."""
    try:
        return storage_files.read_tensors(path)
    except InputError:
        return None


def _difference(key: str, then: Any, now: Any) -> str:
    return "other data" if key == "data" else f"{key} = {then}, not {now}"
