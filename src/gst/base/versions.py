"""Versions of the code that decides the bits of a number: one integer per method, per training path, per data set.

Whoever changes what a seed gives raises the integer of all that it changes, nothing else. Caches and checkpoints have
them in their keys, and every row of the record carries them: rows of an older version are known as such and are never
mixed with others in silence. ``tests/bench/test_record_again.py`` runs a sample of the record again, to the last digit.
"""

from functools import cache
from importlib.metadata import version
from typing import Any

import torch

from gst.base.names import normal
from gst.base.version import __version__

# layers, loss, optimiser, random numbers; 2: the instructions that all processors share (gst.base.processor)
BACKBONES = {"gcn": 2, "gin": 2, "gat": 2, "sage": 2, "cluster-gcn": 2, "own": 2}
BATCHES = {"full": 1, "clusters": 1, "neighbors": 1}
METHODS = {"deploy": 2, "retrain": 2, "ugs+gst": 2}  # the search alone; the others are at 1
# features, links and splits as loaded; those that are not here are at 1
DATASETS = dict.fromkeys(("computers", "photo", "cs", "physics", "chameleon", "squirrel"), 2)


def versions(dataset: str, backbone: str, batch: str, method: str) -> str:
    """All that decide a run, as words that stand in its row and in keys.

    >>> versions("Cora", "gcn", "full", "deploy")
    'cora 1, gcn 2, full 1, deploy 2'
    """
    name = normal(dataset.partition(":")[0])
    return f"{name} {DATASETS.get(name, 1)}, {training(backbone, batch)}, {of_method(method)}"


def is_current(words: str) -> bool:
    """Whether such words are those of the present code.

    >>> is_current(versions("Cora", "gcn", "full", "ugs")), is_current("cora 1, gcn 1, full 1, ugs 1"), is_current("")
    (True, False, False)
    """
    try:
        names = [part.rpartition(" ")[0] for part in words.split(", ")]
        return words == versions(*names)
    except (KeyError, TypeError):
        return False


def of_method(method: str) -> str:
    """The part of a method's own code; ``method`` by the name of its algorithm.

    >>> of_method("ugs"), of_method("deploy")
    ('ugs 1', 'deploy 2')
    """
    return f"{method} {METHODS.get(method, 1)}"


def surroundings() -> dict[str, Any]:
    """What else the last bits depend on: libraries, threads, precision and the processor's instructions in use."""
    used = {"threads": torch.get_num_threads(), "precision": str(torch.get_default_dtype())}
    return {"gst": __version__, **_libraries(), **used, "processor": torch.backends.cpu.get_cpu_capability()}


@cache
def _libraries() -> dict[str, str]:
    return {name: version(name) for name in ("torch", "torch_geometric", "numpy", "scipy", "numba")}


def training(backbone: str, batch: str) -> str:
    """The part that training alone depends on.

    >>> training("gat", "clusters")
    'gat 2, clusters 1'
    """
    return f"{backbone} {BACKBONES[backbone]}, {batch} {BATCHES[batch]}"
