"""Whether two outcomes are the same to the last bit, and if not, what differs and where."""

import math
from typing import Any

import torch
from torch import Tensor

CLOCKS = {"seconds", "inference", "dense_ms", "sparse_ms", "finished", "elapsed"}  # measured anew by every process
MOST = 5  # differences that are told; more help nobody


def differences(found: Any, wanted: Any, where: str = "") -> list[str]:
    """One line for everything in which two trees of dicts, lists, tensors and plain values differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        told = [f"{_at(where, key)} is there" for key in found.keys() - wanted.keys()]
        told += [f"{_at(where, key)} is missing" for key in wanted.keys() - found.keys()]
        both = [key for key in wanted if key in found]
        return told + [line for key in both for line in differences(found[key], wanted[key], _at(where, key))]
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple) and len(found) == len(wanted):
        pairs = enumerate(zip(found, wanted, strict=True))
        return [line for at, (one, two) in pairs for line in differences(one, two, _at(where, at))]
    if isinstance(wanted, Tensor) and isinstance(found, Tensor):
        return _of_tensors(found, wanted, where)
    if _same(found, wanted):
        return []
    return [f"{where or 'value'}: {_short(found)}, not {_short(wanted)}"]


def untimed(tree: Any, ignored: frozenset[str] | set[str] = CLOCKS) -> Any:
    """A tree without what depends on the clock."""
    if isinstance(tree, dict):
        return {key: untimed(part, ignored) for key, part in tree.items() if key not in ignored}
    if isinstance(tree, list):
        return [untimed(part, ignored) for part in tree]
    return tree


def _of_tensors(found: Tensor, wanted: Tensor, where: str) -> list[str]:
    kinds = [f"{list(tensor.shape)} {tensor.dtype}" for tensor in (found, wanted)]
    if kinds[0] != kinds[1]:
        return [f"{where}: {kinds[0]}, not {kinds[1]}"]
    raw = [_bytes(tensor) for tensor in (found, wanted)]
    if torch.equal(*raw):
        return []
    apart = (raw[0] != raw[1]).view(found.numel(), -1).any(1).nonzero().flatten()
    first = int(apart[0])
    values = [tensor.flatten()[first].item() for tensor in (found, wanted)]
    count = f"{apart.numel()} of {found.numel()} values differ"
    return [f"{where}: {count}, the first at {first}: {values[0]!r}, not {values[1]!r}"]


def _bytes(tensor: Tensor) -> Tensor:
    """Bits, so that −0 is not 0 and NaN is NaN."""
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8)


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one):
        return math.isnan(two)
    return type(one) is type(two) and one == two


def _at(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
