"""Training, validation and test nodes: pure functions of the labels and a seed.

Unlabelled nodes (label −1) belong to no part.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.base.text import is_whole, shown


class Masks(NamedTuple):
    """One bool per node and part, [N]; shipped masks may have one column per split, [N, S], in some of the parts."""

    train: Tensor
    val: Tensor
    test: Tensor


@dataclass(frozen=True)
class Sizes:
    """How large the parts of a random split are."""

    train: int  # nodes per class
    val: int  # nodes in all, or per class
    test: int | None = None  # nodes in all; None: every remaining labelled node
    val_per_class: bool = False


RANDOM = Sizes(train=20, val=30, val_per_class=True)
PLANETOID = Sizes(train=20, val=500, test=1000)
PAPER_TRAIN = {"Cora": 420, "CiteSeer": 420, "PubMed": 460}  # labelled training nodes in the GST paper


def random_split(y: Tensor, sizes: Sizes = RANDOM, seed: int = 0) -> Masks:
    """A random split of these sizes, or smaller ones where classes are small.

    Training takes at most a third of a class (but at least one node), validation at most half of the remaining nodes.

    >>> masks = random_split(torch.arange(300) % 3, Sizes(train=5, val=60), seed=1)
    >>> [int(mask.sum()) for mask in masks]
    [15, 60, 225]
    """
    counts = class_counts(y)
    train = np.minimum(sizes.train, np.maximum(1, counts // 3))
    val = np.minimum(sizes.val, (counts - train).clip(0) // 2) if sizes.val_per_class else sizes.val
    return draw(y, train, val, sizes.test, seed)


def paper_split(y: Tensor, train: int, seed: int = 0, val: int = 500, test: int = 500) -> Masks:
    """``train`` training nodes spread over the classes as evenly as their sizes allow, then ``val``, then ``test``."""
    return draw(y, even_quotas(class_counts(y), train), val, test, seed)


def even_quotas(counts: np.ndarray, total: int) -> np.ndarray:
    """``total`` dealt out to the classes one by one in turn, to none more than its count.

    >>> even_quotas(np.array([10, 2, 10]), 9).tolist()
    [4, 2, 3]
    """
    level = np.searchsorted(np.minimum.outer(np.arange(counts.max() + 1), counts).sum(axis=1), total, side="right") - 1
    quotas = np.minimum(level, counts)
    open_classes = np.flatnonzero(counts > quotas)
    quotas[open_classes[: total - quotas.sum()]] += 1
    return quotas


def class_counts(y: Tensor) -> np.ndarray:
    """Number of labelled nodes of each class."""
    labelled = y[y >= 0]
    if labelled.numel() == 0:
        raise InputError("no node has a label: a split needs labels 0, 1, … (−1 means unlabelled)")
    return torch.bincount(labelled).numpy()


def draw(y: Tensor, train: np.ndarray, val: np.ndarray | int, test: int | None, seed: int) -> Masks:
    """Draws ``train`` nodes per class, ``val`` nodes per class or in all, and ``test`` nodes (None: the rest)."""
    labels = y.numpy()
    order = np.random.default_rng(seed).permutation(labels.size)
    order = order[labels[order] >= 0]
    classes = labels[order]
    rank = rank_in_class(classes)

    in_train = rank < train[classes]
    pool = np.flatnonzero(~in_train)
    if isinstance(val, int):
        in_val = np.zeros_like(in_train)
        in_val[pool[: min(val, pool.size // 2)]] = True
    else:
        in_val = ~in_train & (rank < (train + val)[classes])
    in_test = np.zeros_like(in_train)
    in_test[np.flatnonzero(~in_train & ~in_val)[:test]] = True
    return Masks(*(_mask(order[part], labels.size) for part in (in_train, in_val, in_test)))


def rank_in_class(classes: np.ndarray) -> np.ndarray:
    """For every entry, the number of earlier entries of the same class."""
    by_class = np.argsort(classes, kind="stable")
    counts = np.bincount(classes)
    rank = np.empty_like(by_class)
    rank[by_class] = np.arange(classes.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


def _mask(nodes: np.ndarray, size: int) -> Tensor:
    mask = torch.zeros(size, dtype=torch.bool)
    mask[torch.from_numpy(nodes)] = True
    return mask


def parse_split(split: int | str | None) -> tuple[str, int | None]:
    """The kind and number in a ``split`` argument.

    >>> parse_split(None), parse_split("3"), parse_split("paper"), parse_split("Random:7")
    (('default', None), ('number', 3), ('paper', None), ('random', 7))
    """
    if split is None:
        return "default", None
    kind, _, number = str(split).strip().lower().partition(":")
    if is_whole(kind) and not number:
        return "number", int(kind)
    if kind in ("random", "paper") and (is_whole(number) or number == ""):
        return kind, int(number) if number else None
    if kind == "public" and number == "":
        return kind, None
    raise InputError(
        f"unknown split '{shown(split)}': choose 'public', 'paper', 'random', 'random:SEED' or a number from 0 up"
    )


def choose(name: str, y: Tensor, split: int | str | None, sizes: Sizes, shipped: Masks | None = None) -> Masks:
    """The split that ``split`` means for the data set ``name``.

    Args:
        name: spelled as in the registry; also used in error messages.
        y: classes [N], or labels [N, C]; −1 where unknown.
        split: None (shipped split 0, else a random one of ``sizes``), a number (the shipped split where there are
            several, else a seed), ``"public"``, ``"paper"`` or ``"random"``, the last two with an optional ``":SEED"``.
        sizes: of a random split selected by number.
        shipped: masks that come with the data, [N] or [N, S].
    """
    kind, number = parse_split(split)
    seed = number or 0
    if kind == "paper":
        return paper_split(y, _paper_train(name), seed)
    if kind == "random":
        return random_split(_classes(name, y), RANDOM, seed)
    if kind == "public" or (kind == "default" and shipped is not None):
        return _shipped(name, shipped, 0)
    if kind == "number" and _has_several(shipped):
        return _shipped(name, shipped, seed)
    return random_split(_classes(name, y), sizes, seed)


def _classes(name: str, y: Tensor) -> Tensor:
    """Labels to draw a random split from, which takes a number of nodes per class."""
    if y.dim() == 2:
        raise InputError(f"{name}: a random split goes by class, but nodes have {y.shape[1]} labels each: give masks")
    return y


def _has_several(shipped: Masks | None) -> bool:
    return shipped is not None and any(mask.dim() == 2 for mask in shipped)


def _shipped(name: str, shipped: Masks | None, column: int) -> Masks:
    if shipped is None:
        raise InputError(f"{name} ships no public split: use split='random' or a number as its seed")
    count = min((mask.shape[1] for mask in shipped if mask.dim() == 2), default=1)
    if column >= count:
        raise InputError(f"{name} has no split {column}: it ships {count}, numbered 0 to {count - 1}")
    return Masks(*(mask[:, column].contiguous() if mask.dim() == 2 else mask for mask in shipped))


def _paper_train(name: str) -> int:
    if name not in PAPER_TRAIN:
        known = ", ".join(PAPER_TRAIN)
        raise InputError(f"{name} has no split 'paper': the GST paper gives sizes for {known} only; use split='random'")
    return PAPER_TRAIN[name]
