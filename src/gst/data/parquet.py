"""Parquet tables, whose size in memory is checked before they are read: a tiny file may unpack to a huge table.

The sizes in the footer cannot be trusted, so the check counts rows, columns and the headers of all pages. Footer and
headers are parsed here because some damaged footers make pyarrow abort the process.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from gst.base.errors import InputError
from gst.base.memory import check_claim
from gst.base.optional import Later
from gst.base.regular_files import open_regular
from gst.base.text import shown
from gst.data.thrift import Reader, Struct

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pd = Later("pandas", "reading tables")
    pa = Later("pyarrow", "reading tables")
    pq = Later("pyarrow.parquet", "reading tables")

MAX_PAGES = 100_000  # per file; pyarrow writes pages of one mebibyte
_MAGIC = b"PAR1"
_MAX_HEADER = 2**16  # bytes of a page header, whose statistics may hold two values
_BYTES, _FIXED = 6, 7  # physical types of text
_TEXT = 64  # bytes that Python needs for a short string
_DICTIONARY = (2, 8)  # encodings of a page of dictionary indices
_DELTA_BYTE_ARRAY = 7  # an encoding in which a string repeats a prefix of the one before it at no cost
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3


@dataclass(frozen=True)
class _Column:
    name: str
    kind: int  # physical type
    width: int  # bytes of a value in memory, or of the pointer to it

    @property
    def is_text(self) -> bool:
        return self.kind in (_BYTES, _FIXED)


def read_parquet(path: Path) -> pd.DataFrame:
    """A table of flat columns; call it inside ``reading``, which turns every error into one about the file."""
    with open_regular(path) as raw:
        footer = _footer(raw)
        dictionary_columns = _check_sizes(path, raw, footer, _columns(path, footer))
    with pq.ParquetFile(path, read_dictionary=dictionary_columns) as file:
        for column in file.schema_arrow:
            if pa.types.is_nested(column.type) or isinstance(column.type, pa.BaseExtensionType):
                raise InputError(
                    f"{path}: the column {shown(column.name)} holds {shown(column.type)}: plain values are needed"
                )
        table = file.read(use_threads=False).to_pandas(use_threads=False)
    for position, dtype in enumerate(table.dtypes):
        if isinstance(dtype, pd.CategoricalDtype):
            table.isetitem(position, table.iloc[:, position].astype(object))
    return table


def _footer(file: BinaryIO) -> Struct:
    """The file's metadata; its fields are schema (2), number of rows (3) and row groups (4)."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    end = file.read()
    length = int.from_bytes(end[:4], "little")
    if size < 12 or end[4:] != _MAGIC or length > size - 12:
        raise ValueError("it has no footer")
    file.seek(size - 8 - length)
    return Reader(file.read(length)).struct()


def _columns(path: Path, footer: Struct) -> list[_Column]:
    """The leaves of the schema, which must be children of its root and not repeated."""
    root, *leaves = _structs(footer, 2)
    columns = []
    for leaf in leaves:
        name, kind = _bytes(leaf, 4).decode(errors="replace"), leaf.get(1)
        if 5 in leaf or leaf.get(3) == 2 or not isinstance(kind, int):
            raise InputError(f"{path}: the column {shown(name)} is nested: a table has one value per cell")
        columns.append(_Column(name, kind, max(8, _count(leaf, 2)) if kind == _FIXED else 16 if kind == 3 else 8))
    if len(leaves) != root.get(5):
        raise ValueError("its schema is incomplete")
    return columns


def _check_sizes(path: Path, file: BinaryIO, footer: Struct, columns: list[_Column]) -> list[str]:
    """Refuses a table that would not fit into memory: by rows times columns first, then by what its pages unpack to.

    Returns the names of the columns of dictionary-encoded text, to be read as dictionaries.
    """
    groups = _structs(footer, 4)
    rows = max(_count(footer, 3), sum(_count(group, 3) for group in groups))
    size = rows * sum(column.width for column in columns)
    check_claim(path, size)
    pages = 0
    dictionary_columns = []
    for group in groups:
        for column, chunk in zip(columns, _structs(group, 1), strict=True):
            headers = _page_headers(path, file, _struct(chunk, 3), MAX_PAGES - pages)
            pages += len(headers)
            size += sum(
                _count(header, 2) + (_TEXT * _plain_values(header) if column.is_text else 0) for header in headers
            )
            if any(_encoding(header) == _DELTA_BYTE_ARRAY for header in headers):
                raise InputError(f"{path}: the column {shown(column.name)} has encoding DELTA_BYTE_ARRAY: use PLAIN")
            if column.kind == _BYTES and any(_uses_dictionary(header) for header in headers):
                dictionary_columns.append(column.name)
            check_claim(path, size)
    return dictionary_columns


def _page_headers(path: Path, file: BinaryIO, chunk: Struct, max_pages: int) -> list[Struct]:
    """The headers of all pages of a column chunk: kind (1), size (2), size in the file (3) and more by kind."""
    if _count(chunk, 5) == 0:
        return []
    start, dictionary = _count(chunk, 9), _count(chunk, 11) if 11 in chunk else 0
    start = dictionary if 0 < dictionary < start else start
    end = start + _count(chunk, 7)
    if not 4 <= start <= end <= path.stat().st_size:
        raise InputError(f"{path}: a column lies outside the file")
    headers: list[Struct] = []
    values = 0
    while values < _count(chunk, 5) and start < end:
        if len(headers) >= max_pages:
            raise InputError(f"{path} has more than {MAX_PAGES} pages: write it with larger pages")
        file.seek(start)
        reader = Reader(file.read(_MAX_HEADER))
        header = reader.struct()
        headers.append(header)
        values += _values(header) if header.get(1) in (_DATA_PAGE, _DATA_PAGE_2) else 0
        start += reader.position + _count(header, 3)
    return headers


def _page_struct(header: Struct) -> Struct:
    """The part of a header that describes its kind of page."""
    field = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_2: 8}.get(_count(header, 1))
    return {} if field is None else _struct(header, field)


def _values(header: Struct) -> int:
    page = _page_struct(header)
    return _count(page, 1) if page else 0


def _encoding(header: Struct) -> int:
    page = _page_struct(header)
    return _count(page, 4 if header[1] == _DATA_PAGE_2 else 2) if page else 0


def _uses_dictionary(header: Struct) -> bool:
    return header[1] != _DICTIONARY_PAGE and _encoding(header) in _DICTIONARY


def _plain_values(header: Struct) -> int:
    """Values that a page stores itself and does not take from the dictionary."""
    return 0 if _uses_dictionary(header) else _values(header)


def _count(struct: Struct, field: int) -> int:
    number = struct.get(field)
    if not isinstance(number, int) or number < 0:
        raise ValueError("its metadata lacks a number")
    return number


def _bytes(struct: Struct, field: int) -> bytes:
    return struct[field] if isinstance(struct.get(field), bytes) else b""


def _struct(struct: Struct, field: int) -> Struct:
    if not isinstance(struct.get(field), dict):
        raise ValueError("its metadata lacks a struct")
    return dict(struct[field])


def _structs(struct: Struct, field: int) -> list[Any]:
    structs = struct.get(field, [])
    if not isinstance(structs, list) or not all(isinstance(item, dict) for item in structs):
        raise ValueError("its metadata lacks a list")
    return structs
