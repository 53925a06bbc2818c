"""Edges of nodes that training has not seen: which of them stay when the nodes arrive."""

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.graph.shared_select import shared_top_k
from gst.train.run import Run


class UnseenEdges:
    """Splits a budget over the edges that training sees and those it does not; of the latter the masker's best stay.

    Both parts keep the same share of their edges, and together exactly as many as asked for. In the transductive
    setting training sees all edges.
    """

    def __init__(self, run: Run, mask: Tensor, num_kept: int) -> None:
        self.run = run
        self.mask = mask
        total = run.edges.num_edges
        self.num_kept = round(num_kept * run.view.num_edges / total)  # of the edges that training sees
        self.sparsity = 1 - num_kept / total
        unseen = mask[:0] if run.seen is None else mask[~run.seen]
        self._keep_unseen = shared_top_k(unseen, num_kept - self.num_kept) if unseen.numel() else unseen.bool()

    def join(self, keep_mask: Tensor) -> Tensor:
        """[E] which edges stay, from those of the view that stay."""
        return self._joined(keep_mask, self._keep_unseen)

    def join_scores(self, scores: Tensor) -> Tensor:
        """[E] a score per edge: that of the view, and the mask of edges that training has not seen."""
        return scores if self.run.seen is None else self._joined(scores, self.mask[~self.run.seen].to(scores))

    def _joined(self, inside: Tensor, outside: Tensor) -> Tensor:
        seen = self.run.seen
        if seen is None:
            return inside
        values = torch.empty(seen.shape, dtype=inside.dtype, device=inside.device)
        values[seen], values[~seen] = inside, outside
        return values

    def graphs(self, keep_mask: Tensor) -> tuple[EdgeSet, EdgeSet]:
        """What training and what validation see when these edges of the view stay."""
        sparse = self.run.view.subset(keep_mask)
        if self.run.judged is None:
            return sparse, sparse
        return sparse, self.run.edges.subset(self.join(keep_mask) & self.run.judged)
