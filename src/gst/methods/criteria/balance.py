"""The equilibria combination of the semantic and the topology criterion."""

from torch import Tensor


def combine(semantic: Tensor | None, topology: Tensor | None, semantic_weight: float, topology_weight: float) -> Tensor:
    r"""φ = β_s φ_sema / mean(φ_sema) + β_t φ_topo / mean(φ_topo); None omits a term.

    The two criteria differ by orders of magnitude, so each is first divided by its mean.
    """
    total: Tensor | None = None
    for score, weight in ((semantic, semantic_weight), (topology, topology_weight)):
        if score is not None:
            values = score.double()
            term = (weight * values).div_(values.mean().clamp(min=1e-300))
            total = term if total is None else total.add_(term)
    assert total is not None
    return total
