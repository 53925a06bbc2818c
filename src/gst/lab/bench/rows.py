"""One row per run, the same in the store and in a CSV file.

A written row carries a checksum of its texts, so that a changed digit is never taken for a result.
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
    """One run. None is "not measured"; scores are per cent.

    >>> row = Row("rq1", "smoke", "digits", "gcn", "gst", 0.5, 0, test=81.2)
    >>> Row.from_texts(row.texts()) == row, row.texts()["test"], row.texts()["warm_test"]
    (True, '81.2', '')
    """

    experiment: str
    profile: str
    dataset: str
    backbone: str
    method: str
    sparsity: float  # share of edges to remove, as requested
    seed: int
    variation: str = ""  # "name=value;…": what else the experiment varies
    status: str = "done"  # or "failed"
    reason: str = ""  # of a failure
    split: str = ""  # drawn for this seed; empty: the data set's default
    edges_total: int | None = None
    edges_kept: int | None = None
    metric: str = ""
    val: float | None = None  # the returned model on the sparse graph
    test: float | None = None
    retrain_val: float | None = None  # a fresh model on the sparse graph, E + D epochs
    retrain_test: float | None = None
    warm_val: float | None = None  # E epochs on the full graph, then D on the sparse one
    warm_test: float | None = None
    frozen_val: float | None = None  # the dense model of the same seed on the sparse graph, its weights as they are
    frozen_test: float | None = None
    dense_val: float | None = None  # E + D epochs on the full graph
    dense_test: float | None = None
    updates: int | None = None  # exchanges that the sparse graph has had, of methods that exchange edges
    agreement: float | None = None  # share of all nodes that the returned model predicts as the dense one, 0 to 1
    seconds: float | None = None  # of the method, including what other runs share with it
    spectrum_top: float | None = None  # mean relative error of the largest eigenvalues
    spectrum_bottom: float | None = None  # and of the smallest above zero
    normalised_top: float | None = None  # the same of the normalised Laplacian
    normalised_bottom: float | None = None
    macs_dense: float | None = None
    macs_sparse: float | None = None  # counted on the sparse graph
    macs_paper: float | None = None  # by the paper's convention
    dense_ms: float | None = None  # one forward pass of the returned model on the full graph
    sparse_ms: float | None = None
    weight_sparsity: float | None = None  # share of weights removed, of lottery tickets
    facts: dict[str, Any] = field(default_factory=dict)  # anything longer than a number
    versions: str = ""  # of the code that decides the numbers, see gst.base.versions
    code: str = ""  # version of gst and hash of its sources
    command: str = ""
    environment: str = ""
    finished: str = ""  # ISO time
    key: str = ""  # hash of configuration, data and code version

    def texts(self) -> dict[str, str]:
        """Every field as text: floats as repr, facts as JSON, empty for what was not measured."""
        return {name: _text(name, value) for name, value in vars(self).items()}

    def cells(self) -> dict[str, str]:
        """The same for a CSV file, with texts quoted that a spreadsheet would take for formulas."""
        return {name: as_cell(text) if KINDS[name] is str else text for name, text in self.texts().items()}

    @classmethod
    def from_texts(cls, texts: dict[str, Any]) -> "Row":
        """The row of such texts, or of values of the right type; missing columns are "not measured"."""
        return cls(**{name: _value(name, texts[name]) for name in COLUMNS if texts.get(name) is not None})

    def sealed(self) -> dict[str, str]:
        """``texts`` and their ``checksum``: what is written to a CSV file."""
        return {**self.texts(), CHECKSUM: self.checksum()}

    def checksum(self) -> str:
        """Of the texts; empty ones do not count, so that columns may be added."""
        filled = {name: text for name, text in self.texts().items() if text}
        return files.digest(json.dumps(filled, sort_keys=True).encode())

    @classmethod
    def from_sealed(cls, texts: dict[str, Any], where: str, must: bool = True) -> "Row":
        """The row of these texts, whose checksum has to match if it ``must``; errors say ``where`` it does not."""
        try:
            row = cls.from_texts(texts)
            intact = not must or row.checksum() == texts.get(CHECKSUM)
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise DamagedError(f"{where} is damaged: {one_line(error)}") from None
        if not intact:
            raise DamagedError(f"{where} is damaged: its checksum does not match")
        return row


COLUMNS = tuple(column.name for column in fields(Row))
CHECKSUM = "checksum"
WRITTEN = (*COLUMNS, CHECKSUM)
NAMING = COLUMNS[:7]  # what names a run
MAX_LINE = 2**20  # characters; facts take kilobytes
KINDS = {name: (get_args(kind) or (kind,))[0] for name, kind in get_type_hints(Row).items()}
KINDS["facts"] = dict


def _text(name: str, value: Any) -> str:
    """Equal values have equal texts: 0 and 0.0 are the same sparsity."""
    kind = KINDS[name]
    if value is None or value == {}:
        return ""
    if kind is dict:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return repr(float(value)) if kind is float else str(kind(value))


def _value(name: str, text: Any) -> Any:
    kind = KINDS[name]
    if kind is dict:
        return json.loads(text) if text else {}
    return None if text == "" and kind is not str else kind(text)


def read_csv(path: Path, *, strict: bool = False) -> list[Row]:
    """The rows of a file. Checksums are required wherever the file has a column for them.

    ``strict``: refuses columns that a row does not have.
    """
    try:
        reader = csv.reader(read_lines(path))
        header = next(reader, [])
        _check_header(path, header, strict)
        return [_row(header, line, f"{path}, line {reader.line_num},") for line in reader if line]
    except (ValueError, csv.Error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is no record of gst bench: {error}") from None


def _check_header(path: Path, header: list[str], strict: bool) -> None:
    if missing := [name for name in NAMING if name not in header]:
        raise InputError(f"{path} is no record of gst bench: it has no column {missing[0]!r}")
    if strict and (extra := [shown(name) for name in header if name not in WRITTEN]):
        raise InputError(f"{path} has an extra column {extra[0]!r}, which would be lost: choose another folder")
    if len(set(header)) < len(header):
        raise InputError(f"{path} is no record of gst bench: it has a column twice")


def _row(header: list[str], line: list[str], where: str) -> Row:
    if len(line) != len(header):
        raise DamagedError(f"{where} is damaged: it has {len(line)} fields, the header {len(header)}")
    return Row.from_sealed(_from_cells(dict(zip(header, line, strict=True))), where, must=CHECKSUM in header)


def is_record(path: Path) -> bool:
    """Whether the header is that of such a file."""
    try:
        return set(NAMING) <= set(next(csv.reader(read_lines(path)), []))
    except (ValueError, csv.Error):
        return False


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a text file; a file without line ends is never read whole."""
    check_size(path)
    with io.TextIOWrapper(open_regular(path), encoding="utf-8", newline="") as file:
        while line := file.readline(MAX_LINE):
            if len(line) == MAX_LINE or "\0" in line:
                raise ValueError(f"a line is longer than {MAX_LINE} characters or holds a NUL")
            yield line


def _from_cells(cells: dict[str, Any]) -> dict[str, Any]:
    return {name: from_cell(cell) if KINDS.get(name) is str and cell else cell for name, cell in cells.items()}


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Replaces the file by these rows in one step."""
    write_lines(path, [WRITTEN, *([*row.cells().values(), row.checksum()] for row in rows)])


def write_lines(path: Path, lines: Iterable[Iterable[str]]) -> None:
    """Replaces a CSV file in one step: these cells, or the file as it was."""
    files.write_bytes(path, "".join(map(_line, lines)).encode())


def _line(cells: Iterable[str]) -> str:
    r"""Ends in ``\n`` but is quoted as if in ``\r\n``: an unquoted ``\r`` in a text would end the line for readers."""
    text = io.StringIO(newline="")
    csv.writer(text).writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"
