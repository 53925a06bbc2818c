r"""Which arcs does a trained LightGCN need? One greedy path of removals per row, merged by what each removal costs.

The scores of user u are s_u = Z_I z_u, and their error, for small errors r of the embeddings, is

.. math:: D = \sum_u w_u\, r_u^\top C\, r_u + \sum_i p_i\, r_i^\top B\, r_i, \qquad
    C = \sum_i p_i (z_i - \bar z)(z_i - \bar z)^\top, \quad B = \sum_u w_u z_u z_u^\top

with w_u = 1 / z_uᵀ C z_u: a shift of all scores of a user changes no ranking, and every user counts alike. p_i is how
often item i is among the best of a user: errors of items that nobody is shown do not matter. Two matrices of D × D
stand for all pairs of users and items.

LightGCN is linear, so row i of Z is the sum of what its neighbours send: Σ_j a_ij u_j, u_j = Σ_l (Â^l E)_j over the
layers that are read. Of its d arcs a row keeps k with weight d / k: the weighted degrees, and with them a_ij, stay
those of the dense graph, and the rows depend on each other only through u. Each row then drops, one by one, the arc
without which its own sum is nearest to the wanted one, exactly and in O(d² D) altogether. What a row sends on counts,
too: its error reaches its neighbours' rows with a_ki².
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.nn.lightgcn import LightGCN, normalised
from gst.sparse.csr import Pattern, row_sum, spmm

BEST = 50  # items of a user whose scores matter
BLOCK = 2048  # users at once


@dataclass(frozen=True)
class Metric:
    """In what the error of each row is measured: rᵀ (own · C + onward · B) r of users, B and C exchanged of items."""

    num_users: int
    of_users: Tensor  # C
    of_items: Tensor  # B
    weight: Tensor  # w of users and p of items

    @classmethod
    def of(cls, embeddings: Tensor, num_users: int) -> "Metric":
        users, items = embeddings[:num_users], embeddings[num_users:]
        shown = relevance(users, items)
        centred = items - shown @ items
        of_users = (centred * shown.unsqueeze(1)).t() @ centred
        weight = 1 / (users @ of_users * users).sum(1).clamp(min=1e-12)
        of_items = (users * weight.unsqueeze(1)).t() @ users
        return cls(num_users, of_users, of_items, torch.cat([weight, shown]))


def relevance(users: Tensor, items: Tensor) -> Tensor:
    """p: the share of the best items of all users that each item is, sum 1; a tenth is spread over all."""
    count = torch.zeros(len(items))
    for block in users.split(BLOCK):
        best = (block @ items.t()).topk(min(BEST, len(items))).indices.flatten()
        count += torch.bincount(best, minlength=len(items))
    return 0.9 * count / count.sum() + 0.1 / len(items)


@torch.no_grad()
def removal_order(model: LightGCN, edge_index: Tensor, num_users: int) -> Tensor:
    """All columns of a bipartite graph (users first) in the order of their removal."""
    nodes = model.embedding.shape[0]
    order = torch.argsort(edge_index[1] * nodes + edge_index[0])
    pattern = Pattern(edge_index[1, order], edge_index[0, order], (nodes, nodes))
    ones = torch.ones(pattern.nnz)
    values = normalised(pattern, ones)
    state: Tensor = model.embedding
    sent = torch.zeros_like(state)
    for _ in range(model.layers):
        sent = sent + state
        state = spmm(pattern, values, state)
    metric = Metric.of(model.propagate(pattern, ones), num_users)
    onward = row_sum(pattern, values.square() * metric.weight[pattern.col])  # Â is symmetric: a_ki = a_ik
    users, items = _root(metric.of_users), _root(metric.of_items)
    coordinates = torch.cat([sent @ users, sent @ items], 1)
    first, second = metric.weight.sqrt(), onward.sqrt()
    own = torch.where(torch.arange(nodes) < num_users, first, second)
    other = torch.where(torch.arange(nodes) < num_users, second, first)
    arrays = (pattern.crow, pattern.col, values, coordinates, own, other)
    cost = np.empty(pattern.nnz)
    _drop_rows(*(part.contiguous().numpy() for part in arrays), cost)
    return order[torch.argsort(torch.from_numpy(cost), stable=True)]


def balanced_weight(edge_index: Tensor, kept: Tensor, num_nodes: int) -> Tensor:
    """Weight d / k of every kept column: its target's columns in all over those that stay."""
    before, after = (torch.bincount(target, minlength=num_nodes) for target in (edge_index[1], edge_index[1, kept]))
    return (before / after.clamp(min=1))[edge_index[1, kept]].float()


def _root(metric: Tensor) -> Tensor:
    """R with R Rᵀ = metric, which is positive up to rounding."""
    values, vectors = torch.linalg.eigh(metric.double())
    return (vectors * values.clamp(min=0).sqrt()).to(metric.dtype)


@njit(cache=True, nogil=True)
def _drop_rows(
    crow: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
    coordinates: np.ndarray,
    own: np.ndarray,
    other: np.ndarray,
    cost: np.ndarray,
) -> None:
    """The cost of every entry: the slope of its row's error where it is dropped, made rising along the row's path."""
    width = coordinates.shape[1]
    longest = 0
    for i in range(crow.size - 1):
        longest = max(longest, crow[i + 1] - crow[i])
    message, norm = np.empty((longest, width), np.float32), np.empty(longest, np.float32)
    entry, slope, size = np.empty(longest, np.int64), np.empty(longest), np.empty(longest, np.int64)
    total, wanted, error = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(crow.size - 1):
        degree = crow[i + 1] - crow[i]
        wanted[:] = np.float32(0)
        for k in range(degree):
            e = crow[i] + k
            entry[k], norm[k] = e, np.float32(0)
            for c in range(width):
                scale = own[i] if c < width // 2 else other[i]
                message[k, c] = scale * values[e] * coordinates[col[e], c]
                wanted[c] += message[k, c]
                norm[k] += message[k, c] * message[k, c]
        total[:] = wanted
        before, blocks = 0.0, 0
        for left in range(degree, 0, -1):
            factor = np.float32(degree / (left - 1)) if left > 1 else np.float32(0)
            base = 0.0
            for c in range(width):
                error[c] = factor * total[c] - wanted[c]
                base += error[c] * error[c]
            best, least = 0, np.inf
            for k in range(left):
                dot = np.float32(0)
                for c in range(width):
                    dot += error[c] * message[k, c]
                after = base - 2 * factor * dot + factor * factor * norm[k]
                if after < least:
                    best, least = k, after
            # drop it: its cost enters the path, which is kept rising by pooling with the costs before it
            dropped = entry[best]
            for c in range(width):
                total[c] -= message[best, c]
                message[best, c] = message[left - 1, c]
            norm[best], entry[best] = norm[left - 1], entry[left - 1]
            entry[left - 1] = dropped
            slope[blocks], size[blocks] = least - before, 1
            before = least
            blocks += 1
            while blocks > 1 and slope[blocks - 2] > slope[blocks - 1]:
                merged = size[blocks - 2] + size[blocks - 1]
                slope[blocks - 2] = (
                    slope[blocks - 2] * size[blocks - 2] + slope[blocks - 1] * size[blocks - 1]
                ) / merged
                size[blocks - 2] = merged
                blocks -= 1
        position = degree - 1  # entries were put aside from the end, the first dropped last in the array
        for b in range(blocks):
            for _ in range(size[b]):
                cost[entry[position]] = slope[b]
                position -= 1
