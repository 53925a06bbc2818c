"""Bad calls, from a shell and from Python: one line each; and calls inside modes of torch, which change nothing."""

import os
import subprocess
import sys

import networkx
import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.nn.models import GCN

import gst
from graphs import random_graph
from gst.base.errors import InputError
from gst.train.models import find_device

SMALL = ["run", "--dataset", "synthetic:nodes=30,degree=4,classes=2", "--sparsity", 0.5, "--method", "gst"]
QUICK = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 2, "cache": False}
FLOATS = [
    "lr",
    "weight-decay",
    "decay",
    "dropout",
    "swap-ratio",
    "semantic-weight",
    "topology-weight",
    "mask-deviation",
]


def refused(call, *words):
    """The one line."""
    code, out, err = call(*words)
    assert code == 2 and out == "" and err.startswith("gst: ") and err.count("\n") == 1 and len(err) <= 306, err
    return err


@pytest.mark.parametrize("option", FLOATS)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e308", "-1e308"])
def test_settings_are_finite_and_sensible(call, option, value):
    assert f"{option.replace('-', '_')} = " in refused(call, *SMALL, f"--{option}={value}")


@pytest.mark.parametrize(
    "option", ["anchor-epochs", "sparse-epochs", "hidden", "layers", "heads", "fanout", "clusters"]
)
def test_counts_have_an_end(call, option):
    assert f"{option.replace('-', '_')} = 9999" in refused(call, *SMALL, f"--{option}", "9" * 30)


@pytest.mark.parametrize("option", ["--prune-ratio=nan", "--l1=inf", "--l1=1e308", "--round-epochs=" + "9" * 30])
def test_arguments_of_a_method_are_finite_and_sensible(call, option):
    assert "UGS: " in refused(call, *SMALL, "--method", "ugs", option)


def test_seconds_between_states_are_finite(call, tmp_path):
    for value in ("nan", "inf", "-1"):
        assert "every" in refused(call, *SMALL, "--checkpoint-every", value, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([*SMALL, "--out", "x" * 300], "File name too long"),
        ([*SMALL, "--out", b"out\xff".decode(errors="surrogateescape")], "is not UTF-8"),
        (["inspect", b"\xff".decode(errors="surrogateescape")], "is not UTF-8"),
        (["run", "--dataset", "x" * 5000, "--sparsity", 0.5], "unknown data set 'xxxx"),
        (["run", "--dataset", "/" + "x" * 5000, "--sparsity", 0.5], "/xxxx"),
        (["inspect", "x" * 300], "File name too long"),
        (["run", "--resume", "x" * 300], "File name too long"),
        (["run", "--dataset", "synthetic:nodes=1e308", "--sparsity", 0.5], "nodes=1e308 is too large"),
        (["run", "--dataset", "synthetic:degree=1e308", "--sparsity", 0.5], "degree=1e308 is too large"),
        (["run", "--dataset", "synthetic-arxiv:scale=1e308", "--sparsity", 0.5], "scale=1e308 is too large"),
        ([*SMALL, "--data-root", "~no-such-user/x"], "there is no such user"),
        ([*SMALL, "--device", "meta"], "device 'meta' is not available here: take cpu"),
        ([*SMALL, "--device", "x" * 5000], "is not available here"),
        ([*SMALL, "--method", "gst", "--eigenpairs", "²"], "eigenpairs = '²'"),
        ([*SMALL, "--method", "gst", "--eigenpairs", "9" * 5000], "eigenpairs = "),
        ([*SMALL, "--split", "²"], "unknown split '²'"),
        ([*SMALL, "--split", "9" * 5000], "unknown split '999"),
        (["run", "--method", "x" * 5000, "--dataset", "digits", "--sparsity", 0.5], "unknown method 'xxx"),
        (["search", "--dataset", "digits", "--seeds", 10**12], "--seeds"),
        (["bench", "rq1", "--seeds", 10**12], "--seeds"),
        (["x" * 5000], "unknown command"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else None,
)
def test_bad_words_get_one_line(call, tmp_path, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    assert reason in refused(call, *words)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["meta", "mkldnn", "xla", "vulkan", "gpu", "", "cpu:-1"])
@pytest.mark.filterwarnings("ignore:.*no longer used as device type")
def test_devices_that_cannot_compute_are_refused(name):
    with pytest.raises(InputError, match="is not available here"):
        find_device(name)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"WORLD_SIZE": "abc"}, "WORLD_SIZE is 'abc'"),
        ({"WORLD_SIZE": "-1"}, "WORLD_SIZE is '-1'"),
        ({"WORLD_SIZE": "9" * 5000}, "WORLD_SIZE is '999"),
        ({"WORLD_SIZE": "2"}, "RANK is not set: start with torchrun"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "MASTER_ADDR is not set"),
        ({"WORLD_SIZE": "2", "RANK": "2", "MASTER_ADDR": "x", "MASTER_PORT": "1"}, "RANK is '2'"),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "x", "MASTER_PORT": "http"}, "MASTER_PORT is 'http'"),
    ],
)
def test_an_environment_that_describes_no_world_is_refused(call, monkeypatch, given, reason):
    for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert reason in refused(call, *SMALL)


