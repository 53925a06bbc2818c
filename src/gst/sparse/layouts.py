"""Feature matrices of any dtype and layout: checks, canonical CSR, row selection, conversion to dense."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from gst.base.errors import InputError
from gst.base.memory import check_memory

LAYOUTS = (torch.strided, torch.sparse_csr, torch.sparse_csc, torch.sparse_coo)


def is_sparse(x: Tensor) -> bool:
    """Whether the tensor has any sparse layout."""
    return x.layout != torch.strided


def sparse_claim(shape: Sequence[int], stored: int) -> int:
    """Bytes needed to use a sparse matrix of this shape: pointers, entries, and a weight matrix with 64 outputs.

    No model can do without the latter: columns cost nothing in a file, but each needs a row of weights.
    """
    return 8 * shape[0] + 12 * stored + 4 * 64 * shape[1]


def stored_values(x: Tensor) -> Tensor:
    """The stored values; for a dense tensor all of it."""
    if not is_sparse(x):
        return x.detach()
    return x.detach()._values() if x.layout == torch.sparse_coo else x.detach().values()


def check_kind(x: object) -> None:
    """Requires a matrix of real numbers in a supported layout."""
    if not isinstance(x, Tensor) or x.dim() != 2:
        raise InputError(f"x has shape {list(getattr(x, 'shape', []))}: [nodes, features] is needed")
    if x.layout not in LAYOUTS or (x.layout == torch.sparse_coo and x.dense_dim()):
        raise InputError(f"x has layout {x.layout}: a dense tensor or one in CSR, CSC or COO is needed")
    if x.is_complex() or x.is_quantized or x.is_meta:
        kind = "no values (device meta)" if x.is_meta else str(x.dtype)
        raise InputError(f"x holds {kind}: real numbers are needed")


def check_features(x: Tensor) -> None:
    """Requires a [nodes, features] matrix of finite numbers."""
    check_kind(x)
    if is_sparse(x):
        as_scipy(x)
    values = stored_values(x)
    # the sum is one cheap pass that reveals every NaN and infinity; large finite numbers may overflow it, too
    if not torch.isfinite(values.sum()) and not bool((finite := torch.isfinite(values)).all()):
        bad_nodes = (~finite).any(1).nonzero().flatten() if values.dim() == 2 else _rows(x)[~finite].unique()
        raise InputError(f"x is NaN or infinite at node {int(bad_nodes[0])} ({bad_nodes.numel()} such nodes)")


def entries(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Row, column and value of every stored entry of a sparse tensor, sorted by row."""
    x = x.detach().to_sparse_csr()
    return _rows(x).long(), x.col_indices().long(), x.values()


def as_scipy(x: Tensor, dtype: torch.dtype = torch.float32) -> sp.csr_array:
    """A sparse tensor as CSR: indices checked, rows sorted, duplicates summed, no zeros stored."""
    values = stored_values(x).cpu().to(dtype).numpy()
    try:
        if x.layout == torch.sparse_coo:
            row, col = x.detach()._indices().cpu().numpy()
            matrix = sp.coo_array((values, (row, col)), shape=tuple(x.shape)).tocsr()
        else:
            by_row = x.layout == torch.sparse_csr
            parts = (x.crow_indices(), x.col_indices()) if by_row else (x.ccol_indices(), x.row_indices())
            pointers, indices = (part.cpu().numpy() for part in parts)
            matrix = (sp.csr_array if by_row else sp.csc_array)((values, indices, pointers), shape=tuple(x.shape))
            matrix.check_format(full_check=True)
            matrix = matrix.tocsr()
    except ValueError as error:
        raise InputError(f"x is a sparse tensor whose indices do not fit its shape {list(x.shape)}: {error}") from None
    if not matrix.has_canonical_format or (matrix.data == 0).any():
        matrix = matrix.copy()  # it shares its arrays with the tensor
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def from_scipy(matrix: sp.csr_array) -> Tensor:
    """A torch CSR tensor."""
    crow, col = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    return torch.sparse_csr_tensor(crow, col, torch.from_numpy(matrix.data), matrix.shape, check_invariants=False)


def as_float(x: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """``x`` in the dtype of a network, detached: dense, or canonical CSR if it is sparse."""
    check_kind(x)
    values = stored_values(x)
    if values.dtype == torch.float64 and dtype == torch.float32 and values.numel():
        largest = float(values.abs().max())
        if largest > torch.finfo(dtype).max:
            raise InputError(f"x has values up to {largest:.2g}: float32 ends at 3.4e38; scale the features")
    return from_scipy(as_scipy(x, dtype)).to(x.device) if is_sparse(x) else x.detach().to(dtype)


def rows_of(x: Tensor, nodes: Tensor) -> Tensor:
    """``x[nodes]`` for every layout; CSC becomes CSR."""
    if not is_sparse(x):
        return x[nodes]
    if x.layout == torch.sparse_coo:
        return x.index_select(0, nodes)
    x = x.to_sparse_csr()
    start = x.crow_indices()
    count = start[nodes + 1] - start[nodes]
    crow = torch.cat([count.new_zeros(1), count.cumsum(0)])
    entries = torch.arange(int(crow[-1]), device=x.device) + torch.repeat_interleave(start[nodes] - crow[:-1], count)
    shape = (nodes.numel(), x.shape[1])
    return torch.sparse_csr_tensor(crow, x.col_indices()[entries], x.values()[entries], shape, check_invariants=False)


def checked_dense(x: Tensor, who: str) -> Tensor:
    """The dense tensor, if there is memory for it; ``who``: what requires it, for the message."""
    size = x.shape[0] * x.shape[1] * stored_values(x).element_size()
    check_memory(size, f"{who} takes no sparse x, and a dense one", "a backbone of gst keeps it sparse")
    return x.to_dense()


def _rows(x: Tensor) -> Tensor:
    """The row of every stored value."""
    if x.layout == torch.sparse_coo:
        return x._indices()[0]
    if x.layout == torch.sparse_csc:
        return x.row_indices()
    return torch.repeat_interleave(torch.arange(x.shape[0], device=x.device), x.crow_indices().diff())
