"""Recommendation: rankings of all items for every user, those seen in training left out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.metrics import LinkPredNDCG, LinkPredRecall

USERS = 2048  # ranked at once
TAIL = 0.8  # share of the items, those of fewest interactions, that are the long tail


@dataclass(frozen=True)
class Interactions:
    """Who has seen what, by user."""

    num_users: int
    num_items: int
    start: np.ndarray  # [users + 1]
    item: np.ndarray  # ids from 0, sorted within a user
    user: np.ndarray  # of each interaction

    @classmethod
    def of(cls, pairs: Tensor, num_users: int, num_items: int) -> "Interactions":
        user, item = pairs.numpy()
        order = np.lexsort((item, user))
        counts = np.bincount(user, minlength=num_users)
        return cls(num_users, num_items, np.concatenate([[0], np.cumsum(counts)]), item[order], user[order])

    @property
    def popularity(self) -> Tensor:
        """[items] how many users have seen each."""
        return torch.from_numpy(np.bincount(self.item, minlength=self.num_items))

    @property
    def edge_index(self) -> Tensor:
        """The bipartite graph with both directions: items are numbered after the users."""
        user, item = torch.from_numpy(self.user), torch.from_numpy(self.item) + self.num_users
        return torch.stack([torch.cat([user, item]), torch.cat([item, user])])


def rankings(users: Tensor, items: Tensor, seen: Interactions, k: int) -> Iterator[tuple[int, Tensor]]:
    """First user and the k best unseen items, [users, k], of one block of users after the other."""
    for begin in range(0, seen.num_users, USERS):
        end = min(seen.num_users, begin + USERS)
        scores = users[begin:end] @ items.t()
        known = slice(int(seen.start[begin]), int(seen.start[end]))
        row = torch.from_numpy(seen.user[known] - begin)
        scores[row, torch.from_numpy(seen.item[known])] = -torch.inf
        yield begin, scores.topk(min(k, seen.num_items)).indices


@torch.no_grad()
def recommendation_metrics(embeddings: Tensor, seen: Interactions, test: Tensor, k: int = 20) -> dict[str, float]:
    """Recall, NDCG, how popular the recommended items are, and recall of the long tail, from 0 to 1.

    Args:
        embeddings: Z, users first; a score is a dot product.
        seen: the interactions of training, which are not recommended again.
        test: [2, T] user and item.
        k: length of the ranking.

    ``recall@k`` and ``ndcg@k`` are means over the users with a test interaction. ``tail recall@k`` is the recall of
    those test interactions whose item is among the four fifths of items that were seen least, over the users who have
    one. ``popularity`` is the mean, over recommendations, of the share of items that were seen less often;
    ``coverage`` is the share of the items that are recommended to anybody.
    """
    users, items = embeddings.split([seen.num_users, seen.num_items])
    popularity = seen.popularity
    rank = torch.empty(seen.num_items, dtype=torch.double)
    rank[popularity.argsort(stable=True)] = torch.arange(seen.num_items).double() / seen.num_items
    tail = rank < TAIL
    recall, ndcg, tail_recall = LinkPredRecall(k), LinkPredNDCG(k), LinkPredRecall(k)
    test = test[:, test[0].argsort(stable=True)]
    shown = torch.zeros(seen.num_items, dtype=torch.bool)
    total = 0.0
    for begin, top in rankings(users, items, seen, k):
        bounds = torch.searchsorted(test[0].contiguous(), torch.tensor([begin, begin + top.shape[0]]))
        part = test[:, bounds[0] : bounds[1]]
        wanted = torch.stack([part[0] - begin, part[1]])
        recall.update(top, wanted)
        ndcg.update(top, wanted)
        tail_recall.update(top, wanted[:, tail[part[1]]])
        shown[top.flatten()] = True
        total += float(rank[top].sum())
    return {
        f"recall@{k}": float(recall.compute()),
        f"ndcg@{k}": float(ndcg.compute()),
        f"tail recall@{k}": float(tail_recall.compute()),
        "popularity": total / (seen.num_users * min(k, seen.num_items)),
        "coverage": float(shown.double().mean()),
    }
