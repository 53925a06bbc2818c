"""Experiment trackers as callbacks; each needs the extra of its name.

Every tracker records the settings of a fit, ``{phase}/val``, ``{phase}/best`` and ``{phase}/sparsity`` for each epoch,
and at the end the numbers of ``result.metrics``. Of several workers only the first one records.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any

from gst.base import distributed
from gst.base.optional import optional
from gst.train.callbacks import Callback
from gst.train.trainer import Progress

Plain = int | float | str | bool


def plain(values: Mapping[str, Any]) -> dict[str, Plain]:
    """The numbers, texts and truth values of nested settings, by names with dots.

    >>> plain({"seed": 0, "seconds": {"total": 1.5}, "keep": None})
    {'seed': 0, 'seconds.total': 1.5}
    """
    out: dict[str, Plain] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            out |= {f"{name}.{inner}": v for inner, v in plain(value).items()}
        elif isinstance(value, Plain):
            out[name] = value
    return out


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among them."""
    return {k: float(v) for k, v in plain(values).items() if isinstance(v, int | float) and not isinstance(v, bool)}


class Tracker(Callback, ABC):
    """What trackers share: steps count through all phases, and only the first worker records."""

    def __init__(self) -> None:
        self._step = 0

    def on_start(self, settings: Mapping[str, Any]) -> None:
        self._step = 0
        if distributed.rank() == 0:
            self.begin(plain(settings))

    def on_epoch(self, progress: Progress) -> None:
        self._step += 1
        if distributed.rank() == 0:
            phase = progress.phase
            values = {"val": progress.val, "best": progress.best, "sparsity": progress.sparsity}
            self.log({f"{phase}/{name}": value for name, value in values.items()}, self._step)

    def on_end(self, result: Any) -> None:
        if distributed.rank() == 0:
            self.finish(plain(result.metrics))

    def on_error(self, error: BaseException) -> None:
        if distributed.rank() == 0:
            self.abort(isinstance(error, KeyboardInterrupt))

    @abstractmethod
    def begin(self, settings: dict[str, Plain]) -> None:
        """Opens a run."""

    @abstractmethod
    def log(self, values: dict[str, float], step: int) -> None:
        """Records the values of an epoch."""

    @abstractmethod
    def finish(self, metrics: dict[str, Plain]) -> None:
        """Records the outcome and closes the run."""

    @abstractmethod
    def abort(self, interrupted: bool) -> None:
        """Closes the run of a fit that failed."""


class TensorBoard(Tracker):
    """Writes event files for ``tensorboard --logdir``; needs the extra ``tensorboard``.

    Args:
        folder: of the event files, a new one for each fit: TensorBoard shows files of one folder as one run.

    >>> import gst, tempfile
    >>> gst.TensorBoard(tempfile.mkdtemp())  # doctest: +ELLIPSIS
    TensorBoard('...')
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        super().__init__()
        optional("tensorboard", "gst.TensorBoard")
        self.folder = fspath(folder)

    def begin(self, settings: dict[str, Plain]) -> None:
        self._writer = optional("torch.utils.tensorboard", "gst.TensorBoard").SummaryWriter(self.folder)
        rows = "\n".join(f"| {name} | {value} |" for name, value in settings.items())
        self._writer.add_text("settings", f"| setting | value |\n| --- | --- |\n{rows}")

    def log(self, values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def finish(self, metrics: dict[str, Plain]) -> None:
        for name, value in numbers(metrics).items():
            self._writer.add_scalar(f"result/{name}", value, self._step)
        self._writer.close()

    def abort(self, interrupted: bool) -> None:
        self._writer.close()

    def __repr__(self) -> str:
        return f"TensorBoard({self.folder!r})"


class MLflow(Tracker):
    """Records a fit as an MLflow run: nested, if one is active, else a new one; needs the extra ``mlflow``.

    Where it goes is MLflow's own setting (``mlflow.set_tracking_uri``, ``MLFLOW_TRACKING_URI``).

    Args:
        experiment: name of the MLflow experiment; None: the one that is set.
        run_name: of the run; None: method and data set.

    >>> import gst
    >>> tracker = gst.MLflow("graphs")  # doctest: +SKIP
    >>> gst.sparsify(data, "gst", sparsity=0.5, callbacks=tracker)  # doctest: +SKIP
    """

    def __init__(self, experiment: str | None = None, run_name: str | None = None) -> None:
        super().__init__()
        optional("mlflow", "gst.MLflow")
        self.experiment = experiment
        self.run_name = run_name

    @property
    def _mlflow(self) -> Any:  # not an attribute: estimators with their callbacks can be copied, modules cannot
        return optional("mlflow", "gst.MLflow")

    def begin(self, settings: dict[str, Plain]) -> None:
        if self.experiment is not None:
            self._mlflow.set_experiment(self.experiment)
        name = self.run_name or f"{settings.get('method')} {settings.get('dataset')}"
        self._mlflow.start_run(run_name=name, nested=self._mlflow.active_run() is not None)
        self._mlflow.log_params(settings)

    def log(self, values: dict[str, float], step: int) -> None:
        self._mlflow.log_metrics(values, step=step)

    def finish(self, metrics: dict[str, Plain]) -> None:
        self._mlflow.log_metrics({f"result/{name}": value for name, value in numbers(metrics).items()})
        self._mlflow.end_run()

    def abort(self, interrupted: bool) -> None:
        self._mlflow.end_run("KILLED" if interrupted else "FAILED")

    def __repr__(self) -> str:
        return f"MLflow({self.experiment!r}, {self.run_name!r})"


class WandB(Tracker):
    """Records a fit as a run of Weights & Biases; needs the extra ``wandb``.

    Args:
        project: name of the project.
        mode: ``"online"``, ``"offline"`` (``wandb sync`` sends it later) or ``"disabled"``.
        folder: where its files are written; None: ``./wandb``.

    >>> import gst
    >>> tracker = gst.WandB("graphs", mode="offline")  # doctest: +SKIP
    >>> gst.sparsify(data, "gst", sparsity=0.5, callbacks=tracker)  # doctest: +SKIP
    """

    def __init__(
        self, project: str = "gst", mode: str | None = None, folder: str | PathLike[str] | None = None
    ) -> None:
        super().__init__()
        optional("wandb", "gst.WandB")
        self.project = project
        self.mode = mode
        self.folder = None if folder is None else fspath(folder)

    def begin(self, settings: dict[str, Plain]) -> None:
        self._run = optional("wandb", "gst.WandB").init(
            project=self.project, mode=self.mode, dir=self.folder, config=settings
        )

    def log(self, values: dict[str, float], step: int) -> None:
        self._run.log(values, step=step)

    def finish(self, metrics: dict[str, Plain]) -> None:
        self._run.summary.update({f"result/{name}": value for name, value in metrics.items()})
        self._run.finish()

    def abort(self, interrupted: bool) -> None:
        self._run.finish(exit_code=1)

    def __repr__(self) -> str:
        return f"WandB({self.project!r})"