def test_no_words_show_the_help(call):
    code, out, err = call()
    assert code == 0 and "Usage" in out and "Commands" in out and err == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_a_full_disk_is_one_line():
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [sys.executable, "-m", "gst", "methods", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2 and done.stderr == "gst: input or output failed: No space left on device\n"


def test_a_pipe_without_a_reader_is_left_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "gst", "methods"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert done.returncode == 141 and done.stderr == ""


NO_DATA = [None, "cora", [1, 2], 3, networkx.path_graph(3), np.zeros(3), {"x": 1}, object()]


def test_a_typed_graph_without_relations_is_named():
    for call in (gst.SCAN(sparsity=0.5), gst.SCAN(sparsity=0.5).fit, gst.Deploy(GCN(3, 4, 2), sparsity=0.5).fit):
        with pytest.raises(InputError, match="typed graph has no relation"):
            call(HeteroData())


@pytest.mark.parametrize("data", NO_DATA, ids=lambda data: type(data).__name__)
def test_what_is_no_graph_is_named(data):
    fitted = gst.SCAN(sparsity=0.5, **QUICK).fit(random_graph())
    calls = [
        lambda: gst.sparsify(data, sparsity=0.5),
        lambda: gst.search(data),
        lambda: gst.GST(sparsity=0.5).fit(data),
        lambda: fitted.transform(data),
        lambda: gst.SCAN(sparsity=0.5)(data),
        lambda: gst.SCAN(sparsity=0.5).score(data),
        lambda: gst.EdgeSet.from_data(data),
    ]
    for call in calls:
        with pytest.raises(
            InputError, match=rf"data is a {type(data).__name__}: a torch_geometric\.data\.Data is needed"
        ):
            call()


@pytest.mark.parametrize(
    "model", ["gcn", 3, GCN, [], torch.zeros(3), lambda x: x], ids=lambda model: type(model).__name__
)
def test_what_is_no_model_is_named(model):
    data = random_graph()
    calls = [
        lambda: gst.GST(model, sparsity=0.5),
        lambda: gst.UGS(model, sparsity=0.5),
        lambda: gst.sparsify(data, model=model, sparsity=0.5),
        lambda: gst.search(data, model=model),
    ]
    for call in calls:
        with pytest.raises(InputError, match=r"model is .*: an nn\.Module is needed"):
            call()


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda data: gst.sparsify(data, sparsity="0.5"), "sparsity is a str"),
        (lambda data: gst.sparsify(data, sparsity=True), "sparsity is a bool"),
        (lambda data: gst.sparsify(data, sparsity=0.5j), "sparsity is a complex"),
        (lambda data: gst.sparsify(data, sparsity=float("nan")), "sparsity nan is outside"),
        (lambda data: gst.sparsify(data, keep=1.5), "keep is a float"),
        (lambda data: gst.sparsify(data, keep=True), "keep is a bool"),
        (lambda data: gst.sparsify(data, keep="3"), "keep is a str"),
        (lambda data: gst.SCAN(sparsity="0.5"), "sparsity is a str"),
        (lambda data: gst.GST(keep=1.5), "keep is a float"),
        (lambda data: gst.sparsify(data, None, sparsity=0.5), "method is a NoneType"),
        (lambda data: gst.sparsify(data, sparsity=0.5, backbone=3), "backbone is a int"),
        (lambda data: gst.sparsify(data, sparsity=0.5, lr=float("inf")), "lr = inf"),
        (lambda data: gst.sparsify(data, sparsity=0.5, seed="one"), "seed = 'one'"),
        (lambda data: gst.sparsify(data, sparsity=0.5, checkpoint=3), "checkpoint is a int: a path is needed"),
        (lambda data: gst.sparsify(data, sparsity=0.5, callbacks=3), "callbacks holds a int"),
        (lambda data: gst.Random(sparsity=0.5, seed="one"), "seed = 'one'"),
        (lambda data: gst.Random(sparsity=0.5, seed=-1), "seed = -1"),
        (lambda data: gst.UGS(sparsity=0.5, prune_ratio="0.1"), "prune_ratio is a str"),
        (lambda data: gst.UGS(sparsity=0.5, round_epochs=1.5), "round_epochs is a float"),
        (lambda data: gst.load(None), "dataset is a NoneType"),
        (lambda data: gst.load(3), "dataset is a int"),
        (lambda data: gst.from_files(None, "x.npy", "y.csv"), "edges is a NoneType: a path is needed"),
        (lambda data: gst.Result.load(None), "folder is a NoneType: a path is needed"),
        (lambda data: gst.load_compiled(None), "path is a NoneType: a path is needed"),
    ],
)
def test_arguments_of_another_type_are_named(call, reason):
    with pytest.raises(InputError) as error:
        call(random_graph())
    assert reason in str(error.value) and len(str(error.value)) <= 300


