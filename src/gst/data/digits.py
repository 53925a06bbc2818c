"""The embedded data set: handwritten digits as a real graph that needs no download."""

from importlib import resources

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

    Data: optical recognition of handwritten digits (Alpaydin and Kaynak, UCI, 1998; CC BY 4.0), in the order of
    scikit-learn's copy.
    """
    if not NEIGHBOURS < nodes <= NODES:
        raise InputError(f"digits: nodes={nodes} is not between {NEIGHBOURS + 1} and {NODES}")
    with resources.files("gst.data").joinpath("digits.npz").open("rb") as file, np.load(file) as arrays:
        pixels, labels = arrays["pixels"][:nodes].astype(np.float64), arrays["labels"][:nodes]
    return Data(
        x=torch.from_numpy(pixels / 16).float(),
        y=torch.from_numpy(labels).long(),
        edge_index=torch.from_numpy(np.stack(np.nonzero(nearest(pixels)))),
    )


def nearest(pixels: np.ndarray) -> np.ndarray:
    """Whether two rows are among each other's nearest by cosine; of equally near ones those of lower number.

    Products of whole numbers are exact, so the order does not depend on the processor.
    """
    dot = pixels @ pixels.T
    cosine = dot * dot / dot.diagonal()  # squared, and times the same number in a whole row: the order is that of it
    np.fill_diagonal(cosine, -1)
    columns = np.argsort(-cosine, axis=1, kind="stable")[:, :NEIGHBOURS]
    linked = np.zeros(dot.shape, dtype=bool)
    np.put_along_axis(linked, columns, True, axis=1)
    return linked | linked.T


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
