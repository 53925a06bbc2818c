"""Arrays and tables from files, never through pickle."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import re
import warnings
import zipfile
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
import scipy.sparse as sp

from gst.base.errors import InputError
from gst.base.memory import check_claim
from gst.base.optional import Later
from gst.base.regular_files import open_regular
from gst.base.text import shown
from gst.data.parquet import read_parquet
from gst.data.untrusted import reading
from gst.sparse.layouts import sparse_claim

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = Later("pandas", "reading tables")

TEXT = (".txt", ".edgelist", ".tsv", ".csv")
TABLES = (*TEXT, ".parquet")
COMMENTS = "#%"
MAX_LINE = 16 * 2**20  # bytes of a line of text, roughly
MAX_COLUMNS = 100_000  # of a text table
_BLOCK = 2**20  # bytes read at once
NOT_NAMES = ("", "true", "false", "nan", "na", "n/a", "<na>", "null", "none")


@dataclass(frozen=True)
class Layout:
    """How a text table is written."""

    separator: str
    header: bool
    skip: int  # lines above the header or the first row
    comment: str | None


def kind_of(path: Path) -> str:
    """The suffix that tells the format; ``.gz`` after a text format is ignored.

    >>> kind_of(Path("edges.TSV.gz")), kind_of(Path("x.npy"))
    ('.tsv', '.npy')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if len(suffixes) > 1 and suffixes[-1] == ".gz" and suffixes[-2] in TEXT:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


def require_kind(path: Path, what: str, kinds: tuple[str, ...]) -> str:
    kind = kind_of(path)
    if kind not in kinds:
        raise InputError(f"{what}: cannot tell the format of {path}: the name should end in {', '.join(kinds)}")
    return kind


def read_table(
    path: Path, rows: int | None = None, comment: str | None = None, names: Container[str] = ()
) -> pd.DataFrame:
    """A parquet or text table; columns have the names of the header in lower case, or numbers if there is none.

    Args:
        path: of the table.
        rows: expected number; decides whether the first line of a single column is a header or a value.
        comment: character that begins a comment, unless a comment at the top of the file shows another.
        names: of known columns, for :func:`is_header`.
    """
    if kind_of(path) == ".parquet":
        with reading(path, "a parquet table"):
            return _named(read_parquet(path))
    with reading(path, "a table"), warnings.catch_warnings():
        lines = _check_text(path)
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a row longer than the header would be truncated
        layout, columns = _layout(path, comment, names)
        check_claim(path, 8 * lines * columns)  # short rows are filled up
        table = _read_text(path, layout)
        if layout.header and table.shape[1] == 1 and rows is not None and len(table) == rows - 1:
            table = _read_text(path, replace(layout, header=False))
        return table


def _read_text(path: Path, layout: Layout) -> pd.DataFrame:
    table = pd.read_csv(
        path,
        sep=layout.separator,
        header=0 if layout.header else None,
        skiprows=layout.skip,
        comment=layout.comment,
        skipinitialspace=True,
        index_col=False,
        encoding="utf-8-sig",
        low_memory=False,
    )
    return _named(table)


def _named(table: pd.DataFrame) -> pd.DataFrame:
    table.columns = pd.Index([name.strip().lower() if isinstance(name, str) else name for name in table.columns])
    return table


def _open_text(path: Path) -> BinaryIO:
    """The bytes of a text table, unpacked."""
    return cast(BinaryIO, gzip.open(path)) if path.suffix.lower() == ".gz" else open_regular(path)


def _check_text(path: Path) -> int:
    """Counts the lines in constant memory; refuses NUL bytes, endless lines and what unpacks to more than memory.

    The size at the end of a gzip file is checked first, but it may be false, so the file is unpacked block by block.
    """
    if packed := path.suffix.lower() == ".gz":
        with open_regular(path) as raw:
            raw.seek(-min(4, path.stat().st_size), os.SEEK_END)
            check_claim(path, int.from_bytes(raw.read(4), "little"))
    size = lines = length = 0
    with _open_text(path) as file:
        while chunk := file.read(_BLOCK):
            if b"\0" in chunk:
                raise InputError(f"{path} holds NUL bytes: it is not UTF-8 text")
            last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
            length = length + len(chunk) if last < 0 else len(chunk) - last
            if length > MAX_LINE:
                raise InputError(f"{path} has a line of more than {MAX_LINE // 2**20} MiB: it is no table")
            lines += max(chunk.count(b"\n"), chunk.count(b"\r"))
            size += len(chunk)
            if packed:
                check_claim(path, size)
    return lines + 1


