"""One cell of an experiment: a single run, fully described, and the key that identifies it."""

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from gst.base.errors import InputError
from gst.base.names import normalise_name
from gst.base.versions import versions
from gst.lab.bench.rows import NAMING, Row
from gst.train.presets import preset
from gst.train.settings import Value

MODELS = ("returned", "fresh", "warm")  # the frozen one costs nothing and is always measured
FILTERS = ("dataset", "backbone", "method", "sparsity", "seed", "variation")


@dataclass(frozen=True)
class Cell:
    """A run to do. All fields but ``experiment`` and ``profile`` decide its result; the data set by its content."""

    experiment: str
    profile: str
    dataset: str
    backbone: str
    method: str
    sparsity: float
    seed: int
    variation: dict[str, Value] = field(default_factory=dict)  # varied arguments, or "relocated", "rounds"
    settings: dict[str, Value] = field(default_factory=dict)  # of training and batching
    options: dict[str, Value] = field(default_factory=dict)  # of the method
    split: str = ""  # as ``gst.load`` takes it; empty: the default
    models: tuple[str, ...] = MODELS  # which are trained and measured besides the dense one
    spectrum: bool = False  # whether eigenvalues are compared as well

    def key(self, data: str) -> str:
        """Hash of the configuration, the data (its fingerprint) and the versions: equal for equal work."""
        work = {name: value for name, value in asdict(self).items() if name not in ("experiment", "profile", "dataset")}
        text = json.dumps({**work, "data": data, "versions": self.versions}, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    @property
    def versions(self) -> str:
        """Of the code that decides the result."""
        batch = {**preset(self.dataset, self.backbone), **self.settings}.get("batch", "full")
        return versions(self.dataset, self.backbone, str(batch), self.method)

    @property
    def variation_text(self) -> str:
        """``name=value;…``, as in a row."""
        return ";".join(f"{name}={value}" for name, value in self.variation.items())

    @property
    def command(self) -> str:
        """Runs this cell alone."""
        values = {name: _text(self, name) for name in FILTERS}
        only = ",".join(f"{name}={value}" for name, value in values.items() if value)
        seeds = ["--seeds", str(self.seed + 1)]
        return shlex.join(["gst", "bench", self.experiment, "--profile", self.profile, *seeds, "--only", only])

    def row(self, **measured: Any) -> Row:
        """The row of this cell with what was measured."""
        names = {name: getattr(self, name) for name in NAMING}
        return Row(
            **names,
            variation=self.variation_text,
            split=self.split,
            versions=self.versions,
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            command=self.command,
            **measured,
        )

    @property
    def group(self) -> tuple[Any, ...]:
        """Cells of one group share a model, an anchor or a path of removals; one worker runs them in turn."""
        relocated = {name: value for name, value in self.variation.items() if name == "relocated"}
        return self.dataset, self.backbone, self.method, self.seed, str(relocated)


def group_cells(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells by group, in the order of their first cells."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.group, []).append(cell)
    return list(groups.values())


def filter_cells(cells: Iterable[Cell], only: str | None) -> Iterator[Cell]:
    """The cells that match a filter such as ``dataset=cora,backbone=gcn``; a name given twice means either value.

    >>> cells = [Cell("rq1", "quick", "Cora", "gcn", "gst", s, 0) for s in (0.1, 0.2, 0.3)]
    >>> [cell.sparsity for cell in filter_cells(cells, "dataset=cora,sparsity=0.1,sparsity=0.3")]
    [0.1, 0.3]
    """
    accepted: dict[str, set[str]] = {}
    for part in filter(None, (part.strip() for part in (only or "").split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in FILTERS:
            raise InputError(f"--only {part!r}: NAME=VALUE is needed, NAME one of {', '.join(FILTERS)}")
        accepted.setdefault(name, set()).add(_normalised(value))
    return (cell for cell in cells if all(_normalised(_text(cell, name)) in accepted[name] for name in accepted))


def _text(cell: Cell, name: str) -> str:
    return cell.variation_text if name == "variation" else str(getattr(cell, name))


def _normalised(value: str) -> str:
    try:
        return repr(float(value))
    except ValueError:
        return normalise_name(value)
