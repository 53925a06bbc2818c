"""Interrupted runs resume where they stopped: the state of a run on disk, and how to restore it.

A run is a sequence of phases, each a loop over epochs. :meth:`Checkpoint.loop` runs the epochs of a phase and writes
its whole state every few seconds; the same call in a later process restores it and continues with the next epoch. Two
states of each phase are kept, so a damaged one costs a few more seconds of work, not the run.
"""

import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from gst.base import distributed, randomness
from gst.base.arguments import as_path, check_options
from gst.base.errors import InputError, InterruptedRunError
from gst.base.user_paths import remove_folders
from gst.base.versions import environment
from gst.graph.edgeset import EdgeSet
from gst.storage import files as storage_files
from gst.storage import run_folder, state_tree
from gst.storage.cache import BaseCache, Cache, Content, NoCache
from gst.storage.lock import Lock

FORMAT = 2
EVERY = 5.0  # seconds between two states
_WORK_PER_SAVE = 40  # saving takes at most 1/40 of the time: states that are slow to write are written less often


class BaseCheckpoint(ABC):
    """What both a :class:`Checkpoint` and its absence, :class:`NoCheckpoint`, can do. A context manager."""

    folder: Path | None = None  # the run folder

    def __init__(self, store: BaseCache) -> None:
        self.store = store  # for what the run computes once, where no other cache is used
        self.before = 0.0  # seconds that earlier processes worked on this run

    @abstractmethod
    def begin(self, identity: Mapping[str, Any]) -> None:
        """Declares what is about to run; refuses if a different run is unfinished."""

    @abstractmethod
    def unfinished(self) -> dict[str, Any] | None:
        """The manifest of the unfinished run, if there is one; see :func:`read_run`."""

    @abstractmethod
    def clock(self) -> float:
        """Seconds since an arbitrary moment, including the time of earlier processes in the same phase."""

    @abstractmethod
    def loop(self, phase: str, epochs: int, state: Any, edges: EdgeSet) -> Iterator[int]:
        """The remaining epochs of a phase, out of 1 … ``epochs``; ``state``: all that one epoch passes to the next.

        If an earlier process interrupted this phase, ``state`` and the random generators are restored before this
        returns.
        """

    @abstractmethod
    def request_stop(self, signal: int) -> bool:
        """Asks the loop to stop after the current epoch; False if that was requested before."""

    @abstractmethod
    def clear(self) -> None:
        """Removes the states, and nothing else; to be called once the result is saved."""

    @contextmanager
    def shared_store(self) -> Iterator[None]:
        """Inside, ``store`` survives :meth:`clear`, so that several runs in sequence can share what it holds."""
        previous = self.store
        with self._shared_folder() as folder:
            self.store = Cache(Path(folder))
            try:
                yield
            finally:
                self.store = previous

    @abstractmethod
    def _shared_folder(self) -> AbstractContextManager[str | Path]: ...

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class NoCheckpoint(BaseCheckpoint):
    """Keeps nothing: a run without a folder."""

    def __init__(self) -> None:
        super().__init__(NoCache())

    def begin(self, identity: Mapping[str, Any]) -> None:
        pass

    def unfinished(self) -> dict[str, Any] | None:
        return None

    def clock(self) -> float:
        return time.perf_counter()

    def loop(self, phase: str, epochs: int, state: Any, edges: EdgeSet) -> Iterator[int]:
        return iter(range(1, epochs + 1))

    def request_stop(self, signal: int) -> bool:
        """Stops at once: there is no state to save."""
        raise InterruptedRunError(signal, "interrupted")

    def clear(self) -> None:
        pass

    def _shared_folder(self) -> AbstractContextManager[str | Path]:
        return tempfile.TemporaryDirectory()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Checkpoint(BaseCheckpoint):
    """A folder with the state of one run, used by one process at a time.

    Args:
        folder: created if missing; may also hold the result of a run. A folder that is neither empty nor a gst run is
            refused. Nothing in it changes before the work begins.
        every: seconds between two states; 0 writes one after every epoch.
        metadata: JSON-serialisable values for a later process, see :func:`read_run`.

    >>> import gst, tempfile
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=2, sparse_epochs=2, cache=False)
    >>> with Checkpoint(tempfile.mkdtemp()) as checkpoint:
    ...     gst.sparsify(data, "gst", sparsity=0.5, checkpoint=checkpoint, **few).metrics["edges_kept"]
    60
    """

    folder: Path

    def __init__(self, folder: str | PathLike[str], every: float = EVERY, metadata: Mapping[str, Any] | None = None):
        check_options("checkpoint", every=(every, float, lambda v: v >= 0, "seconds from 0 up"))
        self.folder = Path(folder)
        self.every = every
        self.metadata = dict(metadata or {})
        self.stop: int | None = None  # the signal that requested a stop
        self._manifest = _manifest({}, {})
        self._committed = False
        self._only_manifest = False  # whether this process has written the manifest but no state yet
        self._lock: Lock | None = None
        if distributed.rank() == 0:  # only the first of several workers writes
            self.folder = run_folder.claim(folder)
            self._lock = Lock(self.folder)
        self.states = self.folder / run_folder.STATES
        super().__init__(_RunCache(self))
        self._carried = 0.0
        self._begun = self._saved = time.perf_counter()
        self._cost = 0.0  # seconds the last save took
        self._newest: dict[str, str] = {}  # the slot of the newest state of each phase, which is not overwritten next

    def begin(self, identity: Mapping[str, Any]) -> None:
        now = {**identity, **environment()}
        unfinished = distributed.broadcast(self.unfinished() if self._lock is not None else None)
        if unfinished is None:
            self._manifest = _manifest(now, self.metadata)
            return
        then = unfinished["identity"]
        for key in [*now, *then]:
            if now.get(key) != then.get(key):
                raise InputError(
                    f"{self.folder} holds an unfinished run with {_difference(key, then.get(key), now.get(key))}: "
                    f"resume it as it was, choose another folder, or remove {self.states}"
                )
        self._manifest = unfinished
        states = [state for name in unfinished["files"] if (state := _read(self.states / name)) is not None]
        self.before = max((metadata["elapsed"] for _, metadata in states if "elapsed" in metadata), default=0.0)

    def unfinished(self) -> dict[str, Any] | None:
        return read_run(self.folder)

    def commit(self) -> None:
        """Writes the manifest and removes leftovers of dead processes; only when work begins, after all checks."""
        if self._lock is None or self._committed:
            return
        self._committed = True
        storage_files.sweep(self.folder)
        storage_files.sweep(self.states)
        if not (self.folder / run_folder.UNFINISHED).exists():
            self._remove_cleared()
            storage_files.write_json(self.folder / run_folder.UNFINISHED, self._manifest)
            self._only_manifest = True

    def write(self, path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, Any]) -> None:
        """Writes a file of this run. The manifest lists it first: :meth:`clear` removes exactly what is listed."""
        self.commit()
        files = self._manifest["files"]
        if path.name not in files:
            if path.exists():
                raise InputError(
                    f"{path} exists, but not as a state of this run: move it away or choose another folder"
                )
            self._manifest = {**self._manifest, "files": [*files, path.name]}
            storage_files.write_json(self.folder / run_folder.UNFINISHED, self._manifest)
        storage_files.write_tensors(path, tensors, metadata)
        self._only_manifest = False

    def clock(self) -> float:
        return time.perf_counter() + self._carried

    def loop(self, phase: str, epochs: int, state: Any, edges: EdgeSet) -> Iterator[int]:
        entered = self.clock()
        self.commit()
        # a loop that starts from another state is another loop, even if it has the same name
        start = state_tree.hash_of([_captured(state), edges.columns, edges.num_edges, epochs])
        slots = {slot: content for slot in "ab" if (content := _read(self._path(phase, slot))) is not None}
        start, slots = distributed.broadcast((start, slots if self._lock is not None else {}))
        slot_of = {metadata["epoch"]: slot for slot, (_, metadata) in slots.items() if metadata["start"] == start}
        done = max(slot_of, default=0)
        if done:
            self._newest[phase] = slot_of[done]
            tensors, metadata = slots[slot_of[done]]
            tree = state_tree.join(tensors, metadata["tree"], edges.loops.device)
            state_tree.restore(state, tree["at"])
            randomness.restore_random(tree["random"])
            self._carried += metadata["seconds"]
        return self._epochs(phase, done, epochs, state, start, entered)

    def _epochs(self, phase: str, done: int, epochs: int, state: Any, start: str, entered: float) -> Iterator[int]:
        for epoch in range(done + 1, epochs + 1):
            yield epoch
            last = epoch == epochs
            self.stop = distributed.broadcast(self.stop)
            if self._lock is not None and (last or self.stop is not None or self._save_is_due()):
                self._save(phase, epoch, state, {"start": start, "seconds": self.clock() - entered})
            if self.stop is not None:
                raise InterruptedRunError(
                    self.stop, f"interrupted after epoch {epoch} of {epochs} of the {phase} phase"
                )

    def _save_is_due(self) -> bool:
        interval = max(self.every, _WORK_PER_SAVE * self._cost) if self.every else 0.0
        return time.perf_counter() - self._saved >= interval

    def _save(self, phase: str, epoch: int, state: Any, metadata: dict[str, Any]) -> None:
        began = time.perf_counter()
        tensors, tree = state_tree.split(_captured(state))
        metadata |= {"phase": phase, "epoch": epoch, "elapsed": self._elapsed(), "tree": tree}
        slot = "b" if self._newest.get(phase) == "a" else "a"
        self.write(self._path(phase, slot), tensors, metadata)
        self._newest[phase] = slot
        self._saved = time.perf_counter()
        self._cost = self._saved - began

    def _path(self, phase: str, slot: str) -> Path:
        return self.states / f"{phase}.{slot}.safetensors"

    def _elapsed(self) -> float:
        """Seconds that all processes together worked on this run."""
        return self.before + time.perf_counter() - self._begun

    def request_stop(self, signal: int) -> bool:
        if self.stop is not None:
            return False
        self.stop = signal
        return True

    def clear(self) -> None:
        self.before = 0.0
        if self._lock is None:
            return
        self._committed = self._only_manifest = False
        unfinished, cleared = self.folder / run_folder.UNFINISHED, self.folder / run_folder.CLEARED
        with storage_files.write_errors(unfinished):
            if unfinished.exists():
                unfinished.replace(cleared)  # from now on there is no unfinished run
            self._remove_cleared()

    def _remove_cleared(self) -> None:
        """Removes the files of a cleared run, including leftovers of an interrupted :meth:`clear`."""
        cleared = self.folder / run_folder.CLEARED
        if cleared.exists():
            for name in _read_manifest(cleared)["files"]:
                (self.states / name).unlink(missing_ok=True)
            cleared.unlink()
        storage_files.sweep(self.states)
        remove_folders([self.states])

    def _shared_folder(self) -> AbstractContextManager[str | Path]:
        return nullcontext(self.folder / run_folder.SHARED)

    def close(self) -> None:
        """Releases the folder to other processes, and removes it if it was created and is empty."""
        if self._lock is not None:
            self._lock.release()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, InputError) and self._only_manifest:
            self.clear()  # refused before there was any state to keep
        self.close()


