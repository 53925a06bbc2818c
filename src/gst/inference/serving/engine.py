"""The engine: answers of single nodes from their receptive field in the sparse graph."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.base.text import shown
from gst.inference.serving.change import Change, Pairs, as_numbers
from gst.inference.serving.field import count_stored, receptive_field
from gst.inference.serving.kernel import answer
from gst.inference.serving.living import Living, Outcome
from gst.inference.serving.lock import Reading
from gst.inference.serving.state import State
from gst.inference.serving.stored import pack_living, pack_native, write
from gst.storage.journal import Journal

Ids = int | Sequence[int] | np.ndarray | Tensor


class Reads(NamedTuple):
    """What one call reads."""

    nodes: int  # whose features are read, each once
    arcs: int
    bytes: int  # of features (or products), arcs and degrees


class Answer(NamedTuple):
    """Outputs, and what they were computed from."""

    outputs: Tensor  # [nodes, C]
    version: int  # of the graph
    read: int  # nodes


class Engine(ABC):
    """``engine(nodes)`` gives the outputs of these nodes, [nodes, C], as a pass over the whole sparse graph would.

    Safe to call from many threads. Made by :meth:`gst.Result.engine`, read from a file by :func:`gst.load_engine`.

    Attributes:
        native: whether gst's kernels compute the answers; otherwise the module itself runs on the extracted field.
        num_nodes: of the graph.
        version: how many changes have been made to the graph and its features.
    """

    native: bool
    num_nodes: int
    inputs: int
    version: int = 0

    @abstractmethod
    def __call__(self, nodes: Ids, x: Any = None) -> Tensor:
        """Outputs of these nodes; ``x``: [nodes, F], features that they have in this call only."""

    def answer(self, nodes: Ids, x: Any = None) -> Answer:
        """Outputs with the version of the graph that they belong to."""
        return Answer(self(nodes, x), self.version, self.reads(nodes).nodes)

    def keep_journal(self, path: str | PathLike[str]) -> int:
        """Makes changes durable: from now on each is on disk before it is made.

        Changes that the file has already, of an earlier process, are made at once; their number is returned. The file
        belongs to this engine's run, and only one process may have it.
        """
        raise InputError("this engine cannot change its graph: result.engine(updates=True) of a native model can")

    def close(self) -> None:  # noqa: B027 (without a journal there is nothing to close)
        """Ends the journal, if there is one, so that another engine may have it."""

    @abstractmethod
    def reads(self, nodes: Ids) -> Reads:
        """How many nodes, arcs and bytes one call for these nodes reads."""

    @abstractmethod
    def save(self, path: str | PathLike[str]) -> Path:
        """Writes one file for :func:`gst.load_engine`, in one step; of a module that is not native, no code."""

    def update(
        self,
        add: Pairs | None = None,
        remove: Pairs | None = None,
        x: Mapping[int, Any] | None = None,
        new_nodes: Any = None,
        weight: Any = None,
    ) -> Outcome:
        """Changes the graph and its features; each edge is kept or removed by the rule in :mod:`.living`.

        Args:
            add: pairs (u, v), or an ``edge_index`` tensor; in an undirected graph both directions are meant.
            remove: the same of edges that go, kept or not.
            x: features by node.
            new_nodes: features of new nodes, one row each; they get the next numbers.
            weight: one for each of ``add``, in a graph with edge weights.
        """
        raise InputError("this engine cannot change its graph: result.engine(updates=True) of a native model can")

    def given(self, ids: np.ndarray, x: Any) -> np.ndarray:
        """Features for one call, checked."""
        values = as_numbers("x", x.detach().cpu().to_dense() if isinstance(x, Tensor) else x)
        values = values[None] if values.ndim == 1 else values
        if values.shape != (ids.size, self.inputs):
            raise InputError(f"x has shape {list(values.shape)}: [{ids.size}, {self.inputs}] real numbers are needed")
        if np.unique(ids).size != ids.size:
            raise InputError("a node is named twice: with x, each may be named once")
        return values


def as_ids(nodes: Ids) -> np.ndarray:
    """Node ids as a flat array of int64."""
    if isinstance(nodes, Tensor):
        nodes = nodes.detach().cpu().numpy()
    try:
        ids = np.asarray(nodes)
    except ValueError:  # a list of lists of several lengths
        raise InputError("nodes are lists within a list: whole numbers are needed") from None
    if ids.size == 0:
        return np.empty(0, np.int64)
    if ids.dtype.kind not in "iu" or ids.ndim > 1:
        raise InputError(f"nodes are {shown(str(ids.dtype))} of shape {list(ids.shape)}: whole numbers are needed")
    return ids.astype(np.int64, copy=False).reshape(-1)


def out_of_range(node: int, num_nodes: int) -> InputError:
    return InputError(f"node {node} is not in the graph: its nodes are 0 … {num_nodes - 1}")


class NativeEngine(Engine):
    """A stack of described layers, computed by compiled kernels: no autograd, no PyG."""

    native = True

    def __init__(self, state: State, living: Living | None = None) -> None:
        self.state = state
        self.living = living
        self._writer = threading.Lock()
        self._journal: Journal | None = None
        self.inputs = state.inputs
        self.lock = Reading()
        self._local = threading.local()

    @property
    def num_nodes(self) -> int:  # type: ignore[override]
        return self.state.num_nodes

    @property
    def version(self) -> int:  # type: ignore[override]
        return self.state.version

    def __call__(self, nodes: Ids, x: Any = None) -> Tensor:
        ids = as_ids(nodes)
        given = _NONE if x is None else self.given(ids, x)
        with self.lock:
            return torch.from_numpy(self.compute(ids, given)[0])

    def answer(self, nodes: Ids, x: Any = None) -> Answer:
        ids = as_ids(nodes)
        given = _NONE if x is None else self.given(ids, x)
        with self.lock:
            out, read, _ = self.compute(ids, given)
            return Answer(torch.from_numpy(out), self.version, read)

    def compute(self, ids: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, int, int]:
        """Outputs, nodes read and arcs read; the caller holds the lock."""
        out, nodes, arcs = answer(ids, given, self.state.graph, self.num_nodes, self._mark())
        if nodes < 0:
            raise out_of_range(int(ids[arcs]), self.num_nodes)
        return out, nodes, arcs

    def update(
        self,
        add: Pairs | None = None,
        remove: Pairs | None = None,
        x: Mapping[int, Any] | None = None,
        new_nodes: Any = None,
        weight: Any = None,
    ) -> Outcome:
        if self.living is None:
            return super().update()
        change = Change.of(self.inputs, add, remove, x, new_nodes, weight)
        with self._writer:
            self.living.check(change)
            if self._journal is not None:
                self._journal.append(self.version + 1, change.as_json())
            with self.lock.writing:
                return self.living.apply(change)

    def keep_journal(self, path: str | PathLike[str]) -> int:
        if self.living is None or self._journal is not None:
            raise InputError("a journal is for an engine made with updates=True, and it has one at most")
        with self._writer:
            journal = Journal(as_path("journal", path), self.state.identity)
            try:
                return self._replay(journal)
            except BaseException:
                journal.close()
                raise

    def _replay(self, journal: Journal) -> int:
        assert self.living is not None
        made = 0
        for version, described in journal.changes:
            if version <= self.version:
                continue  # the engine was saved after it
            if version != self.version + 1:
                raise InputError(f"{journal.path} goes on at change {version}, the engine is at {self.version}")
            change = Change.of(self.inputs, **described)
            self.living.check(change)
            with self.lock.writing:
                self.living.apply(change)
            made += 1
        self._journal = journal
        return made

    def close(self) -> None:
        with self._writer:
            if self._journal is not None:
                self._journal.close()
                self._journal = None

    def rebuilt(self) -> "NativeEngine":
        """An engine for the same graph that is built from scratch: what one that was changed must equal."""
        if self.living is None:
            return NativeEngine(self.state.rebuilt())
        living = self.living.rebuilt()
        return NativeEngine(living.state, living)

    def _mark(self) -> np.ndarray:
        """Scratch space of this thread."""
        mark = getattr(self._local, "mark", _NO_MARK)
        if mark.size < self.num_nodes:
            mark = self._local.mark = np.full(self.state.graph.arcs.start.size, -1, np.int32)
        return mark

    def reads(self, nodes: Ids) -> Reads:
        ids = as_ids(nodes)
        with self.lock:
            if ids.size and not 0 <= ids.min() <= ids.max() < self.num_nodes:
                raise out_of_range(int(ids[(ids < 0) | (ids >= self.num_nodes)][0]), self.num_nodes)
            graph = self.state.graph
            depth = graph.network.norm.size
            _, order, sizes, start, _, weight = receptive_field(ids, graph.arcs, depth, self._mark())
            arcs = int(start[sizes[depth - 1]])
            return Reads(order.size, arcs, self._bytes(order, sizes, arcs, bool(weight.size)))

    def _bytes(self, order: np.ndarray, sizes: np.ndarray, arcs: int, weighted: bool) -> int:
        features = self.state.graph.features
        if features.products.shape[0]:
            tables = order.size + (sizes[-2] if features.roots.shape[0] else 0)
            values = tables * 4 * features.products.shape[1]
        elif features.sparse:
            values = 8 * count_stored(order, features.rows) + 16 * order.size
        else:
            values = 4 * self.inputs * order.size
        per_node = 16 + 8 * int((self.state.graph.network.norm > 0).any())  # where its row is, own value and scale
        return int(values) + arcs * (8 if weighted else 4) + per_node * order.size

    def save(self, path: str | PathLike[str]) -> Path:
        target = as_path("path", path)
        with self._writer:  # nobody changes the graph meanwhile, everybody may read it
            tensors, metadata = pack_native(self.state)
            if self.living is not None:
                tensors, metadata = (a | b for a, b in zip((tensors, metadata), pack_living(self.living), strict=True))
            write(target, tensors, metadata)
        return target


_NONE = np.empty((0, 0), np.float32)
_NO_MARK = np.empty(0, np.int32)
