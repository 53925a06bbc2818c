"""A cache never answers, and a checkpoint never resumes, for another graph, task or setting.

By mutation: one field after another is changed; with a cache filled by the unchanged run, the changed run gives, to the
last bit, what it gives without a cache.
"""

import inspect

import pytest
import torch

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.base.versions import BACKBONES
from gst.storage.cache import Cache, fingerprint
from gst.storage.checkpoint import Checkpoint
from gst.train.run import Run

BASE = {"anchor_epochs": 3, "sparse_epochs": 4, "interval": 2, "turns": 1, "hidden": 8, "heads": 2, "seed": 1}
BASE |= {"lr": 0.01, "clusters": 3, "clusters_per_batch": 2, "batch_nodes": 6, "fanout": 3}
CHANGED = {
    **{"anchor_epochs": 4, "sparse_epochs": 5, "interval": 1, "swap_ratio": 0.5, "decay": 2.0, "turns": 2},
    **{"matrix": "normalised", "eigenpairs": 2, "semantic_weight": 0.1, "topology_weight": 0.1, "tune": False},
    **{"semantic": False, "topology": False, "hidden": 4, "layers": 3, "heads": 4, "dropout": 0.1, "lr": 0.05},
    **{"weight_decay": 0.1, "masker_hidden": 8, "mask_deviation": 0.05, "inductive": True, "batch": "clusters"},
    **{"clusters": 4, "clusters_per_batch": 1, "batch_nodes": 3, "fanout": 1, "seed": 2},
    **{"residual": True, "norm": "layer", "prune_ratio": 0.2, "round_epochs": 3, "l1": 0.1, "weight_prune_ratio": 0.2},
    **{
        "inner_steps": 3,
        "meta_epochs": 2,
        "outer": "train",
        "by": "pairs",
        "max_degree": 4,
        "scenarios": 1,
        "compensate": True,
    },
}
# needs pyg-lib; one machine; typed graphs and links have tests of their own
UNTRIED = {"loader", "device"} | {"target", "protect", "scope"} | {"output", "decoder", "head", "change", "strength"}
NO_RESULT = {"sparsity", "keep", "backbone", "model", "cache", "callbacks", "checkpoint"}
METHODS = {
    "gst": {"method": "gst"},
    "deploy": {"method": "deploy"},
    "deploy-gin": {"method": "deploy", "backbone": "gin"},
    "retrain": {"method": "retrain"},
    "ugs": {"method": "ugs", "round_epochs": 2, "prune_ratio": 0.4},
    "mgspar": {"method": "mgspar", "inner_steps": 2, "meta_epochs": 1, "prune_ratio": 0.4},
    "rigl": {"method": "rigl"},
}


def two_classes(seed=0, **changes):
    data = random_graph(nodes=30, edges=70, classes=2, weighted=True, seed=seed)
    data.update({"edge_attr": torch.ones(data.num_edges, 2), "metric": "accuracy", "name": "own", **changes})
    return data


def mutated_data():
    data = two_classes()
    yield "metric", two_classes(metric="rocauc")
    yield "x", two_classes(x=data.x.flip(0))
    yield "y", two_classes(y=data.y.roll(1))
    yield "edge_index", two_classes(seed=1)
    yield "edge_weight", two_classes(edge_weight=data.edge_weight * data.edge_index.sum(0) / 10)
    val, test = data.val_mask.clone(), data.test_mask.clone()
    yield "val_mask and test_mask", two_classes(val_mask=test, test_mask=val)
    train = data.train_mask.clone()
    train[train.nonzero()[-1]] = False
    yield "train_mask", two_classes(train_mask=train)


MUTATED = dict(mutated_data())


def run(data, cache, method, **changes):
    params = {name: value for name, value in BASE.items() if name in arguments(method)}
    return gst.sparsify(data, sparsity=0.5, dense=True, cache=cache, **{**params, **METHODS[method], **changes})


def arguments(method):
    return inspect.signature(gst.methods.METHODS[METHODS[method]["method"]]).parameters.keys()


def bits(result):
    metrics = {name: value for name, value in result.metrics.items() if name != "seconds"}
    return metrics, [result.edge_mask, result.scores, *result.model.state_dict().values()]


def assert_same(result, expected):
    assert bits(result)[0] == bits(expected)[0]
    assert all(torch.equal(a, b) for a, b in zip(bits(result)[1], bits(expected)[1], strict=True))


