"""The embedded data set: handwritten digits as a real graph that needs no download."""

import numpy as np
import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.data.registry import DATASETS, Dataset, DatasetInfo
from gst.data.splits import Sizes

NODES = 1797
NEIGHBOURS = 10


def digits(nodes: int = NODES) -> Data:
    """1,797 digits of 8×8 pixels, each linked in both directions to its 10 nearest by cosine (12,535 pairs).

    With ``nodes``, only the first ``nodes`` digits, linked among themselves.

    Data: optical recognition of handwritten digits (Alpaydin and Kaynak, UCI, 1998), as packaged by scikit-learn.
    """
    from sklearn.datasets import load_digits  # noqa: PLC0415 - slow to import, needed here only
    from sklearn.neighbors import kneighbors_graph  # noqa: PLC0415

    if not NEIGHBOURS < nodes <= NODES:
        raise InputError(f"digits: nodes={nodes} is not between {NEIGHBOURS + 1} and {NODES}")
    pixels, labels = (part[:nodes] for part in load_digits(return_X_y=True))
    nearest = kneighbors_graph(pixels, NEIGHBOURS, metric="cosine", include_self=False)
    both = nearest.maximum(nearest.T)
    both.sort_indices()
    arcs = both.tocoo()
    return Data(
        x=torch.from_numpy(pixels / 16).float(),
        y=torch.from_numpy(labels).long(),
        edge_index=torch.from_numpy(np.stack([arcs.row, arcs.col])).long(),
    )


_INFO = DatasetInfo(
    name="digits",
    nodes=NODES,
    edges=12_535,
    features=64,
    classes=10,
    metric="accuracy",
    directed=False,
    split="random: 5 train per class, 500 val, rest test",
    source="embedded",
)
DATASETS.register("digits")(Dataset(_INFO, digits, Sizes(train=5, val=500)))
