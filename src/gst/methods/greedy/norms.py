"""LayerNorm between two layers, for one row: forward and backward."""

import numpy as np

from gst.methods.greedy.arrays import Layers, Trial, inlined, macro

EPSILON = 1e-5  # as in torch.nn.LayerNorm


@inlined
def _moments(row: np.ndarray) -> tuple[float, float]:
    """Mean and 1 / √(variance + ε) of a row."""
    mean, square = 0.0, 0.0
    for c in range(row.size):
        mean += row[c]
    mean /= row.size
    for c in range(row.size):
        square += (row[c] - mean) ** 2
    return mean, 1.0 / np.sqrt(square / row.size + EPSILON)


@macro
def normalised(layer: int, out: np.ndarray, layers: Layers, trial: Trial) -> np.ndarray:
    """LayerNorm(out), or ``out`` itself in a network without it: the next layer's input before the ReLU.

    The result is in a buffer that the next call reuses.
    """
    if layers.norms.size > 0:
        mean, inverse_std = _moments(out)
        for c in range(out.size):
            trial.normed[c] = (out[c] - mean) * inverse_std * layers.norms[layer, 0, c] + layers.norms[layer, 1, c]
    return trial.normed[: out.size] if layers.norms.size > 0 else out


@inlined
def norm_backward(layer: int, out: np.ndarray, gradient: np.ndarray, layers: Layers) -> None:
    """Turns the gradient by ReLU(LayerNorm(out)) into the gradient by ``out``, in place."""
    mean, inverse_std = _moments(out)
    mean_gradient, mean_product = 0.0, 0.0
    for c in range(out.size):
        centred = (out[c] - mean) * inverse_std
        gain = layers.norms[layer, 0, c]
        gradient[c] = gradient[c] * gain if centred * gain + layers.norms[layer, 1, c] > 0 else 0.0
        mean_gradient += gradient[c] / out.size
        mean_product += gradient[c] * centred / out.size
    for c in range(out.size):
        gradient[c] = inverse_std * (gradient[c] - mean_gradient - (out[c] - mean) * inverse_std * mean_product)
