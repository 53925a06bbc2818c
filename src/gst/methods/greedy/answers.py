"""The divergence of one node's answer, its gradient, and the distance between two answers.

With wanted probabilities p = softmax(Z^A / T) and an output z, the cross entropy is

    H(p, softmax(z / T)) = log Σ_c exp(z_c / T) − ⟨p, z / T⟩

and KL is the cross entropy less the entropy of p. For several labels, sums run over Bernoulli distributions σ(z / T).
Numbers and embeddings are treated alike, with p = Z^A / T, ½‖z / T‖² in place of the logarithm and −½‖p‖² in place of
the entropy: then KL is ½‖p − z / T‖².
"""

import numpy as np

from gst.methods.greedy.arrays import Layers, State, Trial, inlined

NEGLIGIBLE = -110.0  # a term exp(x) with x below this cannot change a sum, in double precision, that contains 1


@inlined
def expected_logit(network: int, node: int, out: np.ndarray, layers: Layers) -> float:
    """⟨wanted, out / T⟩, the only part of the loss that reads the wanted probabilities."""
    wanted = layers.wanted[network, node]
    total = 0.0
    for c in range(out.size):
        total += wanted[c] * out[c]
    return total / layers.temperature


@inlined
def node_loss(network: int, node: int, expected: float, out: np.ndarray, layers: Layers) -> float:
    """D of one node: log(1 + KL), or undamped the cross entropy, which is KL plus a constant.

    ``expected`` comes from :func:`expected_logit`.
    """
    cross_entropy = _log_partition(out, layers) - expected
    if not layers.damped:
        return cross_entropy
    kl = cross_entropy - layers.entropy[network, node]
    return np.log1p(kl) if kl > 0.0 else 0.0


@inlined
def loss_gradient(network: int, node: int, layers: Layers, state: State, into: np.ndarray) -> None:
    """∂D/∂out = (softmax(out / T) − wanted) / T, damped by 1 / (1 + KL)."""
    loss = state.loss[network, node]
    damping = (np.exp(-loss) if loss > 0.0 else 1.0) / layers.temperature if layers.damped else 0.0
    for c in range(into.size):
        excess = state.probability[network, node, c] - layers.wanted[network, node, c]
        into[c] = excess * damping if layers.damped else excess / layers.temperature


@inlined
def _log_partition(out: np.ndarray, layers: Layers) -> float:
    """log Σ_c exp(out_c / T); for several labels Σ_c log(1 + exp(out_c / T)); for numbers ½‖out / T‖²."""
    factor = 1 / layers.temperature
    total = 0.0
    if layers.squares:
        for c in range(out.size):
            total += (out[c] * factor) ** 2 / 2
        return total
    if layers.multilabel:
        for c in range(out.size):
            total += max(out[c] * factor, 0.0) + np.log1p(np.exp(-abs(out[c] * factor)))
        return total
    top = out[0]
    for c in range(1, out.size):
        top = max(top, out[c])
    for c in range(out.size):  # answers are sharp: most terms are 1 or too small to change the sum
        below = (out[c] - top) * factor
        if below == 0.0:
            total += 1.0
        elif below > NEGLIGIBLE:
            total += np.exp(below)
    return (np.log(total) if total > 1.0 else 0.0) + top * factor


@inlined
def _probabilities(out: np.ndarray, layers: Layers, into: np.ndarray) -> None:
    """softmax(out / T), or sigmoid(out / T) for several labels, or out / T for numbers."""
    total, top = 0.0, out[0]
    if layers.squares:
        for c in range(out.size):
            into[c] = out[c] / layers.temperature
        return
    for c in range(1, out.size):
        top = max(top, out[c])
    for c in range(out.size):
        into[c] = np.exp((out[c] - top) / layers.temperature) if out[c] < top else 1.0
        total += into[c]
    for c in range(out.size):
        into[c] = 1 / (1 + np.exp(-out[c] / layers.temperature)) if layers.multilabel else into[c] / total


@inlined
def replace_probabilities(out: np.ndarray, layers: Layers, stored: np.ndarray, trial: Trial) -> float:
    """Overwrites the stored probabilities by those of ``out``; returns ½ Σ_c |Δ|, the distance between the two.

    For numbers, which have no bound, it is x / (1 + x) of that.
    """
    new = trial.scratch[: stored.size]
    distance = 0.0
    _probabilities(out, layers, new)
    for c in range(stored.size):
        distance += abs(new[c] - stored[c]) / 2
        stored[c] = new[c]
    return distance / (1.0 + distance) if layers.squares else distance
