"""How much memory training will take, estimated before it begins."""

from gst.nn.backbones import BACKBONES
from gst.train.settings import Training

_PER_STORED = 96  # bytes per stored value of sparse features: the user's copy, two patterns, two dropout masks


def training_memory(
    nodes: int,
    arcs: int,
    features: int,
    classes: int,
    backbone: str,
    training: Training,
    batch: str = "full",
    stored: int | None = None,
    masker_hidden: int = 64,
) -> int:
    """Bytes that GST takes at its peak, within about a factor of two of measurements.

    Per arc: indices of graph, adjacency, receptive fields and their transposes, gates and gradients. Per node:
    features, activations and gradients; of sparse features only the ``stored`` values count. Weights: with gradients,
    Adam's two moments and the copy of the best epoch.
    """
    width, deeper = training.hidden, max(0, training.layers - 2)
    matrices = 2 if training.residual else 1
    weights = matrices * (features * width + deeper * width**2 + width * classes) + features * masker_hidden
    if batch != "full":  # the list of arcs, and the larger of two passes: the solver's and that of a layer
        topology, semantic = 40 * arcs + 1200 * nodes, 24 * arcs + 16 * width * nodes
        one_run = 200 * min(arcs, 1 << 21)
        held = 4 * features * nodes if stored is None else _PER_STORED * stored
        return 44 * arcs + held + max(topology, semantic) + one_run + 5 * 4 * weights
    activations = 3 * matrices if training.norm == "none" else 3 * matrices + 2
    per_node = 4 * (activations * width * (1 + deeper) + masker_hidden)
    held = 12 * features * nodes if stored is None else _PER_STORED * stored
    return BACKBONES[backbone].bytes_per_arc * arcs + held + per_node * nodes + 5 * 4 * weights
