"""Gowalla's check-ins in the split of the LightGCN paper: users, items, and who has seen what."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.base.regular_files import require_regular
from gst.nn.recommend import Interactions
from gst.storage.paths import data_root, mirror_root

FILE = Path("gowalla") / "interactions.npz"


@dataclass(frozen=True)
class Recommendation:
    """Interactions to learn from and interactions to predict.

    Attributes:
        seen: those of training; ``seen.edge_index`` is the graph that carries messages, in both directions, items
            numbered after the users.
        test: [2, T] user and item, to be predicted; never in the graph.
    """

    seen: Interactions
    test: Tensor

    @classmethod
    def of(cls, train: Tensor, test: Tensor, num_users: int, num_items: int) -> "Recommendation":
        """Of [2, E] user and item each, items numbered from 0; one clear line for what does not fit."""
        for name, pairs in (("train", train), ("test", test)):
            if pairs.dim() != 2 or pairs.shape[0] != 2 or pairs.shape[1] == 0 or pairs.dtype != torch.int64:
                raise InputError(f"{name} should be [2, interactions] of user and item, int64, with at least one")
            if int(pairs.min()) < 0 or int(pairs[0].max()) >= num_users or int(pairs[1].max()) >= num_items:
                raise InputError(f"{name} names users outside 0 … {num_users - 1} or items outside 0 … {num_items - 1}")
        key = [pairs[0] * num_items + pairs[1] for pairs in (train, test)]
        if key[0].unique().numel() < key[0].numel():
            raise InputError("train has an interaction twice: each user and item once")
        both = int(torch.isin(key[1], key[0]).sum())
        if both:
            raise InputError(f"{both} test interactions are also in train: the answer would be in the messages")
        return cls(Interactions.of(train, num_users, num_items), test)


def load_gowalla(root: str | Path | None = None) -> Recommendation:
    """29,858 users, 40,981 items, 810,128 interactions to learn from and 217,242 to predict (He et al., SIGIR 2020).

    ``gowalla/interactions.npz`` with ``train`` and ``test`` [2, E] is looked for below ``root`` (else ``$GST_DATA``)
    and in ``$GST_MIRROR``.
    """
    places = [folder / FILE for folder in (data_root(root), mirror_root()) if folder is not None]
    path = next((place for place in places if place.exists()), None)
    if path is None:
        raise InputError(f"no {FILE} in {' nor in '.join(str(place.parent.parent) for place in places)}")
    require_regular(path)
    try:
        with np.load(path, allow_pickle=False) as file:
            train, test = (torch.from_numpy(file[name]).long() for name in ("train", "test"))
    except Exception as error:  # zipfile and numpy have no common error type for a broken file
        raise InputError(f"{path} is no file with the arrays train and test: {error}") from None
    if train.shape != (2, 810_128) or test.shape != (2, 217_242):
        raise InputError(f"{path} has {tuple(train.shape)} and {tuple(test.shape)}: not the published interactions")
    return Recommendation.of(train, test, 29_858, 40_981)
