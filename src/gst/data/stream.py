"""Gzipped CSV files of numbers, read block by block: memory does not grow with the file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gst.base.errors import InputError
from gst.base.optional import optional
from gst.data.untrusted import reading

BLOCK = 2**24  # bytes of text parsed at once


def read_blocks(path: Path, shape: tuple[int, int], dtype: type[np.generic]) -> Iterator[tuple[slice, np.ndarray]]:
    """Yields the rows and values of one block after another; an error unless the file has exactly this shape.

    The file has no header and holds numbers of this type only, which is how OGB writes every array.
    """
    pa, pacsv = (optional(module, "reading OGB's files") for module in ("pyarrow", "pyarrow.csv"))
    rows, columns = shape
    names = [f"f{column}" for column in range(columns)]
    kinds = {name: pa.from_numpy_dtype(dtype) for name in names}
    done = 0
    kind = f"gzipped CSV of {rows} rows"
    with reading(path, kind, whole=False), pa.input_stream(str(path), compression="gzip") as stream:
        options = pacsv.ReadOptions(autogenerate_column_names=True, block_size=BLOCK, use_threads=False)
        with pacsv.open_csv(stream, options, convert_options=pacsv.ConvertOptions(column_types=kinds)) as batches:
            for batch in batches:
                if batch.num_columns != columns:
                    raise InputError(f"{path} has {batch.num_columns} columns: the published file has {columns}")
                values = _matrix(batch, path, done)
                if done + len(values) > rows:
                    raise InputError(f"{path} has more than {rows} rows: the published file has {rows}")
                yield slice(done, done + len(values)), values
                done += len(values)
    if done != rows:
        raise InputError(f"{path} has {done} rows: the published file has {rows}")


def read_into(path: Path, out: np.ndarray) -> None:
    """Fills an array, which may be mapped from disk, from a file of its shape and type."""
    for rows, values in read_blocks(path, (out.shape[0], out.shape[1]), out.dtype.type):
        out[rows] = values


def _matrix(batch: Any, path: Path, first_row: int) -> np.ndarray:
    for column in batch.columns:
        if column.null_count:
            row = first_row + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise InputError(f"{path}: row {row + 1} lacks a value")
    return np.stack([column.to_numpy() for column in batch.columns], axis=1)
