"""One call does the job."""

import inspect
from typing import Any

from torch_geometric.data import Data

from gst.methods.registry import METHODS
from gst.methods.result import Result
from gst.train.settings import check_names


def sparsify(
    data: Data,
    method: str = "deploy",
    *,
    sparsity: float | None = None,
    keep: int | None = None,
    dense: bool = False,
    retrain: bool = False,
    distill: bool = False,
    **params: Any,
) -> Result:
    """Finds a sparse graph and a model for it.

    Args:
        data: a PyG ``Data`` with x, y, edge_index and the three split masks.
        method: a name of ``gst methods``.
        sparsity: share of edges to remove.
        keep: number of edges to keep, instead of a share.
        dense: also train on the full graph, for comparison.
        retrain: also train a fresh model on the sparse graph.
        distill: also train one that learns from the dense model's answers.
        params: the other arguments of the method's class, ``backbone``, ``model`` and ``seed`` among them; ``dense``,
            ``retrain`` and ``distill`` are explained at :meth:`gst.methods.base.Sparsifier.fit`.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> result = gst.sparsify(data, "random", sparsity=0.5, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False)
    >>> result.metrics["method"], result.metrics["edges_kept"] * 2 == result.graph.num_edges
    ('random', True)
    """
    estimator = make_method(method, sparsity=sparsity, keep=keep, **params)
    return estimator.fit(data, dense=dense, retrain=retrain, distill=distill).result_


def make_method(method: str, **params: Any) -> Any:
    """The estimator of a name with these arguments; one line for a name that it does not have."""
    kind = METHODS[METHODS.resolve(method)]
    check_names(f"method {kind.name}", params, inspect.signature(kind).parameters)
    return kind(**params)
