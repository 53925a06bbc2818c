"""Which edges does a trained network need? Greedy on the divergence from the answers it gives on all of them."""

import numpy as np
import torch
from torch import Tensor

from gst.graph import EdgeSet
from gst.greedy.native import as_lists, as_model
from gst.greedy.search import fill, walk
from gst.nn.network import NativeNetwork

TEMPERATURE = 0.15
TOLERANCE = 0.003


class Search:
    def __init__(
        self,
        networks: list[NativeNetwork],
        edges: EdgeSet,
        wanted: list[Tensor],
        temperature: float = TEMPERATURE,
        prior: Tensor | None = None,
        keep: Tensor | None = None,
    ) -> None:
        self.lists, self.incidence = as_lists(edges)
        self.models = tuple(as_model(n, edges, w, temperature) for n, w in zip(networks, wanted, strict=True))
        self.prior = np.zeros(edges.num_edges) if prior is None else prior.double().cpu().numpy()
        self.keep = np.zeros(edges.num_edges, bool)
        if keep is not None:
            self.keep[:] = keep.cpu().numpy()
            fill(np.flatnonzero(self.keep), self.lists, self.models)

    def divergence(self) -> float:
        return float(np.mean([state.loss.sum() for _, state, _ in self.models]))

    def add(self, count: int, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
        order, paid = walk(count, 1.0, ~self.keep, self.prior, tolerance, self.lists, self.incidence, self.models)
        self.keep[order] = True
        return torch.from_numpy(order), torch.from_numpy(paid)

    def drop(self, count: int, tolerance: float = TOLERANCE) -> tuple[Tensor, Tensor]:
        order, paid = walk(
            count, -1.0, self.keep.copy(), self.prior, tolerance, self.lists, self.incidence, self.models
        )
        self.keep[order] = False
        return torch.from_numpy(order), torch.from_numpy(paid)