class _RunCache(Cache):
    """The cache of a run that uses no other; removed with the states of the run."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.folder = checkpoint.states  # not touched before the work begins
        self._checkpoint = checkpoint

    def grow(self, *args: Any, **kwargs: Any) -> Content:
        self._checkpoint.commit()
        return super().grow(*args, **kwargs)

    def write(self, path: Path, content: Content) -> None:
        self._checkpoint.write(path, *content)


@contextmanager
def opened(checkpoint: BaseCheckpoint | str | PathLike[str] | None) -> Iterator[BaseCheckpoint]:
    """What a ``checkpoint=`` argument means: a folder, a checkpoint that is open already, or none."""
    if isinstance(checkpoint, BaseCheckpoint):
        yield checkpoint
        return
    with NoCheckpoint() if checkpoint is None else Checkpoint(as_path("checkpoint", checkpoint)) as new:
        yield new


def _captured(state: Any) -> dict[str, Any]:
    """The tree that is hashed and stored; its keys are part of the format on disk."""
    return {"at": state_tree.capture(state), "random": randomness.random_state()}


def read_run(run: str | PathLike[str]) -> dict[str, Any] | None:
    """The manifest of the unfinished run in a folder, if any: its ``identity``, ``words`` (metadata) and ``files``."""
    path = Path(run) / run_folder.UNFINISHED
    return _read_manifest(path) if path.exists() else None


def _manifest(identity: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {"format": FORMAT, "identity": dict(identity), "words": dict(metadata), "files": []}


def _read_manifest(path: Path) -> dict[str, Any]:
    """A manifest whose file names are checked: none leads out of the folder."""
    content = storage_files.read_json(path)
    if content.get("format") != FORMAT:
        raise InputError(
            f"{path} has format {content.get('format')!r}, this gst resumes {FORMAT}: remove {path.parent} first"
        )
    kinds = {"identity": dict, "words": dict, "files": list}
    if not all(isinstance(content.get(key), kind) for key, kind in kinds.items()):
        raise InputError(f"{path} does not describe a run: remove {path.parent} to start anew")
    if not all(isinstance(name, str) and run_folder.is_state_name(name) for name in content["files"]):
        raise InputError(f"{path} lists files that are not states: remove {path.parent} to start anew")
    return content


def _read(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
    """A state, if it exists and is intact."""
    try:
        return storage_files.read_tensors(path)
    except InputError:
        return None


def _difference(key: str, then: Any, now: Any) -> str:
    return "other data" if key == "data" else f"{key} = {then}, not {now}"
