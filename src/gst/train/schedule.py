"""How many edges an update exchanges."""

import math


def num_updates(epochs: int, interval: int) -> int:
    """⌈D/ΔT⌉."""
    return math.ceil(epochs / interval)


def inverse_power(update: int, updates: int, ratio: float, decay: float) -> float:
    r"""The share Υ(μ) = τ (1 − μ/⌈D/ΔT⌉)^κ of edges that update μ exchanges.

    >>> [round(inverse_power(mu, 4, ratio=0.3, decay=1), 3) for mu in (1, 2, 3, 4)]
    [0.225, 0.15, 0.075, 0.0]
    """
    return ratio * (1 - update / updates) ** decay


def swap_count(share: float, kept: int, pruned: int) -> int:
    """r = ⌊Υ(μ) · min(kept, pruned)⌋."""
    return math.floor(share * min(kept, pruned))
