"""Features as they may be after deployment: a share of the columns dropped, shuffled or perturbed."""

from collections.abc import Callable

import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.sparse.layouts import entries, is_sparse


def dropped(x: Tensor, share: float, seed: int) -> Tensor:
    """``x`` with a random share of its columns set to 0."""
    columns = _columns(x, share, seed)
    if is_sparse(x):
        row, column, value = entries(x)
        return _sparse(row, column, value.masked_fill(torch.isin(column, columns), 0), x)
    changed = x.clone()
    changed[:, columns] = 0
    return changed


def shuffled(x: Tensor, share: float, seed: int) -> Tensor:
    """``x`` with a random share of its columns permuted over the nodes, each column independently."""
    columns = _columns(x, share, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    if not is_sparse(x):
        changed = x.clone()
        for column in columns.tolist():
            changed[:, column] = x[torch.randperm(x.shape[0], generator=generator), column]
        return changed
    row, column_of, value = entries(x)
    by_column = torch.sort(column_of, stable=True).indices
    start = torch.searchsorted(column_of[by_column], torch.arange(x.shape[1] + 1)).tolist()
    for column in columns.tolist():
        stored = by_column[start[column] : start[column + 1]]
        # the inverse permutation: the row that receives the value of each old row
        row[stored] = torch.randperm(x.shape[0], generator=generator).argsort()[row[stored]]
    return _sparse(row, column_of, value, x)


def _sparse(row: Tensor, column: Tensor, value: Tensor, like: Tensor) -> Tensor:
    return torch.sparse_coo_tensor(torch.stack([row, column]), value, like.shape).to_sparse_csr()


def _columns(x: Tensor, share: float, seed: int) -> Tensor:
    if not 0 <= share <= 1:
        raise InputError(f"share {share} is outside [0, 1]: it is the share of features that change")
    order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(seed))
    return order[: round(share * x.shape[1])]


def perturbed(x: Tensor, share: float, seed: int) -> Tensor:
    """``x`` with a random share of its cells replaced by the value of the same column at another node."""
    if is_sparse(x):  # a stored value moves to a random node, with its column
        row, column, value = entries(x)
        generator = torch.Generator().manual_seed(seed)
        moved = torch.rand(row.numel(), generator=generator) < share
        row = torch.where(moved, torch.randint(x.shape[0], row.shape, generator=generator), row)
        return _sparse(row, column, value, x)
    generator = torch.Generator().manual_seed(seed)
    replaced = torch.rand(x.shape, generator=generator) < share
    other = torch.randint(x.shape[0], x.shape, generator=generator)
    return torch.where(replaced, x.gather(0, other), x)


CHANGES: dict[str, Callable[[Tensor, float, int], Tensor]] = {
    "dropped": dropped,
    "shuffled": shuffled,
    "perturbed": perturbed,
}
