"""What a parquet file would take, told before it is read: constants, dictionaries and zeros pack very small.

The footer may say anything of the sizes. What counts are rows and columns, and the headers of the pages themselves.
Both are read here: pyarrow ends the process over some damaged footers.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gst.base.errors import InputError
from gst.base.memory import check_claim
from gst.base.regular_files import open_regular
from gst.base.text import shown
from gst.data.thrift import Reader, Struct

MOST_PAGES = 100_000  # of a file; those of pyarrow hold a mebibyte
_MAGIC = b"PAR1"
_MOST_HEADER = 2**16  # bytes of a page's header; its statistics may hold two values
_BYTES, _FIXED = 6, 7  # physical types of texts
_TEXT = 64  # bytes that Python takes for a short text
_DICTIONARY = (2, 8)  # encodings of a page of places in the dictionary
_PREFIXES = 7  # the encoding in which a text is so many letters of the one before it, at no cost
_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_2 = 0, 2, 3


@dataclass(frozen=True)
class _Column:
    name: str
    kind: int  # its physical type
    width: int  # bytes of a value in memory, or of the pointer to it

    @property
    def text(self) -> bool:
        return self.kind in (_BYTES, _FIXED)


def read_parquet(path: Path) -> pd.DataFrame:
    """A table of flat columns, texts by way of their dictionary; for a block of ``reading``."""
    with open_regular(path) as raw:
        footer = _footer(raw)
        coded = _check_sizes(path, raw, footer, _columns(path, footer))
    with pq.ParquetFile(path, read_dictionary=coded) as file:
        for column in file.schema_arrow:
            if pa.types.is_nested(column.type) or isinstance(column.type, pa.BaseExtensionType):
                raise InputError(f"{path}: the column {shown(column.name)} is of {shown(column.type)}: no plain value")
        table = file.read(use_threads=False).to_pandas(use_threads=False)
    for place, dtype in enumerate(table.dtypes):
        if isinstance(dtype, pd.CategoricalDtype):
            table.isetitem(place, table.iloc[:, place].astype(object))
    return table


def _footer(file: BinaryIO) -> Struct:
    """Version, schema (2), number of rows (3), groups of rows (4)."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 8))
    end = file.read()
    length = int.from_bytes(end[:4], "little")
    if size < 12 or end[4:] != _MAGIC or length > size - 12:
        raise ValueError("it has no footer")
    file.seek(size - 8 - length)
    return Reader(file.read(length)).struct()


def _columns(path: Path, footer: Struct) -> list[_Column]:
    """The leaves of the schema, if all of them are children of its root and none repeats."""
    root, *leaves = _structs(footer, 2)
    columns = []
    for leaf in leaves:
        name, kind = _bytes(leaf, 4).decode(errors="replace"), leaf.get(1)
        if 5 in leaf or leaf.get(3) == 2 or not isinstance(kind, int):
            raise InputError(f"{path}: the column {shown(name)} is nested: a table has one value a cell")
        columns.append(_Column(name, kind, max(8, _count(leaf, 2)) if kind == _FIXED else 16 if kind == 3 else 8))
    if len(leaves) != root.get(5):
        raise ValueError("its schema is not whole")
    return columns


def _check_sizes(path: Path, file: BinaryIO, footer: Struct, columns: list[_Column]) -> list[str]:
    """Rows times columns first; then all that the pages would unfold to.

    Gives the names of columns whose texts are stored once, in a dictionary: they are to be read so.
    """
    groups = _structs(footer, 4)
    rows = max(_count(footer, 3), sum(_count(group, 3) for group in groups))
    size = rows * sum(column.width for column in columns)
    check_claim(path, size)
    pages, coded = 0, []
    for group in groups:
        for column, chunk in zip(columns, _structs(group, 1), strict=True):
            headers = _page_headers(path, file, _struct(chunk, 3), MOST_PAGES - pages)
            pages += len(headers)
            size += sum(_count(header, 2) + (_TEXT * _own_values(header) if column.text else 0) for header in headers)
            if any(_encoding(header) == _PREFIXES for header in headers):
                raise InputError(f"{path}: the column {shown(column.name)} is coded by prefixes: write it plainly")
            if column.kind == _BYTES and any(_is_coded(header) for header in headers):
                coded.append(column.name)
            check_claim(path, size)
    return coded


def _page_headers(path: Path, file: BinaryIO, chunk: Struct, most: int) -> list[Struct]:
    """The headers of all pages of a column's part: kind (1), size (2), size in the file (3) and more by kind."""
    if _count(chunk, 5) == 0:
        return []
    start, dictionary = _count(chunk, 9), _count(chunk, 11) if 11 in chunk else 0
    start = dictionary if 0 < dictionary < start else start
    end = start + _count(chunk, 7)
    if not 4 <= start <= end <= path.stat().st_size:
        raise InputError(f"{path}: a column lies outside of the file")
    headers: list[Struct] = []
    values = 0
    while values < _count(chunk, 5) and start < end:
        if len(headers) >= most:
            raise InputError(f"{path} has more than {MOST_PAGES} pages: write it with larger ones")
        file.seek(start)
        reader = Reader(file.read(_MOST_HEADER))
        header = reader.struct()
        headers.append(header)
        values += _values(header) if header.get(1) in (_DATA_PAGE, _DATA_PAGE_2) else 0
        start += reader.place + _count(header, 3)
    return headers


def _part(header: Struct) -> Struct:
    """What a header says of its own kind of page."""
    place = {_DATA_PAGE: 5, _DICTIONARY_PAGE: 7, _DATA_PAGE_2: 8}.get(_count(header, 1))
    return {} if place is None else _struct(header, place)


def _values(header: Struct) -> int:
    part = _part(header)
    return _count(part, 1) if part else 0


def _encoding(header: Struct) -> int:
    part = _part(header)
    return _count(part, 4 if header[1] == _DATA_PAGE_2 else 2) if part else 0


def _is_coded(header: Struct) -> bool:
    return header[1] != _DICTIONARY_PAGE and _encoding(header) in _DICTIONARY


def _own_values(header: Struct) -> int:
    """Values that a page itself brings: not those that it takes from the dictionary."""
    return 0 if _is_coded(header) else _values(header)


def _count(of: Struct, field: int) -> int:
    number = of.get(field)
    if not isinstance(number, int) or number < 0:
        raise ValueError("it lacks a number in its description")
    return number


def _bytes(of: Struct, field: int) -> bytes:
    return of[field] if isinstance(of.get(field), bytes) else b""


def _struct(of: Struct, field: int) -> Struct:
    if not isinstance(of.get(field), dict):
        raise ValueError("it lacks a part of its description")
    return dict(of[field])


def _structs(of: Struct, field: int) -> list[Any]:
    found = of.get(field, [])
    if not isinstance(found, list) or not all(isinstance(part, dict) for part in found):
        raise ValueError("it lacks a list in its description")
    return found
