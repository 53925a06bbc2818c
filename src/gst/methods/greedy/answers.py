"""The divergence of one node's answer, its slope, and how far apart two answers are."""

import numpy as np

from gst.methods.greedy.arrays import Layers, State, Trial, lean

NOTHING = -110.0  # e to this power changes no sum with 1 in it, not even by way of its smaller terms


@lean
def hoped(network: int, node: int, out: np.ndarray, layers: Layers) -> float:
    """⟨wanted, out / T⟩, all of a loss for which the wanted answer is fetched."""
    wanted, total = layers.wanted[network, node], 0.0
    for c in range(out.size):
        total += wanted[c] * out[c]
    return total / layers.temperature


@lean
def loss_of(network: int, node: int, hope: float, out: np.ndarray, layers: Layers) -> float:
    """log(1 + KL) of the answer from the wanted one, ``hope`` being :func:`hoped`.

    Undamped, the cross entropy, which is KL but for a constant.
    """
    cross = _partition(out, layers) - hope
    if not layers.damped:
        return cross
    apart = cross - layers.least[network, node]
    return np.log1p(apart) if apart > 0.0 else 0.0


@lean
def slope_of(network: int, node: int, layers: Layers, state: State, into: np.ndarray) -> None:
    """∂D/∂out = (softmax(out / T) − wanted) / T, damped by 1 / (1 + KL)."""
    loss = state.loss[network, node]
    damping = (np.exp(-loss) if loss > 0.0 else 1.0) / layers.temperature if layers.damped else 0.0
    for c in range(into.size):
        more = state.chance[network, node, c] - layers.wanted[network, node, c]
        into[c] = more * damping if layers.damped else more / layers.temperature


@lean
def _partition(out: np.ndarray, layers: Layers) -> float:
    """log Σ_c exp(out_c / T), of labels Σ_c log(1 + exp(out_c / T))."""
    factor, top, total = 1 / layers.temperature, out[0], 0.0
    if layers.labels:
        for c in range(out.size):
            total += max(out[c] * factor, 0.0) + np.log1p(np.exp(-abs(out[c] * factor)))
        return total
    for c in range(1, out.size):
        top = max(top, out[c])
    for c in range(out.size):  # answers are sharp, so most terms are 1 or no part of the sum's 53 bits
        below = (out[c] - top) * factor
        if below == 0.0:
            total += 1.0
        elif below > NOTHING:
            total += np.exp(below)
    return (np.log(total) if total > 1.0 else 0.0) + top * factor


@lean
def chances(out: np.ndarray, layers: Layers, into: np.ndarray) -> None:
    """softmax(out / T), or sigmoid(out / T) of labels."""
    total, top = 0.0, out[0]
    for c in range(1, out.size):
        top = max(top, out[c])
    for c in range(out.size):
        into[c] = np.exp((out[c] - top) / layers.temperature) if out[c] < top else 1.0
        total += into[c]
    for c in range(out.size):
        into[c] = 1 / (1 + np.exp(-out[c] / layers.temperature)) if layers.labels else into[c] / total


@lean
def moved(out: np.ndarray, layers: Layers, chance: np.ndarray, trial: Trial) -> float:
    """Puts the new chances in place of the old; how far apart they are, ½ Σ_c |Δ|."""
    now, distance = trial.step[: chance.size], 0.0
    chances(out, layers, now)
    for c in range(chance.size):
        distance += abs(now[c] - chance[c]) / 2
        chance[c] = now[c]
    return distance
