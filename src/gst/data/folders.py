"""Real graphs in the layout of ``--dataset FOLDER``, looked for below the data root, else the mirror.

Nobody publishes them in this form, so they are not downloaded. A score on ``arxiv-citations`` is none on ogbn-arxiv:
the graph, the labels and the split are the same, the features are not.
"""

from pathlib import Path

from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.data.files import read_folder
from gst.data.registry import DATASETS, Dataset, DatasetInfo
from gst.storage.paths import mirror_root


def _find(name: str, root: Path) -> Path:
    """Its folder below the data root or else the mirror."""
    mirror = mirror_root()
    places = [place / name for place in (root, mirror) if place is not None]
    for place in places:
        if place.is_dir():
            return place
    tried = " nor ".join(map(str, places))
    raise InputError(f"{name}: no folder {tried}, and it cannot be downloaded: give its files by --dataset FOLDER")


def _spectral_or_guesses(root: Path, guesses: int = 0) -> Data:
    """128 spectral coordinates as features; ``guesses=1``: a language model's guesses at the class instead."""
    return read_folder(_find("arxiv-citations", root), "guesses" if guesses else "features")


def _in_words(root: Path) -> Data:
    return read_folder(_find("debian", root), "features")


_SPLIT = "shipped, by year"
_ARXIV = DatasetInfo(
    "arxiv-citations", 169_343, 1_157_799, 128, 40, "accuracy", False, _SPLIT, "OGB's graph, other features"
)
_DEBIAN = DatasetInfo("debian", 83_133, 485_649, 5000, 58, "accuracy", False, _SPLIT, "dependencies of packages")
DATASETS.register("debian")(Dataset(_DEBIAN, _in_words))
DATASETS.register("arxiv-citations")(Dataset(_ARXIV, _spectral_or_guesses))
