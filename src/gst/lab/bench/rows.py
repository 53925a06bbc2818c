"""What one run leaves behind: a row, the same in the store and in a CSV file.

Where a row is written, a checksum of its words stands beside it, so that a changed digit is never taken for a result.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from gst.base.errors import DamagedError, InputError
from gst.base.memory import check_size
from gst.base.regular_files import open_regular
from gst.base.text import as_cell, from_cell, shown
from gst.data.untrusted import one_line
from gst.storage import files


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
    agreement: float | None = None  # share of all nodes that the returned model answers as the dense one, 0 to 1
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
    versions: str = ""  # of the code that decides the bits, see gst.base.versions
    code: str = ""  # version of gst and hash of its sources
    command: str = ""
    environment: str = ""
    finished: str = ""  # ISO time
    key: str = ""  # hash of configuration, data and code version

    def words(self) -> dict[str, str]:
        """As text: floats as repr, facts as JSON, empty for what was not measured."""
        return {name: _text(name, value) for name, value in vars(self).items()}

    def cells(self) -> dict[str, str]:
        """The same for a CSV file, which may be opened by a spreadsheet: no text is a formula."""
        return {name: as_cell(word) if KINDS[name] is str else word for name, word in self.words().items()}

    @classmethod
    def from_words(cls, words: dict[str, Any]) -> "Row":
        """The row that such text, or values of their own kind, mean; columns it lacks are not measured."""
        return cls(**{name: _value(name, words[name]) for name in COLUMNS if words.get(name) is not None})

    def sealed(self) -> dict[str, str]:
        """``words`` and their ``checksum``: what is written to a CSV file."""
        return {**self.words(), CHECKSUM: self.checksum()}

    def checksum(self) -> str:
        """Of the words; empty ones do not count, so that columns may be added."""
        filled = {name: word for name, word in self.words().items() if word}
        return files.digest(json.dumps(filled, sort_keys=True).encode())

    @classmethod
    def from_sealed(cls, words: dict[str, Any], where: str, must: bool = True) -> "Row":
        """The row of words that, if they ``must``, have their checksum; one line says where they do not."""
        try:
            row = cls.from_words(words)
            whole = not must or row.checksum() == words.get(CHECKSUM)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise DamagedError(f"{where} is damaged: {one_line(error)}") from None
        if not whole:
            raise DamagedError(f"{where} is damaged: it does not have the checksum it was written with")
        return row

    def variations(self) -> dict[str, str]:
        """``variation`` by name."""
        return dict(part.split("=", 1) for part in self.variation.split(";") if part)


COLUMNS = tuple(column.name for column in fields(Row))
CHECKSUM = "checksum"
WRITTEN = (*COLUMNS, CHECKSUM)
NEEDED = COLUMNS[:8]  # what names a run
MOST_LINE = 2**20  # characters of a line; facts are kilobytes
KINDS = {name: (get_args(kind) or (kind,))[0] for name, kind in get_type_hints(Row).items()}
KINDS["facts"] = dict


def _text(name: str, value: Any) -> str:
    """One text for one meaning: 0 and 0.0 are the same sparsity."""
    kind = KINDS[name]
    if value is None or value == {}:
        return ""
    if kind is dict:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return repr(float(value)) if kind is float else str(kind(value))


def _value(name: str, word: Any) -> Any:
    kind = KINDS[name]
    if kind is dict:
        return json.loads(word) if word else {}
    return None if word == "" and kind is not str else kind(word)


def read_csv(path: Path, *, only: bool = False) -> list[Row]:
    """The rows of a file; one clear line for a bad one. Only a file without the column may lack checksums.

    ``only``: refuses columns that a row does not have.
    """
    try:
        reader = csv.reader(_lines(path))
        header = next(reader, [])
        _check_header(path, header, only)
        return [_row(header, line, f"{path}, line {reader.line_num},") for line in reader if line]
    except (ValueError, csv.Error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no record of gst bench: {error}") from None


def _check_header(path: Path, header: list[str], only: bool) -> None:
    if missing := [name for name in NEEDED if name not in header]:
        raise InputError(f"{path} is no record of gst bench: it has no column {missing[0]!r}")
    if more := [name for name in header if only and name not in WRITTEN]:
        more = [shown(name) for name in more]
        raise InputError(f"{path} has a column {more[0]!r} of its own, which would be lost: choose another folder")
    if len(set(header)) < len(header):
        raise InputError(f"{path} is no record of gst bench: it has a column twice")


def _row(header: list[str], line: list[str], where: str) -> Row:
    if len(line) != len(header):
        raise DamagedError(f"{where} is damaged: it has {len(line)} fields, the header {len(header)}")
    return Row.from_sealed(_from_cells(dict(zip(header, line, strict=True))), where, must=CHECKSUM in header)


def is_record(path: Path) -> bool:
    """Whether the first line is that of such a file."""
    try:
        return set(NEEDED) <= set(next(csv.reader(_lines(path)), []))
    except (ValueError, csv.Error):
        return False


def _lines(path: Path) -> Iterator[str]:
    """Lines of text of sensible length: what has no end of line is never read whole."""
    check_size(path)
    with io.TextIOWrapper(open_regular(path), encoding="utf-8", newline="") as file:
        while line := file.readline(MOST_LINE):
            if len(line) == MOST_LINE or "\0" in line:
                raise ValueError(f"a line is longer than {MOST_LINE} characters or holds a NUL")
            yield line


def _from_cells(cells: dict[str, Any]) -> dict[str, Any]:
    return {name: from_cell(cell) if KINDS.get(name) is str and cell else cell for name, cell in cells.items()}


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """All of these rows, or the file as it was."""
    lines = [_line(WRITTEN), *(_line([*row.cells().values(), row.checksum()]) for row in rows)]
    files.write_bytes(path, "".join(lines).encode())


def _line(cells: Iterable[str]) -> str:
    r"""Ends in ``\n`` but is quoted as if in ``\r\n``: a lone ``\r`` in a text would else end it for its reader."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"
