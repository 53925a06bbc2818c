"""A change of a graph and its features, checked as a whole before any of it is made; and as JSON, for a journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from gst.base.errors import InputError
from gst.base.text import shown

Pairs = Sequence[Sequence[int]] | np.ndarray | Tensor


@dataclass(frozen=True)
class Change:
    """What is asked of an engine, in plain arrays."""

    add: np.ndarray  # [k, 2] ends of edges
    weight: np.ndarray | None  # [k]
    remove: np.ndarray  # [k, 2]
    x: dict[int, np.ndarray]  # features by node
    new_nodes: np.ndarray  # [n, F]

    @classmethod
    def of(
        cls,
        inputs: int,
        add: Pairs | None = None,
        remove: Pairs | None = None,
        x: Mapping[int, Any] | None = None,
        new_nodes: Any = None,
        weight: Any = None,
    ) -> "Change":
        """From what a user gives; the shapes are checked here, what the graph has is not."""
        added = _pairs("add", add)
        weights = None if weight is None else as_numbers("weight", weight)
        if weights is not None and (weights.shape != (len(added),) or not bool((weights > 0).all())):
            raise InputError(f"weight has shape {list(weights.shape)}: one positive number for each of add is needed")
        if x is not None and not isinstance(x, Mapping):
            raise InputError(f"x is a {type(x).__name__}: features by node are needed, {{node: row}}")
        rows = {_node(node): _row(f"x of node {node}", row, inputs) for node, row in (x or {}).items()}
        try:
            given = [] if new_nodes is None else list(new_nodes)
        except TypeError:
            raise InputError(f"new_nodes is a {type(new_nodes).__name__}: rows of features are needed") from None
        fresh = [_row(f"row {i} of new_nodes", row, inputs) for i, row in enumerate(given)]
        stacked = np.stack(fresh) if fresh else np.empty((0, inputs), np.float32)
        return cls(added, weights, _pairs("remove", remove), rows, stacked)

    def as_json(self) -> dict[str, Any]:
        """What :meth:`of` takes, in plain lists; rows that are mostly zeros by their columns and values."""
        parts: dict[str, Any] = {
            "add": self.add.tolist(),
            "remove": self.remove.tolist(),
            "x": {str(node): _packed(row) for node, row in self.x.items()},
            "new_nodes": [_packed(row) for row in self.new_nodes],
        }
        parts = {name: value for name, value in parts.items() if value}
        return parts if self.weight is None else {**parts, "weight": self.weight.tolist()}


def _pairs(name: str, pairs: Pairs | None) -> np.ndarray:
    """[k, 2] from a list of pairs or from an ``edge_index`` tensor [2, k]."""
    if pairs is None or len(pairs) == 0:
        return np.empty((0, 2), np.int64)
    try:
        ends = pairs.detach().cpu().numpy().T if isinstance(pairs, Tensor) else np.asarray(pairs)
    except ValueError:
        raise InputError(f"{name} is not a list of pairs (u, v) of node ids") from None
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InputError(f"{name} is {ends.dtype} {list(ends.shape)}: pairs (u, v) of node ids are needed")
    loops = ends[ends[:, 0] == ends[:, 1]]
    if loops.size:
        raise InputError(f"{name} has {loops[0].tolist()}: self-loops are no edges and stay as they are")
    return ends.astype(np.int64)


def _node(node: Any) -> int:
    text = str(node)
    if isinstance(node, bool) or not text.isascii() or not text.isdigit() or len(text) > 12:
        raise InputError(f"x has features for {shown(repr(node))}: node ids are needed")
    return int(text)


def _row(what: str, row: Any, inputs: int) -> np.ndarray:
    """One row of features: numbers, or the columns and values of those that are not zero."""
    if isinstance(row, Mapping):
        return _unpacked(what, row, inputs)
    values = as_numbers(what, row.detach().cpu().to_dense() if isinstance(row, Tensor) else row)
    if values.shape != (inputs,):
        raise InputError(f"{what} has shape {list(values.shape)}: {inputs} features are needed")
    return values


def _unpacked(what: str, row: Mapping[str, Any], inputs: int) -> np.ndarray:
    columns, values = np.asarray(row.get("columns", ())), as_numbers(what, row.get("values", ()))
    whole = set(row) == {"columns", "values"} and columns.ndim == 1 and columns.shape == values.shape
    whole = whole and (columns.size == 0 or columns.dtype.kind in "iu")
    if not whole or (columns.size and not 0 <= columns.min() <= columns.max() < inputs):
        raise InputError(f"{what}: columns from 0 to {inputs - 1} and as many values are needed")
    dense = np.zeros(inputs, np.float32)
    dense[columns.astype(np.int64)] = values
    return dense


def _packed(row: np.ndarray) -> Any:
    columns = np.flatnonzero(row)
    if 2 * columns.size >= row.size:
        return row.tolist()
    return {"columns": columns.tolist(), "values": row[columns].tolist()}


def as_numbers(what: str, values: Any) -> np.ndarray:
    """Finite real numbers in float32."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{what} is no array of numbers: real numbers are needed") from None
    with np.errstate(over="ignore"):
        result = np.ascontiguousarray(numbers, np.float32) if numbers.ndim else numbers.astype(np.float32)
    if not np.isfinite(result).all():
        raise InputError(f"{what} is NaN or infinite")
    return result
