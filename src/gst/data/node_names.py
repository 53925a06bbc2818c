"""The nodes of a table: numbered 0 … N − 1, or named by sparse numbers or text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.base.optional import Later
from gst.base.text import shown

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = Later("pandas", "reading tables")


@dataclass(frozen=True)
class Nodes:
    """How many nodes there are and, where they are not called 0 … N − 1, the name of each."""

    count: int
    names: pd.Index | None = None  # unique; whole numbers, or texts

    @classmethod
    def named(cls, column: pd.Series, where: object) -> Nodes:
        """The nodes that a column names; where these are 0 … N − 1 in any order, they are plain numbers."""
        values = _as_names(column)
        missing = column.isna().to_numpy() | np.asarray(values == "")
        if missing.any():
            raise InputError(f"{where}: row {int(missing.argmax()) + 1} has no node: every row needs its name")
        repeated = values.duplicated()
        if repeated.any():
            row = int(repeated.argmax())
            raise InputError(f"{where}: row {row + 1} repeats node {shown(values[row])}: every node has one row")
        plain = not _is_text(values) and len(values) and values.min() == 0 and values.max() == len(values) - 1
        return cls(len(values), None if plain else values)

    def numbers(self, columns: Sequence[pd.Series | np.ndarray], where: object) -> list[np.ndarray]:
        """The columns as int64 numbers of nodes; an error names the first row with anything else."""
        if self.names is None:
            found = [_plain(column, self.count) for column in columns]
            valid = f"nodes are whole numbers from 0 to {self.count - 1}, rows of the features"
        else:
            found = [self._positions(column) for column in columns]
            valid = f"it is none of the {self.count} nodes of the features, such as {shown(self.names[0])}"
        if any((column < 0).any() for column in found):
            row, column = min((int((c < 0).argmax()), i) for i, c in enumerate(found) if (c < 0).any())
            value = pd.Series(columns[column]).iloc[row]
            raise InputError(f"{where}: row {row + 1} names node {shown(value)}: {valid}")
        return found

    def _positions(self, column: pd.Series | np.ndarray) -> np.ndarray:
        assert self.names is not None
        values = _as_names(pd.Series(column))
        if _is_text(self.names) != _is_text(values):
            values = values.astype(str) if _is_text(self.names) else pd.Index(_plain(column, 2**62))
        return np.asarray(self.names.get_indexer(values), dtype=np.int64)

    @property
    def stored(self) -> Tensor | list[str] | None:
        """As ``data.node_id``: whole numbers [N], or a list of texts."""
        if self.names is None:
            return None
        return [str(name) for name in self.names] if _is_text(self.names) else torch.tensor(self.names.to_numpy())


def as_nodes(nodes: int | Nodes) -> Nodes:
    return nodes if isinstance(nodes, Nodes) else Nodes(nodes)


def _as_names(column: pd.Series) -> pd.Index:
    """Whole numbers as int64, everything else as text without blanks around it."""
    numbers = _plain(column, 2**62)
    if len(numbers) and (numbers >= 0).all():
        return pd.Index(numbers)
    return pd.Index([str(value).strip() for value in column], dtype=object)


def _is_text(names: Any) -> bool:
    return names.dtype.kind not in "iu"


def _plain(column: pd.Series | np.ndarray, count: int) -> np.ndarray:
    """Whole numbers from 0 to ``count`` − 1 as int64, −1 for anything else."""
    values = pd.Series(column)
    if values.dtype.kind == "b":
        return np.full(len(values), -1)
    if values.dtype.kind not in "iu":
        values = pd.to_numeric(values, errors="coerce").astype("float64")
    array = values.to_numpy()
    good = (array >= 0) & (array < count) & (np.floor(array) == array)
    return np.where(good, array, -1).astype(np.int64)
