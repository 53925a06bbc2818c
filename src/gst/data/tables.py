"""Arrays and tables from files, never through pickle."""

import gzip
import math
import os
import re
import warnings
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import scipy.sparse as sp

from gst.data.reading import reading, shown
from gst.errors import InputError
from gst.limits import check_claim

TEXT = (".txt", ".edgelist", ".tsv", ".csv")
TABLES = (*TEXT, ".parquet")
COMMENTS = "#%"


@dataclass(frozen=True)
class Layout:
    """How a text table is written."""

    separator: str
    header: bool
    skip: int  # lines above the header or the first row
    comment: str | None


def kind_of(path: Path) -> str:
    """The suffix that tells the format; ``.gz`` after a text format is left out.

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


def read_table(path: Path, rows: int | None = None, comment: str | None = None) -> pd.DataFrame:
    """A parquet or text table; columns are named by the header, lower case, or numbered where there is none.

    The first line of a text table is a header if it does not begin with a number, unless it stands over a single column
    that has the expected number of ``rows`` only if it counts as data. ``comment`` is the sign after which the rest
    of a line is left out, where no comment at the top of the file shows it.
    """
    if kind_of(path) == ".parquet":
        with reading(path, "a parquet table"):
            metadata = pq.read_metadata(path)
            check_claim(path, 8 * metadata.num_rows * metadata.num_columns)
            return _named(pd.read_parquet(path))
    with reading(path, "a table"), warnings.catch_warnings():
        if path.suffix.lower() == ".gz":
            _check_unpacked(path)
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header would lose their end
        layout = _layout(path, comment)
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


def _layout(path: Path, comment: str | None) -> Layout:
    """Told from the comments at the top and the first line of data."""
    opener = gzip.open if path.suffix.lower() == ".gz" else open
    with opener(path, "rt", encoding="utf-8-sig") as file:
        for skip, line in enumerate(file):
            text = line.strip()
            if text and text[0] not in COMMENTS:
                separator = _separator(text, kind_of(path))
                first = re.split(separator, text, maxsplit=1)[0].strip().strip('"')
                return Layout(separator, not _is_number(first), skip, comment)
            comment = text[0] if text else comment
    raise InputError(f"{path} holds no rows")


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
    """A ``.npy`` array, mapped so that a wrong shape costs no memory, or the first array of an ``.npz``."""
    if kind_of(path) == ".npy":
        with reading(path, "a numpy array"):
            return np.load(path, mmap_mode="r", allow_pickle=False)
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
    """What the arrays would take, from the directory of the archive and their own headers, before any is read."""
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
                raise InputError(f"{path}: {shown(entry.filename)} announces shape {shape}, more than it holds")


def _check_unpacked(path: Path) -> None:
    """First the size that gzip notes at the end; as that may be a lie, also unpacks without keeping anything."""
    with path.open("rb") as raw:
        raw.seek(-min(4, path.stat().st_size), os.SEEK_END)
        check_claim(path, int.from_bytes(raw.read(4), "little"))
    size = 0
    with gzip.open(path) as file:
        while chunk := file.read(2**24):
            size += len(chunk)
            check_claim(path, size)


def is_sparse_archive(path: Path) -> bool:
    with reading(path, "a numpy archive"), zipfile.ZipFile(path) as archive:
        return {"format.npy", "shape.npy", "data.npy"} <= set(archive.namelist())


def read_sparse(path: Path) -> sp.csr_array:
    """A matrix saved by ``scipy.sparse.save_npz``; scipy would follow bad indices out of the array."""
    with reading(path, "a sparse matrix"):
        _check_archive(path)
        matrix = sp.load_npz(path)
        check_claim(path, 4 * math.prod(int(size) for size in matrix.shape))  # it becomes dense, and rows need pointers
        if matrix.format in ("csr", "csc"):
            matrix.check_format(full_check=True)
        elif matrix.format != "coo":  # which checks its indices itself
            raise InputError(f"{path} holds a {matrix.format} matrix: save it as csr, csc or coo")
        return sp.csr_array(matrix)
