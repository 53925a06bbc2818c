"""What a search comes back with."""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data


@dataclass(frozen=True)
class Found:
    """A sparse graph, one value per edge, and the model that answers on it."""

    keep_mask: Tensor  # [E] which edges stay
    scores: Tensor  # [E] importance of each
    model: nn.Module
    logits: Tensor  # [N, classes] of that model on that graph
    val: float
    seconds: dict[str, float]  # of the phases "anchor", "topology" and "sparse"
    test: float | None = None  # None: by the logits
    history: list[dict[str, Any]] = field(default_factory=list)  # one line per epoch, round or stage
    agreement: float | None = None  # with the dense model, where the search has one
    updates: int | None = None  # exchanges that the sparse graph has had, of methods that exchange edges
    fresh: bool = False  # whether the model was trained from scratch on the sparse graph, E + D epochs
    graph: Data | None = None  # the sparse graph, where its edges have weights of their own
