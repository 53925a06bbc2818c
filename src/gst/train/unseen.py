"""Edges of nodes that training has not seen: which of them stay when the nodes arrive."""

from collections.abc import Callable

import torch
from torch import Tensor

from gst.graph.cap import Cap
from gst.graph.edgeset import EdgeSet
from gst.graph.shared_select import shared_top_k
from gst.train.run import Run


class UnseenEdges:
    """Splits a budget over the edges that training sees and those it does not; of the latter the masker's best stay.

    Both parts keep the same share of their edges, and together exactly as many as asked for; under a cap the parts of
    the masker's best edges. In the transductive setting training sees all edges.
    """

    def __init__(self, run: Run, mask: Tensor, num_kept: int) -> None:
        self.run = run
        self.mask = mask
        total = run.edges.num_edges
        self.num_kept = round(num_kept * run.view.num_edges / total)  # of the edges that training sees
        self.sparsity = 1 - num_kept / total
        self.cap = run.cap  # of the edges that training sees
        unseen = mask[:0] if run.seen is None else mask[~run.seen]
        if run.seen is not None and run.cap is not None:
            first = run.cap.top_k(mask, num_kept)
            self._keep_unseen = first[~run.seen]
            self.num_kept = int(first[run.seen].sum())
            self.cap = run.cap.without(first & ~run.seen).among(run.seen)
        else:
            self._keep_unseen = shared_top_k(unseen, num_kept - self.num_kept) if unseen.numel() else unseen.bool()

    def top_k(self, scores: Tensor) -> Tensor:
        """Mask of the edges of the view that stay, by their scores."""
        cap: Cap | None = self.cap
        return self.run.view.choose(scores, self.num_kept) if cap is None else cap.top_k(scores, self.num_kept)

    def exchange(
        self, keep_mask: Tensor, drop: Tensor, grow: Tensor, count: Callable[[int, int], int]
    ) -> tuple[Tensor, int]:
        """One update of the edges of the view, and how many it exchanged: see :meth:`EdgeSet.exchange`."""
        if self.cap is None:
            return self.run.view.exchange(keep_mask, drop, grow, count)
        swapped = count(self.num_kept, self.run.view.num_edges - self.num_kept)
        return self.cap.exchange(keep_mask, drop, swapped, grow) if swapped else keep_mask, swapped

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
