"""A cell of an experiment: one run, described down to the last setting, and the key by which it is known."""

import hashlib
import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from gst.base.errors import InputError
from gst.base.names import normal
from gst.base.versions import versions
from gst.lab.bench.rows import Row
from gst.train.presets import preset

FILTERS = ("dataset", "backbone", "method", "recipe", "sparsity", "seed", "variation")


@dataclass(frozen=True)
class Cell:
    """What to run. Everything but ``experiment`` and ``profile`` decides the result, the data set by its content."""

    experiment: str
    profile: str
    dataset: str
    backbone: str
    method: str
    recipe: str
    sparsity: float
    seed: int
    variation: dict[str, Any] = field(default_factory=dict)  # settings of GST, or "relocated", "rounds"
    settings: dict[str, Any] = field(default_factory=dict)  # of training, beside those of the variation
    options: dict[str, Any] = field(default_factory=dict)  # of the method itself
    spectrum: bool = False  # whether eigenvalues are compared as well

    def key(self, data: str) -> str:
        """Hash of configuration, data (its fingerprint) and versions; the same work has the same key everywhere."""
        work = {name: value for name, value in asdict(self).items() if name not in ("experiment", "profile", "dataset")}
        text = json.dumps({**work, "data": data, "versions": self.versions}, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    @property
    def versions(self) -> str:
        """Of the code that decides the result."""
        algorithm = self.recipe if self.recipe not in ("", "paper") else self.method
        batch = {**preset(self.dataset, self.backbone), **self.settings}.get("batch", "full")
        return versions(self.dataset, self.backbone, batch, algorithm)

    @property
    def varied(self) -> str:
        """The variation as text."""
        return ";".join(f"{name}={value}" for name, value in self.variation.items())

    @property
    def command(self) -> str:
        """What runs this cell alone."""
        words = {name: _word(self, name) for name in FILTERS}
        only = ",".join(f"{name}={word}" for name, word in words.items() if word)
        seeds = ["--seeds", str(self.seed + 1)]
        return shlex.join(["gst", "bench", self.experiment, "--profile", self.profile, *seeds, "--only", only])

    def row(self, **found: Any) -> Row:
        """The row of this cell with what was found."""
        names = ("experiment", "profile", "dataset", "backbone", "method", "recipe", "sparsity", "seed")
        named = {name: getattr(self, name) for name in names}
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return Row(**named, variation=self.varied, versions=self.versions, finished=now, command=self.command, **found)

    @property
    def group(self) -> tuple[Any, ...]:
        """Cells of one group share a model, an anchor or a path of removals: one worker runs them one by one."""
        shared = {name: value for name, value in self.variation.items() if name == "relocated"}
        return self.dataset, self.backbone, self.method, self.seed, str(shared)


def groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells by group, in the order of their first cells."""
    found: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.group, []).append(cell)
    return list(found.values())


def chosen(cells: Iterable[Cell], only: str | None) -> Iterator[Cell]:
    """Those that a filter such as ``dataset=cora,backbone=gcn`` names; a name given twice means either.

    >>> cells = [Cell("rq1", "quick", "Cora", "gcn", "gst", "paper", s, 0) for s in (0.1, 0.2, 0.3)]
    >>> [cell.sparsity for cell in chosen(cells, "dataset=cora,sparsity=0.1,sparsity=0.3")]
    [0.1, 0.3]
    """
    wanted: dict[str, set[str]] = {}
    for part in filter(None, (part.strip() for part in (only or "").split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in FILTERS:
            raise InputError(f"--only {part!r}: NAME=VALUE is needed, NAME one of {', '.join(FILTERS)}")
        wanted.setdefault(name, set()).add(_plain(value))
    return (cell for cell in cells if all(_plain(_word(cell, name)) in values for name, values in wanted.items()))


def _word(cell: Cell, name: str) -> str:
    return cell.varied if name == "variation" else str(getattr(cell, name))


def _plain(value: str) -> str:
    try:
        return repr(float(value))
    except ValueError:
        return normal(value)
