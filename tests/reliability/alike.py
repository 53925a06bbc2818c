"""Bitwise comparison of two outcomes, with a description of every difference."""

import math
from typing import Any

import torch
from torch import Tensor

CLOCKS = {"seconds", "inference", "dense_ms", "sparse_ms", "finished", "elapsed"}  # differ between processes
MAX_SHOWN = 5  # differences that are reported


def differences(actual: Any, expected: Any, where: str = "") -> list[str]:
    """One line for every difference between two trees of dicts, lists, tensors and plain values."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        lines = [f"{_join(where, key)} is unexpected" for key in actual.keys() - expected.keys()]
        lines += [f"{_join(where, key)} is missing" for key in expected.keys() - actual.keys()]
        both = [key for key in expected if key in actual]
        return lines + [line for key in both for line in differences(actual[key], expected[key], _join(where, key))]
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple) and len(actual) == len(expected):
        pairs = enumerate(zip(actual, expected, strict=True))
        return [line for i, (one, two) in pairs for line in differences(one, two, _join(where, i))]
    if isinstance(expected, Tensor) and isinstance(actual, Tensor):
        return _of_tensors(actual, expected, where)
    if _same(actual, expected):
        return []
    return [f"{where or 'value'}: {_short(actual)}, not {_short(expected)}"]


def untimed(tree: Any, ignored: frozenset[str] | set[str] = CLOCKS) -> Any:
    """A tree without the values that depend on the clock."""
    if isinstance(tree, dict):
        return {key: untimed(part, ignored) for key, part in tree.items() if key not in ignored}
    if isinstance(tree, list):
        return [untimed(part, ignored) for part in tree]
    return tree


def _of_tensors(actual: Tensor, expected: Tensor, where: str) -> list[str]:
    kinds = [f"{list(tensor.shape)} {tensor.dtype}" for tensor in (actual, expected)]
    if kinds[0] != kinds[1]:
        return [f"{where}: {kinds[0]}, not {kinds[1]}"]
    raw = [_bytes(tensor) for tensor in (actual, expected)]
    if torch.equal(*raw):
        return []
    differing = (raw[0] != raw[1]).view(actual.numel(), -1).any(1).nonzero().flatten()
    first = int(differing[0])
    values = [tensor.flatten()[first].item() for tensor in (actual, expected)]
    count = f"{differing.numel()} of {actual.numel()} values differ"
    return [f"{where}: {count}, the first at {first}: {values[0]!r}, not {values[1]!r}"]


def _bytes(tensor: Tensor) -> Tensor:
    """The bits, in which −0 differs from 0 and NaN equals itself."""
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one):
        return math.isnan(two)
    return type(one) is type(two) and one == two


def _join(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