MODES = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "device": lambda: torch.device("meta"),
}


def outcomes(data, model):
    """Masks, scores and tests of everything that trains or scores, and gradients in what comes of it."""
    quick = {**QUICK, "sparsity": 0.5}
    found = [
        gst.sparsify(data, **quick),
        gst.sparsify(data, "gst", dense=True, **quick),
        gst.sparsify(data, "deploy", model=model, **quick),
        gst.sparsify(data, "gst", model=model, **quick),
        gst.sparsify(data, "effective-resistance", **quick),
        gst.search(data, seeds=1, step=0.5, precision=0.5, **QUICK).result,
    ]
    fitted = gst.UGS(model, sparsity=0.5, round_epochs=1, **QUICK).fit(data)
    masks = [(result.edge_mask, result.scores, result.metrics["test"]) for result in found]
    weighted = gst.DSpar(sparsity=0.5, weights=True)(data)
    return [
        *masks,
        (fitted.result_.edge_mask, fitted.result_.scores, fitted.found_.val),
        (weighted.edge_index, weighted.edge_weight, 0),
    ]


def same(found, wanted):
    return all(
        torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) and a[2] == b[2] for a, b in zip(found, wanted, strict=True)
    )


@pytest.fixture(scope="module")
def expected():
    torch.manual_seed(0)
    data, model = random_graph(nodes=40, edges=120), GCN(5, 8, 2, 3)
    return data, model, outcomes(data, model)


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_the_caller_change_nothing(expected, mode):
    data, model, wanted = expected
    with MODES[mode]():
        found = outcomes(data, model)
    assert same(found, wanted)


def test_data_and_model_made_in_inference_mode_can_be_trained_on(expected):
    data, model, wanted = expected
    with torch.inference_mode():
        made = data.clone()
        twin = GCN(5, 8, 2, 3)
        twin.load_state_dict(model.state_dict())
        assert made.x.is_inference() and same(outcomes(made, twin), wanted)
    assert same(outcomes(made, twin), wanted)
    assert made.x.is_inference()  # what the caller holds is as it was


def test_what_is_loaded_in_inference_mode_can_be_trained_on(expected, tmp_path):
    data, _, _ = expected
    gst.sparsify(data, sparsity=0.5, **QUICK).save(tmp_path / "run")
    with torch.inference_mode():
        result, loaded = gst.Result.load(tmp_path / "run"), gst.load("synthetic:nodes=30,degree=4,classes=2")
    result.model(result.graph.x, result.graph.edge_index).sum().backward()
    assert all(weight.grad is not None for weight in result.model.parameters()) and not loaded.x.is_inference()


def test_a_default_of_64_bits_changes_nothing(expected):
    data, model, wanted = expected
    torch.set_default_dtype(torch.float64)
    try:
        found = outcomes(data, model)
    finally:
        torch.set_default_dtype(torch.float32)
    assert same(found[:-1], wanted[:-1])