SHARED = inspect.signature(gst.methods.LearnedSparsifier).parameters.keys()
FEW = ("sparse_epochs", "lr", "seed")  # of what all methods share, where others try all of it
TRIED = [
    (method, name)
    for method in METHODS
    for name in CHANGED
    if name in arguments(method) and (method in ("gst", "deploy") or name in FEW or name not in SHARED)
]
TRIED += [(method, name) for method in METHODS for name in (("metric", "x") if method == "retrain" else MUTATED)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """For each method a cache filled by the unchanged run."""
    caches = {}

    def find(method):
        if method not in caches:
            caches[method] = Cache(tmp_path_factory.mktemp(method))
            run(two_classes(), caches[method], method)
        return caches[method]

    return find


def test_every_setting_is_tried():
    for method in METHODS:
        assert arguments(method) - CHANGED.keys() - UNTRIED <= NO_RESULT, method


@pytest.mark.parametrize(("method", "name"), TRIED)
def test_a_changed_run_is_the_same_with_the_cache_of_the_unchanged_one(method, name, filled):
    """Some settings are not for every method: a run refused without the cache is refused with it, too."""
    data, changes = (MUTATED[name], {}) if name in MUTATED else (two_classes(), {name: CHANGED[name]})
    try:
        expected = run(data, False, method, **changes)
    except InputError:
        with pytest.raises(InputError):
            run(data, filled(method), method, **changes)
        return
    assert_same(run(data, filled(method), method, **changes), expected)


def test_the_metric_of_a_file_decides_what_is_measured(tmp_path):
    """Two files with the same tensors, one evaluated by accuracy and one by ROC-AUC."""
    data, found = random_graph(nodes=40, edges=120, classes=2), {}
    for metric in ("accuracy", "rocauc"):
        path = tmp_path / f"{metric}.pt"
        torch.save({**data.to_dict(), "metric": metric}, path)
        for cache in (True, False):
            found[metric, cache] = run(gst.load(path), cache, "deploy")
    for metric in ("accuracy", "rocauc"):
        assert_same(found[metric, True], found[metric, False])
    assert found["accuracy", True].metrics["dense_test"] != found["rocauc", True].metrics["dense_test"]


def test_every_field_of_a_graph_is_in_its_fingerprint():
    data = two_classes()
    plain = fingerprint(data)
    for key in data.to_dict():
        changed = two_classes()
        value = data[key]
        changed[key] = value + 1 if isinstance(value, torch.Tensor) and value.dtype != torch.bool else "other"
        assert (fingerprint(changed) == plain) == (key == "name"), key
    added = two_classes()
    added.time = torch.zeros(30)
    assert fingerprint(added) != plain


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_sparse_features_have_a_fingerprint(layout):
    data = two_classes()
    sparse = two_classes(x=data.x.relu().to_sparse(layout=getattr(torch, layout)))
    other = two_classes(x=data.x.relu().mul(2).to_sparse(layout=getattr(torch, layout)))
    assert len({fingerprint(each) for each in (data, sparse, other)}) == 3
    assert fingerprint(sparse) == fingerprint(two_classes(x=data.x.relu().to_sparse(layout=getattr(torch, layout))))


@pytest.mark.parametrize("name", [*MUTATED, "edge_attr"])
def test_a_checkpoint_is_not_resumed_with_other_data(name, tmp_path):
    mutated = MUTATED.get(name) or two_classes(edge_attr=torch.zeros(two_classes().num_edges, 2))
    with Checkpoint(tmp_path / "run", every=0) as checkpoint:
        Run(two_classes(), checkpoint=checkpoint).begin({"method": "gst", "sparsity": 0.5})
        checkpoint.commit()
    with Checkpoint(tmp_path / "run", every=0) as checkpoint, pytest.raises(InputError, match="other data"):
        Run(mutated, checkpoint=checkpoint).begin({"method": "gst", "sparsity": 0.5})


def test_a_version_of_a_method_or_a_training_path_is_part_of_every_key(tmp_path, monkeypatch):
    kinds = {"gst": {"anchor", "topology", "dense-model"}, "deploy": {"dense-model", "path"}, "ugs": {"ugs-path"}}
    for name, expected in kinds.items():
        cache = Cache(tmp_path / name)
        run(two_classes(), cache, name)
        first = {path.name for path in cache.folder.iterdir()}
        monkeypatch.setitem(BACKBONES, "gcn", BACKBONES["gcn"] + 1)
        run(two_classes(), cache, name)
        second = {path.name for path in cache.folder.iterdir()} - first
        assert expected <= {path.rpartition("-")[0] for path in second}
