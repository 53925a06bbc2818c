"""Versions of the code that determines results to the bit: one integer per method, per training path, per data set.

A change that alters the results of a seed must raise the integers of everything it affects, and no others. Cache keys
and checkpoints contain them, and so does every recorded row: rows of an older version are recognised and never mixed
with others silently. ``tests/lab/bench/test_record_again.py`` reproduces a sample of the record to the last digit.
"""

import os
from functools import cache
from importlib.metadata import version
from typing import Any

import torch

from gst.base.names import normalise_name
from gst.base.version import __version__

# layers, loss, optimiser, random numbers; backbones not listed, those of other packages included, have version 1. This
# table is not beside the backbones because it is imported below them. 2: common instructions only (gst.base.processor)
BACKBONES = {"gcn": 2, "gin": 2, "gat": 2, "sage": 2, "cluster-gcn": 2, "own": 2}
BATCHES = {"full": 1, "clusters": 1, "neighbors": 1}
# the search alone; all others have version 1. 2 of those that exchange edges: the mask after the last update
METHODS = {"deploy": 3, "retrain": 2, "gst": 2, "set": 2, "snfs": 2, "rigl": 2, "mest": 2, "ugs+gst": 3}
# features, edges and splits as loaded; all others have version 1
DATASETS = dict.fromkeys(("computers", "photo", "cs", "physics", "chameleon", "squirrel"), 2)


def versions(dataset: str, backbone: str, batch: str, method: str) -> str:
    """All versions that determine a run, as text for its row and for keys.

    >>> versions("Cora", "gcn", "full", "deploy")
    'cora 1, gcn 2, full 1, deploy 3'
    """
    name = normalise_name(dataset.partition(":")[0])
    return f"{name} {DATASETS.get(name, 1)}, {training(backbone, batch)}, {method_version(method)}"


def is_current(text: str) -> bool:
    """Whether a text made by :func:`versions` matches the present code.

    >>> is_current(versions("Cora", "gcn", "full", "ugs")), is_current("cora 1, gcn 1, full 1, ugs 1"), is_current("")
    (True, False, False)
    """
    try:
        names = [part.rpartition(" ")[0] for part in text.split(", ")]
        return text == versions(*names)
    except (KeyError, TypeError):
        return False


def method_version(method: str) -> str:
    """The version of a method's search; ``method`` is the name of the algorithm.

    >>> method_version("ugs"), method_version("deploy")
    ('ugs 1', 'deploy 3')
    """
    return f"{method} {METHODS.get(method, 1)}"


def environment() -> dict[str, Any]:
    """What else the last bits depend on: libraries, threads, precision and the processor instructions in use."""
    return {
        "gst": __version__,
        **_libraries(),
        "threads": torch.get_num_threads(),
        "precision": str(torch.get_default_dtype()),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "mkl": os.environ.get("MKL_CBWR", ""),
    }


@cache
def _libraries() -> dict[str, str]:
    return {name: version(name) for name in ("torch", "torch_geometric", "numpy", "scipy", "numba")}


def training(backbone: str, batch: str) -> str:
    """The versions that training alone depends on.

    >>> training("gat", "clusters"), training("of-another-package", "full")
    ('gat 2, clusters 1', 'of-another-package 1, full 1')
    """
    return f"{backbone} {BACKBONES.get(backbone, 1)}, {batch} {BATCHES[batch]}"
