"""The last step of every loader of typed graphs: the split, the types, the name and the metric."""

from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.data.splits import RANDOM, Masks, parse_split, random_split
from gst.data.validate import MASK_KEYS, check_masks
from gst.graph.relations import check_typed, find_target
from gst.sparse.layouts import as_float

METRICS = ("accuracy", "rocauc", "f1")
VALIDATION = 0.2  # of the nodes with labels that are not test nodes, where the data names test nodes only


def finish_typed(data: HeteroData, split: Any, *, name: str, metric: str) -> HeteroData:
    """Checks a typed graph, gives its target type the three masks, and converts to the usual types."""
    check_typed(data)
    store = data[find_target(data)]
    y = store.y
    if metric not in METRICS:
        raise InputError(f"{name}: unknown metric {metric!r}: choose from {', '.join(METRICS)}")
    if y.dim() == 2 and metric == "accuracy":
        raise InputError(f"{name}: nodes have {y.shape[1]} labels each: their metric is f1 or rocauc, not accuracy")
    masks = _masks(store, y, split, name)
    check_masks(masks, y, name)
    for key, mask in zip(MASK_KEYS, masks, strict=True):
        store[key] = mask.bool()
    store.y = y.long()
    for kind in data.node_types:
        if "x" in data[kind]:
            data[kind].x = as_float(data[kind].x)
    data.name, data.metric = name, metric
    return data


def own_typed(
    data: HeteroData, split: Any, *, name: str | None = None, metric: str | None = None, **others: Any
) -> HeteroData:
    """A typed graph of the user's own, finished; ``data`` itself is not changed."""
    if given := sorted(key for key, value in others.items() if value):
        raise InputError(f"{given[0]} is for graphs of one type: a HeteroData has all that it needs in itself")
    check_typed(data)
    store = data[find_target(data)]
    several = store.y.dim() == 2
    wanted = metric or getattr(data, "metric", None) or ("f1" if several else "accuracy")
    return finish_typed(copy(data), split, name=name or getattr(data, "name", None) or "own data", metric=wanted)


def _masks(store: object, y: Tensor, split: Any, name: str) -> Masks:
    train, val, test = (store.get(key) for key in MASK_KEYS)  # type: ignore[attr-defined]
    kind, number = parse_split(split)
    if kind in ("paper", "public") and (train is None or test is None):
        raise InputError(f"{name}: a typed graph has no split {kind!r}: give a number or random")
    if kind == "random" or test is None:
        if y.dim() == 2:
            raise InputError(
                f"{name}: a random split goes by class, but nodes have {y.shape[1]} labels each: give masks"
            )
        return random_split(y, RANDOM, number or 0)
    if val is not None:
        if kind == "number":
            raise InputError(f"{name} has one split: leave split away, or give random:{number}")
        return Masks(train, val, test)
    generator = torch.Generator().manual_seed(number or 0)
    ids = train.nonzero().flatten()
    drawn = ids[torch.randperm(ids.numel(), generator=generator)[: round(VALIDATION * ids.numel())]]
    val = torch.zeros_like(train)
    val[drawn] = True
    return Masks(train & ~val, val, test)
