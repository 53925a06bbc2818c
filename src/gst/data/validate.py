"""The last step of every loader: guarantees the types, masks, name and metric of a graph."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.data.splits import Masks
from gst.sparse.layouts import as_float

METRICS = ("accuracy", "rocauc")
MASK_KEYS = ("train_mask", "val_mask", "test_mask")


def stored_masks(data: Data) -> Masks | None:
    """The masks of the data, if it has all three."""
    masks = [data.get(key) for key in MASK_KEYS]
    return Masks(*masks) if all(mask is not None for mask in masks) else None


def finish(data: Data, masks: Masks, *, name: str, metric: str) -> Data:
    """Checks and sets masks, name and metric, and converts to the types that every loader guarantees."""
    assert data.x is not None and data.edge_index is not None and isinstance(data.y, Tensor)
    check_masks(masks, data.y, name)
    if metric not in METRICS:
        raise InputError(f"{name}: unknown metric {metric!r}: choose from {', '.join(METRICS)}")
    if data.y.dim() == 2 and metric != "rocauc":
        raise InputError(f"{name}: nodes have {data.y.shape[1]} labels each: their metric is rocauc, not {metric}")
    if metric == "rocauc" and int(data.y.max()) != 1:
        raise InputError(f"{name}: the metric 'rocauc' needs two classes, the labels have {int(data.y.max()) + 1}")
    data.x = as_float(data.x)
    data.y = data.y.long()
    data.edge_index = data.edge_index.long().contiguous()
    for key, mask in zip(MASK_KEYS, masks, strict=True):
        data[key] = mask.bool()
    data.name = name
    data.metric = metric
    return data


def check_masks(masks: Masks, y: Tensor, name: str) -> None:
    """Refuses an empty part, a node in two parts and an unlabelled node in any part."""
    train, val, test = masks
    for part, mask in zip(("training", "validation", "test"), masks, strict=True):
        if not mask.any():
            raise InputError(f"{name}: the split has no {part} node: label more nodes or give another split")
        unlabelled = torch.nonzero(mask & (y < 0).view(len(y), -1).any(1)).flatten()
        if unlabelled.numel():
            raise InputError(f"{name}: node {int(unlabelled[0])} is a {part} node but has no label")
    shared = torch.nonzero((train & val) | (train & test) | (val & test)).flatten()
    if shared.numel():
        raise InputError(f"{name}: node {int(shared[0])} is in more than one of training, validation and test")
