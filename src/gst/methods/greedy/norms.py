"""LayerNorm between two layers: of a row of outputs, and back."""

import numpy as np

from gst.methods.greedy.arrays import Layers, Trial, lean, macro

EPSILON = 1e-5  # that of torch.nn.LayerNorm


@lean
def moments(row: np.ndarray) -> tuple[float, float]:
    """Mean and 1 / √(variance + ε) of a row."""
    mean, square = 0.0, 0.0
    for c in range(row.size):
        mean += row[c]
    mean /= row.size
    for c in range(row.size):
        square += (row[c] - mean) ** 2
    return mean, 1.0 / np.sqrt(square / row.size + EPSILON)


@macro
def read_of(layer: int, out: np.ndarray, layers: Layers, trial: Trial) -> np.ndarray:
    """What the next layer reads of a row, but for the ReLU: itself, or normalised in room that the next call reuses."""
    if layers.norms.size > 0:
        mean, spread = moments(out)
        for c in range(out.size):
            trial.read[c] = (out[c] - mean) * spread * layers.norms[layer, 0, c] + layers.norms[layer, 1, c]
    return trial.read[: out.size] if layers.norms.size > 0 else out


@lean
def through_norm(layer: int, out: np.ndarray, slope: np.ndarray, layers: Layers) -> None:
    """From the slope in ReLU(LayerNorm(out)) to that in a row of outputs, in place."""
    mean, spread = moments(out)
    flat, along = 0.0, 0.0
    for c in range(out.size):
        centred, gain = (out[c] - mean) * spread, layers.norms[layer, 0, c]
        slope[c] = slope[c] * gain if centred * gain + layers.norms[layer, 1, c] > 0 else 0.0
        flat += slope[c] / out.size
        along += slope[c] * centred / out.size
    for c in range(out.size):
        slope[c] = spread * (slope[c] - flat - (out[c] - mean) * spread * along)
