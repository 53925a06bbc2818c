"""Edges of nodes that training has not seen: which of them stay when the nodes arrive."""

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.graph.shared_select import shared_top_k
from gst.train.run import Problem


class Arrivals:
    """Splits a budget over the edges that training sees and those it does not; of the latter the masker's best stay.

    Both have the same share of kept edges, and together they are exactly as many as asked for. In the transductive
    setting there are no others.
    """

    def __init__(self, problem: Problem, mask: Tensor, kept: int) -> None:
        self.problem, self.mask = problem, mask
        seen, total = problem.view.num_edges, problem.edges.num_edges
        self.kept = round(kept * seen / total)  # of the edges that training sees
        self.sparsity = 1 - kept / total
        self._others = mask[:0].bool() if problem.seen is None else shared_top_k(mask[~problem.seen], kept - self.kept)

    def join(self, keep: Tensor) -> Tensor:
        """[E] which edges stay, from those that stay of the view."""
        return self._joined(keep, self._others)

    def join_scores(self, scores: Tensor) -> Tensor:
        """[E] a score per edge: that of the view, and the mask of edges that training has not seen."""
        return scores if self.problem.seen is None else self._joined(scores, self.mask[~self.problem.seen].to(scores))

    def _joined(self, inside: Tensor, outside: Tensor) -> Tensor:
        seen = self.problem.seen
        if seen is None:
            return inside
        values = torch.empty(seen.shape, dtype=inside.dtype, device=inside.device)
        values[seen], values[~seen] = inside, outside
        return values

    def graphs(self, keep: Tensor) -> tuple[EdgeSet, EdgeSet]:
        """What training and what validation see, when these edges of the view stay."""
        sparse = self.problem.view.subset(keep)
        if self.problem.judged is None:
            return sparse, sparse
        return sparse, self.problem.edges.subset(self.join(keep) & self.problem.judged)
