r"""Which arcs does a trained LightGCN need? A path of removals by what each does to the scores of all users and items.

The scores of user u are s_u = Z_I z_u, and their error, for small errors r of the embeddings, is

.. math:: D = \frac12 \sum_u w_u\, r_u^\top C\, r_u + \frac12 \sum_i r_i^\top B\, r_i, \qquad
    C = \sum_i (z_i - \bar z)(z_i - \bar z)^\top, \quad B = \sum_u w_u z_u z_u^\top

with w_u = 1 / z_uᵀ C z_u: a shift of all scores of a user changes no ranking, and every user counts alike. Two matrices
of D × D stand for all pairs of users and items. LightGCN is linear in its embeddings, so that the removal of arc e
changes row i by Δ = (s_i / 2d_i − a_ij u_j) / (L + 1) at once, where u_j is what j has sent in all layers, s_i what i
has received, and the first term comes from the degree that falls. The estimate of a removal is

.. math:: δ_e = -\frac{∂D}{∂g_e} + \frac12 Δ^\top C Δ

the first term exact through all layers and degrees, the second through the target alone. Every round removes the arcs
of lowest δ, from all over the graph but only a share of each node's, and computes everything anew on those left.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gst.base.jit import njit
from gst.nn.lightgcn import LightGCN, normalised
from gst.sparse.csr import Pattern, spmm

ROUND_SHARE = 0.05  # arcs that a round removes, of those left
NODE_SHARE = 0.25  # of a node's arcs that a round may remove


@dataclass(frozen=True)
class Objective:
    """The wanted embeddings, and the two metrics in which their errors are measured."""

    wanted: Tensor  # Z on all edges
    num_users: int
    user_weight: Tensor  # w
    of_users: Tensor  # C
    of_items: Tensor  # B

    @classmethod
    def of(cls, wanted: Tensor, num_users: int) -> "Objective":
        users, items = wanted[:num_users], wanted[num_users:]
        centred = items - items.mean(0)
        of_users = centred.t() @ centred
        weight = 1 / (users @ of_users * users).sum(1).clamp(min=1e-12)
        return cls(wanted, num_users, weight, of_users, (users * weight.unsqueeze(1)).t() @ users)

    def metric(self, rows: Tensor) -> Tensor:
        """[N, D] every row times its metric: w_u C or B."""
        users = rows[: self.num_users] @ self.of_users * self.user_weight.unsqueeze(1)
        return torch.cat([users, rows[self.num_users :] @ self.of_items])

    def divergence(self, embeddings: Tensor) -> Tensor:
        """D of embeddings."""
        error = embeddings - self.wanted
        return (error * self.metric(error)).sum() / 2


def removal_order(model: LightGCN, edge_index: Tensor, num_users: int, num_kept: int) -> Tensor:
    """The columns in the order of their removal, down to ``num_kept``."""
    target = edge_index[1] * model.embedding.shape[0] + edge_index[0]
    left = torch.argsort(target)
    with torch.no_grad():
        objective = Objective.of(
            model.propagate(_pattern(edge_index[:, left], model), torch.ones(left.numel())), num_users
        )
    gone = [left[:0]]
    while left.numel() > num_kept:
        pattern = _pattern(edge_index[:, left], model)
        count = min(left.numel() - num_kept, max(1, round(ROUND_SHARE * left.numel())))
        chosen = _cheapest(removal_costs(model, pattern, objective), pattern, count)
        gone.append(left[chosen])
        keep = torch.ones(left.numel(), dtype=torch.bool)
        keep[chosen] = False
        left = left[keep]
    return torch.cat(gone)


def removal_costs(model: LightGCN, pattern: Pattern, objective: Objective) -> Tensor:
    """δ of every entry of a pattern."""
    weight = torch.ones(pattern.nnz, requires_grad=True)
    divergence = objective.divergence(model.propagate(pattern, weight))
    slope = torch.autograd.grad(divergence, weight)[0]
    with torch.no_grad():
        return _curvature(model, pattern, objective) - slope


def _curvature(model: LightGCN, pattern: Pattern, objective: Objective) -> Tensor:
    """½ Δᵀ C Δ of every entry; no row of Δ is stored."""
    values = normalised(pattern, torch.ones(pattern.nnz))
    state: Tensor = model.embedding
    sent = torch.zeros_like(state)
    for _ in range(model.layers):
        sent = sent + state
        state = spmm(pattern, values, state)
    degree = torch.bincount(pattern.row, minlength=pattern.shape[0]).clamp(min=1)
    half = spmm(pattern, values, sent) / (2 * degree.unsqueeze(1))
    users, items = (_root(metric) for metric in (objective.of_users, objective.of_items))
    scale = torch.cat([objective.user_weight, torch.ones(len(sent) - objective.num_users)])
    rows = _both(half, users, items, objective.num_users)
    columns = _both(sent, items, users, objective.num_users)  # what items send is measured at users
    curvature = torch.empty(pattern.nnz)
    _distances(*(part.numpy() for part in (pattern.crow, pattern.col, values, rows, columns, scale, curvature)))
    return curvature.div_(2 * (model.layers + 1) ** 2)


def _root(metric: Tensor) -> Tensor:
    """R with R Rᵀ = metric, which is positive up to rounding."""
    values, vectors = torch.linalg.eigh(metric.double())
    return (vectors * values.clamp(min=0).sqrt()).to(metric.dtype)


def _both(rows: Tensor, of_users: Tensor, of_items: Tensor, num_users: int) -> Tensor:
    return torch.cat([rows[:num_users] @ of_users, rows[num_users:] @ of_items])


@njit(cache=True, nogil=True)
def _distances(
    crow: np.ndarray,
    col: np.ndarray,
    values: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    scale: np.ndarray,
    out: np.ndarray,
) -> None:
    """scale_i ‖rows_i − a_ij columns_j‖² of every entry."""
    for i in range(crow.size - 1):
        for entry in range(crow[i], crow[i + 1]):
            total = np.float32(0)
            for c in range(rows.shape[1]):
                difference = rows[i, c] - values[entry] * columns[col[entry], c]
                total += difference * difference
            out[entry] = scale[i] * total


def _cheapest(costs: Tensor, pattern: Pattern, count: int) -> Tensor:
    """The entries of lowest cost, of every row only the cheapest share; more if that is not enough."""
    order = torch.argsort(costs, stable=True)
    by_row = order[torch.argsort(pattern.row[order], stable=True)]
    rank = torch.empty_like(by_row)
    rank[by_row] = torch.arange(pattern.nnz) - pattern.crow[pattern.row[by_row]]
    degree = pattern.crow.diff()[pattern.row]
    allowed = rank < (NODE_SHARE * degree).ceil()
    return order[allowed[order]][:count]


def _pattern(columns: Tensor, model: LightGCN) -> Pattern:
    nodes = model.embedding.shape[0]
    return Pattern(columns[1], columns[0], (nodes, nodes))
