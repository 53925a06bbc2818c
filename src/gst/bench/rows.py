"""What one run leaves behind: a row, the same in the store and in a CSV file."""

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from gst import artifact
from gst.errors import InputError


@dataclass(frozen=True)
class Row:
    """One run. None is "not measured"; scores are per cent, as everywhere.

    >>> row = Row("rq1", "smoke", "digits", "gcn", "gst", "paper", 0.5, 0, test=81.2)
    >>> Row.from_words(row.words()) == row, row.words()["test"], row.words()["warm_test"]
    (True, '81.2', '')
    """

    experiment: str
    profile: str
    dataset: str
    backbone: str
    method: str
    recipe: str  # of GST; empty for the others
    sparsity: float  # share of edges to remove, as asked
    seed: int
    variation: str = ""  # "name=value;…", what else this experiment changes
    status: str = "done"  # or "failed"
    reason: str = ""  # of a failure
    edges_total: int | None = None
    edges_kept: int | None = None
    metric: str = ""
    val: float | None = None  # the returned model on the sparse graph
    test: float | None = None
    retrain_val: float | None = None  # a fresh model on the sparse graph, E + D epochs
    retrain_test: float | None = None
    warm_val: float | None = None  # E epochs on the full graph, then D on the sparse one
    warm_test: float | None = None
    dense_val: float | None = None  # E + D epochs on the full graph
    dense_test: float | None = None
    seconds: float | None = None  # of the method, as if nothing had been shared with other runs
    spectrum_top: float | None = None  # mean relative error of the largest eigenvalues
    spectrum_bottom: float | None = None  # and of the smallest above zero
    macs_dense: float | None = None
    macs_sparse: float | None = None  # what the sparse graph truly takes
    macs_paper: float | None = None  # by the paper's convention
    dense_ms: float | None = None  # one forward pass of the returned model on the full graph
    sparse_ms: float | None = None
    weight_sparsity: float | None = None  # share of weights removed, of lottery tickets
    facts: dict[str, Any] = field(default_factory=dict)  # whatever is longer than a number
    code: str = ""
    command: str = ""
    environment: str = ""
    finished: str = ""  # ISO time
    key: str = ""  # hash of configuration, data and code version

    def words(self) -> dict[str, str]:
        """As text: floats as repr, facts as JSON, empty for what was not measured."""
        return {name: _text(value) for name, value in asdict(self).items()}

    @classmethod
    def from_words(cls, words: dict[str, Any]) -> "Row":
        """The row that such text, or values of their own kind, mean; columns it lacks are not measured."""
        return cls(**{name: _value(name, words[name]) for name in COLUMNS if words.get(name) is not None})

    def variations(self) -> dict[str, str]:
        """``variation`` by name."""
        return dict(part.split("=", 1) for part in self.variation.split(";") if part)


COLUMNS = tuple(column.name for column in fields(Row))
KINDS = {name: (get_args(kind) or (kind,))[0] for name, kind in get_type_hints(Row).items()}
KINDS["facts"] = dict


def _text(value: Any) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return repr(value) if isinstance(value, float) else str(value)


def _value(name: str, word: Any) -> Any:
    kind = KINDS[name]
    if kind is dict:
        return json.loads(word) if word else {}
    return None if word == "" and kind is not str else kind(word)


def read_csv(path: Path) -> list[Row]:
    """The rows of a file; one clear line for a bad one."""
    try:
        reader = csv.DictReader(io.StringIO(artifact.read_bytes(path).decode()))
        if missing := [name for name in COLUMNS[:8] if name not in (reader.fieldnames or ())]:
            raise InputError(f"{path} is no record of gst bench: it has no column {missing[0]!r}")
        return [Row.from_words(words) for words in reader]
    except (ValueError, TypeError, csv.Error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no record of gst bench: {error}") from None


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """All of these rows, or the file as it was."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.words() for row in rows)
    artifact.write_bytes(path, text.getvalue().encode())
