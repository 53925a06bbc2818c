"""Which candidates are worth a trial where a network has no slopes: by need."""

import numpy as np
from torch import Tensor
from torch.nn import functional

from gst.graph.edgeset import EdgeSet


def likeness(edges: EdgeSet, wanted: Tensor) -> np.ndarray:
    """How alike the ends of each edge are in their wanted answers: the cosine of their deviations from the mean answer.

    Scaled to 0.1 … 1.1: an edge between unlike nodes may be needed as well.
    """
    centred = functional.normalize((wanted - wanted.mean(0)).double(), dim=-1)
    u, v = edges.pairs
    return 0.1 + (1 + (centred[u] * centred[v]).sum(-1).cpu().numpy()) / 2


def by_need(edges: EdgeSet, alike: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """What the return of every edge may change, without any slope: the loss at the nodes it reaches, times likeness.

    Max, median and LSTM aggregation have no useful slope in an edge that is not there.
    """
    u, v = edges.pairs.cpu().numpy()
    return -alike * (loss[v] if edges.directed else loss[u] + loss[v])
