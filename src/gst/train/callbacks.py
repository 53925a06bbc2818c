"""Who is told what a fit does: functions and :class:`Callback` objects, the trackers among them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gst.base.errors import InputError
from gst.base.log import log
from gst.train.trainer import Progress


class Callback:
    """Told when a fit begins, after each of its epochs, and how it ends; override what you need.

    >>> import gst
    >>> class Best(gst.Callback):
    ...     def on_end(self, result):
    ...         print(result.metrics["method"], result.metrics["edges_kept"])
    >>> data = gst.load("synthetic:nodes=60,classes=2", degree=4)
    >>> few = dict(hidden=4, anchor_epochs=1, sparse_epochs=1, cache=False)
    >>> result = gst.sparsify(data, "random", keep=50, callbacks=Best(), **few)
    random 50
    """

    def on_start(self, settings: Mapping[str, Any]) -> None:
        """Before the first epoch: ``dataset``, ``method``, ``backbone``, the budget and every setting by name."""

    def on_epoch(self, progress: Progress) -> None:
        """After every epoch of every phase."""

    def on_end(self, result: Any) -> None:
        """With the :class:`gst.Result` of a fit that is done."""

    def on_error(self, error: BaseException) -> None:
        """With the exception that ends a fit early, ``KeyboardInterrupt`` among them; it is raised afterwards."""


Told = Callback | Callable[[Progress], None]
Callbacks = Told | Sequence[Told]


class History(Callback):
    """Keeps every :class:`Progress`; ``result.history`` is made of it.

    >>> history = History()
    >>> history.on_epoch(Progress("anchor", 1, 200, val=50.0, best=50.0, sparsity=0.0))
    >>> len(history.epochs)
    1
    """

    def __init__(self) -> None:
        self.epochs: list[Progress] = []

    def on_epoch(self, progress: Progress) -> None:
        self.epochs.append(progress)


class Log(Callback):
    """Writes to the logger ``gst``: beginning, phases and end at INFO, settings and epochs at DEBUG."""

    def __init__(self) -> None:
        self._phase = ""

    def on_start(self, settings: Mapping[str, Any]) -> None:
        parts = {name: settings.get(name) for name in ("dataset", "backbone", "sparsity", "keep", "seed")}
        text = ", ".join(f"{name} {value}" for name, value in parts.items() if value is not None)
        log.info("fit %s: %s", settings.get("method"), text)
        log.debug("settings: %s", dict(settings))

    def on_epoch(self, progress: Progress) -> None:
        if progress.phase != self._phase:
            self._phase = progress.phase
            log.info("phase %s: %d steps", progress.phase, progress.epochs)
        log.debug("%s %d/%d: val %.2f", progress.phase, progress.epoch, progress.epochs, progress.val)

    def on_end(self, result: Any) -> None:
        log.info("done: %r", result)

    def on_error(self, error: BaseException) -> None:
        log.info("ended early: %s: %s", type(error).__name__, error)


class _Function(Callback):
    """A plain function as a callback."""

    def __init__(self, function: Callable[[Progress], None]) -> None:
        self._function = function

    def on_epoch(self, progress: Progress) -> None:
        self._function(progress)


class CallbackList(Callback):
    """Several callbacks as one."""

    def __init__(self, callbacks: Callbacks) -> None:
        given = callbacks if isinstance(callbacks, Sequence) else (callbacks,)
        self._callbacks = [_as_callback(callback) for callback in given]

    def __iter__(self) -> Iterator[Callback]:
        return iter(self._callbacks)

    @contextmanager
    def during(self, settings: Mapping[str, Any]) -> Iterator[None]:
        """Tells of the start, and of the error if there is one."""
        self.on_start(settings)
        try:
            yield
        except BaseException as error:
            self.on_error(error)
            raise

    def on_start(self, settings: Mapping[str, Any]) -> None:
        for callback in self._callbacks:
            callback.on_start(settings)

    def on_epoch(self, progress: Progress) -> None:
        for callback in self._callbacks:
            callback.on_epoch(progress)

    def on_end(self, result: Any) -> None:
        for callback in self._callbacks:
            callback.on_end(result)

    def on_error(self, error: BaseException) -> None:
        for callback in self._callbacks:
            callback.on_error(error)


def _as_callback(callback: Any) -> Callback:
    if isinstance(callback, Callback):
        return callback
    if isinstance(callback, type) or not callable(callback):
        kind = callback.__name__ if isinstance(callback, type) else type(callback).__name__
        right = "a function to call after every epoch, a gst.Callback or a list of them"
        raise InputError(f"callbacks holds {'the class' if isinstance(callback, type) else 'a'} {kind}: give {right}")
    return _Function(callback)
