"""Features in the form of the kernels: dense, sparse, or mapped from a file."""

from os import PathLike
from typing import Any

import numpy as np
from torch import Tensor

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.base.regular_files import require_regular
from gst.inference.serving.arrays import Features
from gst.inference.serving.rows import fixed
from gst.nn.features import SparseFeatures

_NONE = np.empty((0, 0), np.float32)


def pack_features(x: Tensor | SparseFeatures) -> Features:
    if isinstance(x, SparseFeatures):
        return pack_csr(x.pattern.crow.numpy(), x.pattern.col.int().numpy(), x.values.float().numpy())
    return pack_dense(x.float().contiguous().numpy())


def pack_dense(x: np.ndarray) -> Features:
    """Of a float32 matrix, which is not copied."""
    no_rows = fixed(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    return Features(False, no_rows, x, np.empty((0, x.shape[1]), np.float32), np.arange(x.shape[0]), _NONE, _NONE)


def pack_csr(start: np.ndarray, column: np.ndarray, value: np.ndarray) -> Features:
    return Features(True, fixed(start, column, value), _NONE, _NONE, np.empty(0, np.int64), _NONE, _NONE)


def mapped(path: str | PathLike[str], nodes: int, width: int) -> Features:
    """A float32 matrix in an ``.npy`` file, of which only what is read comes into memory."""
    place = as_path("features", path)
    require_regular(place)
    try:
        x: Any = np.load(place, mmap_mode="c", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{place} is not a whole .npy file: {str(error)[:120]}") from None
    if not isinstance(x, np.ndarray) or x.dtype != np.float32 or not x.flags.c_contiguous or x.shape != (nodes, width):
        kind = f"{getattr(x, 'dtype', type(x).__name__)} {list(getattr(x, 'shape', []))}"
        raise InputError(f"{place} holds {kind}: float32 [{nodes}, {width}] by rows is needed")
    return pack_dense(np.asarray(x))