def _layout(path: Path, comment: str | None, names: Container[str]) -> tuple[Layout, int]:
    """Layout and number of columns, from the comments at the top and the first two lines after them."""
    with _open_text(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig") as file:
        for skip, line in enumerate(file):
            text = line.strip(" \r\n")
            if text.strip() and text[0] not in COMMENTS:
                separator = _separator(text, kind_of(path))
                columns = len(re.split(separator, text, maxsplit=MAX_COLUMNS))
                if columns > MAX_COLUMNS:
                    raise InputError(f"{path} has more than {MAX_COLUMNS} columns: save such a matrix as .npy")
                below = next((line for line in file if line.strip()), "")
                header = is_header(_fields(text, separator), _fields(below, separator), names)
                return Layout(separator, header, skip, comment), columns
            comment = text[0] if text.strip() else comment
    raise InputError(f"{path} holds no rows")


def is_header(first: Sequence[str], second: Sequence[str], names: Container[str] = ()) -> bool:
    """Whether the first line names columns: none of its fields is a value or stands for a missing one.

    A line with values is a header only if it holds one of the known ``names``, or is what pandas writes over numbered
    columns: a name or nothing over the index, then 0, 1, 2, …

    >>> is_header(["source", "target"], ["0", "1"]), is_header(["True", "1"], ["2", "3"]), is_header(["0x10", "5"], [])
    (True, False, False)
    >>> is_header(["", "0", "1"], ["0", "0.5", "0.1"]), is_header(["", "5"], ["1", "2"])
    (True, False)
    >>> is_header(["id", "2019"], ["0", "0.5"], ["id"]), is_header(["cat", "0"], ["dog", "1"])
    (True, False)
    """
    after = first[1:]
    candidates = after if after and not first[0] else first  # pandas writes nothing over an unnamed index
    if not any(map(_is_value, candidates)) or any(field.lower() in names for field in first):
        return True
    numbered = list(after) == [str(n) for n in range(len(after))]
    return numbered and bool(after) and not _is_number(first[0]) and bool(second) and _is_number(second[0])


def _fields(line: str, separator: str) -> list[str]:
    """The fields of a line, without the empty ones that separators at its end make."""
    text = line.strip(" \r\n")
    parts = next(csv.reader([text], delimiter=separator), []) if separator in ",\t" else re.split(separator, text)
    fields = [field.strip().strip('"') for field in parts]
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


def _is_value(field: str) -> bool:
    """Whether this is a number, decimal or hexadecimal, a boolean, or a word for a missing value."""
    return field.lower() in NOT_NAMES or _is_number(field) or re.fullmatch(r"[+-]?0[xX][\da-fA-F]+", field) is not None


def _separator(line: str, kind: str) -> str:
    if kind == ".tsv" and "\t" in line:
        return "\t"
    return "," if "," in line else r"\s+"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_array(path: Path) -> np.ndarray:
    """A ``.npy`` array, mapped so that one of a wrong shape takes no memory, or the first array of an ``.npz``."""
    if kind_of(path) == ".npy":
        with reading(path, "a numpy array"):
            array = np.lib.format.open_memmap(path, mode="r")
            check_claim(path, 8 * array.size)  # converted to int64 or float64
            return array
    arrays = read_npz(path)
    return next(iter(arrays.values()))


def read_npz(path: Path) -> dict[str, np.ndarray]:
    with reading(path, "a numpy archive"):
        _check_archive(path)
    with reading(path, "a numpy archive"), np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
        if not arrays:
            raise InputError(f"{path} holds no arrays")
        return arrays


def _check_archive(path: Path) -> None:
    """Checks the memory that the arrays take by the archive's directory and their headers, before any is read."""
    with zipfile.ZipFile(path) as archive:
        check_claim(path, sum(entry.file_size for entry in archive.infolist()))
        for entry in archive.infolist():
            with archive.open(entry) as file:
                version = np.lib.format.read_magic(file)
                header = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = header(file)
            if math.prod(shape) * dtype.itemsize > entry.file_size:
                raise InputError(f"{path}: {shown(entry.filename)} declares shape {shape}, more than it holds")


def is_sparse_archive(path: Path) -> bool:
    with reading(path, "a numpy archive"), zipfile.ZipFile(path) as archive:
        return {"format.npy", "shape.npy", "data.npy"} <= set(archive.namelist())


def read_sparse(path: Path) -> sp.csr_array:
    """A matrix saved by ``scipy.sparse.save_npz``; its indices are checked because scipy would follow bad ones."""
    with reading(path, "a sparse matrix"):
        _check_archive(path)
        matrix = sp.load_npz(path)
        check_claim(path, sparse_claim([int(size) for size in matrix.shape], int(matrix.nnz)))
        if matrix.format in ("csr", "csc"):
            matrix.check_format(full_check=True)
        elif matrix.format != "coo":  # whose constructor checks the indices
            raise InputError(f"{path} holds a {matrix.format} matrix: save it as csr, csc or coo")
        return sp.csr_array(matrix)
