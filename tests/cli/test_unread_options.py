"""An option that would change nothing is refused, in one line, before any work."""

import inspect
import json

import numpy as np
import pytest
import torch

import gst
from graphs import random_graph
from gst.api.sparsify import make_method
from gst.base.errors import InputError
from gst.cli.demo import NEXT
from gst.cli.main import load_commands
from gst.cli.options import check_effect, method_arguments, method_options
from gst.methods import METHODS

PLAIN = [
    "--hidden",
    "8",
    "--anchor-epochs",
    "2",
    "--sparse-epochs",
    "2",
    "--no-dense",
    "--no-cache",
    "--quiet",
    "--json",
]


def one_way():
    """A graph whose pairs are listed once, in one direction."""
    data = random_graph(nodes=40, edges=120)
    data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    return data


@pytest.fixture(params=["folder", "pt"])
def own(request, tmp_path):
    data = one_way()
    if request.param == "pt":
        torch.save(data.to_dict(), tmp_path / "own.pt")
        return tmp_path / "own.pt"
    place = tmp_path / "own"
    place.mkdir()
    np.save(place / "edges.npy", data.edge_index.numpy())
    np.save(place / "features.npy", data.x.numpy())
    np.save(place / "labels.npy", data.y.numpy())
    np.savez(place / "split.npz", **{name: data[f"{name}_mask"].numpy() for name in ("train", "val", "test")})
    return place


def test_undirected_holds_for_folders_and_saved_graphs(call, own, tmp_path):
    pairs = one_way().edge_index.shape[1]
    words = ["run", "--dataset", own, "--keep", 20, *PLAIN]
    directed, undirected = (
        json.loads(call(*words, *more)[1]) for more in ([], ["--undirected", "--out", tmp_path / "r"])
    )
    assert directed["directed"] and directed["edges_total"] == pairs
    assert not undirected["directed"] and undirected["edges_total"] == 2 * pairs
    assert gst.Result.load(tmp_path / "r").edge_mask.numel() == 2 * pairs
    for command in (["latency", "--repeats", 2], ["drift", "--epochs", 1, "--share", 0.1]):
        name, *rest = command
        code, out, err = call(name, tmp_path / "r", "--dataset", own, "--undirected", *rest, "--json")
        assert code == 0 and json.loads(out)["sparsity"] == undirected["sparsity"], err
        assert call(name, tmp_path / "r", "--dataset", own, *rest)[0] == 2
    settings = [
        "--method",
        "random",
        "--hidden",
        8,
        "--anchor-epochs",
        2,
        "--sparse-epochs",
        2,
        "--no-cache",
        "--quiet",
    ]
    few = ["--seeds", 1, "--step", 0.5, "--precision", 0.5, "--json"]
    found = json.loads(call("search", "--dataset", own, "--undirected", *settings, *few)[1])
    assert not found["directed"] and found["edges_total"] == pairs


@pytest.fixture
def finished(call, tmp_path):
    torch.save(random_graph(nodes=40, edges=120).to_dict(), tmp_path / "own.pt")
    assert call("run", "--dataset", tmp_path / "own.pt", "--keep", 20, "--out", tmp_path / "r", *PLAIN)[0] == 0
    return tmp_path / "r"


DIGITS = ["--dataset", "digits"]
RUN = ["run", *DIGITS, "--sparsity", "0.5"]
REFUSED = {
    "--undirected is for data of your own: digits has its own direction": [
        [*RUN, "--undirected"],
        ["search", *DIGITS, "--undirected"],
        ["latency", "RUN", *DIGITS, "--undirected"],
        ["drift", "RUN", *DIGITS, "--undirected"],
    ],
    "--features needs --edges": [
        [*RUN, "--features", "x.npy"],
        ["run", "--features", "x.npy", "--sparsity", "0.5"],
        ["search", *DIGITS, "--features", "x.npy"],
        ["latency", "RUN", "--features", "x.npy"],
        ["drift", "RUN", *DIGITS, "--features", "x.npy"],
    ],
    "--labels needs --edges": [[*RUN, "--labels", "y.npy"]],
    "give either sparsity=": [[*RUN, "--keep", "5"]],
    "split": [[*RUN, "--split", "nowhere.npy"], [*RUN, "--split", "public"], ["drift", "RUN", *DIGITS, "--split", "1"]],
    "--turns would have no effect in this run: it is for --method retrain": [[*RUN, "--turns", "3"]],
    "--momentum would have no effect in this run: it is for --method snfs": [
        [*RUN, "--method", "ugs", "--momentum", "0.5"]
    ],
    "--interval would have no effect": [
        [*RUN, "--method", "random", "--interval", "5"],
        [*RUN, "--method", "deploy", "--interval", "5"],
        ["search", *DIGITS, "--method", "scan", "--interval", "5"],
    ],
    "--heads would have no effect in this run: it is for --backbone gat": [[*RUN, "--heads", "4"]],
    "--clusters would have no effect in this run: it is for --batch clusters": [[*RUN, "--clusters", "4"]],
    "--fanout would have no effect in this run: it is for --batch neighbors": [
        [*RUN, "--batch", "clusters", "--fanout", "4"]
    ],
    "--checkpoint-every needs --out": [
        [*RUN, "--checkpoint-every", "5"],
        ["search", *DIGITS, "--checkpoint-every", "5"],
    ],
    "--precision needs --layout": [["export", "RUN", "--to", "csv", "--precision", "bfloat16"]],
}


@pytest.mark.parametrize("line", REFUSED)
def test_options_without_effect_are_refused_in_one_line(call, finished, line):
    before = sorted(finished.iterdir())
    for words in REFUSED[line]:
        code, out, err = call(*(finished if word == "RUN" else word for word in words))
        assert code == 2 and out == "", words
        assert line in err and err.startswith("gst: ") and err.count("\n") == 1 and len(err) < 310, err
    assert sorted(finished.iterdir()) == before


def check(method, backbone, given, data=None):
    """What ``gst run`` does with options before it begins."""
    arguments = method_arguments(method, given)
    estimator = make_method(method, backbone=backbone, sparsity=0.5, **arguments)
    check_effect(random_graph() if data is None else data, estimator, arguments)


READ = [
    ("gst", "gcn", {"interval": 5, "matrix": "laplacian", "masker_hidden": 8}),
    ("gst", "gcn", {"semantic": False, "eigenpairs": "5", "matrix": "adjacency"}),
    ("retrain", "gat", {"heads": 2, "turns": 2, "mask_deviation": 0.02}),
    ("RigL", "gcn", {"interval": 5, "swap_ratio": 0.2, "decay": 1.0, "masker_hidden": 8}),
    ("ugs", "gcn", {"batch": "neighbors", "fanout": 3, "loader": "gst"}),
    ("wd-glt", "gcn", {"sample_size": 3, "prune_ratio": 0.2}),
    ("effective-resistance", "gcn", {"projections": "none", "weights": True}),
]


@pytest.mark.parametrize(("method", "backbone", "given"), READ)
def test_options_that_are_read_are_taken(method, backbone, given):
    check(method, backbone, given)


@pytest.mark.parametrize(
    ("method", "given", "line"),
    [
        ("snip", {"interval": 5}, "--interval"),
        ("rigl", {"matrix": "laplacian"}, "--matrix"),
        ("gst", {"topology": False, "topology_weight": 2.0}, "--topology-weight"),
        ("gst", {"tune": False, "swap_ratio": 0.2}, "--swap-ratio"),
        ("deploy", {"masker_hidden": 8}, "--masker-hidden"),
        ("gst", {"loader": "gst"}, "--loader"),
        ("ugs", {"turns": 2}, "--turns"),
    ],
)
def test_more_options_without_effect(method, given, line):
    with pytest.raises(InputError, match=f"{line} would have no effect"):
        check(method, "gcn", given)


@pytest.mark.parametrize(("backbone", "given"), [("sage", {"residual": True}), ("gcn", {"norm": "layer", "layers": 1})])
def test_parts_that_a_network_has_no_place_for(backbone, given):
    with pytest.raises(InputError, match="would have no effect"):
        check("gst", backbone, given)


def test_what_a_data_set_brings_along_counts():
    data = gst.load("synthetic-products:scale=0.0002")
    check("gst", "cluster-gcn", {"clusters": 50}, data)
    with pytest.raises(InputError, match="--fanout would have no effect"):
        check("gst", "cluster-gcn", {"fanout": 5}, data)


def test_every_argument_of_every_method_is_an_option_with_a_help_text():
    for name, method in METHODS.items():
        for argument, parameter in inspect.signature(method).parameters.items():
            elsewhere = ("model", "head", "output", "cache", "callbacks", "checkpoint", "sparsity", "keep", "backbone")
            if argument not in elsewhere:
                kind, text = method_options()[argument]
                assert kind in (int, float, bool, str) and len(text.split(" [")[0]) > 3, (name, argument, parameter)


def test_help_texts_name_the_methods_of_an_option_and_hold_no_markup():
    texts = {name: text for name, (_, text) in method_options().items()}
    assert texts["turns"].startswith("(retrain) ") and texts["by"].startswith("(deploy) ")
    assert texts["interval"].startswith("(gst, mest, rigl, set, snfs) ")  # snip has it, and refuses it
    assert texts["lr"].startswith("learning rate")
    for name, text in texts.items():
        assert "`" not in text and ":func:" not in text and "[None]" not in text and "[True]" not in text, (name, text)
        assert not text.endswith(" [False]"), (name, text)


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_of_a_help_is_longer_than_the_terminal(columns):
    for name, command in load_commands().items():
        context = command.make_context(name, [], resilient_parsing=True, terminal_width=columns)
        assert max(map(len, command.get_help(context).splitlines())) <= columns, name


def test_what_the_demo_says_next_fits_a_terminal():
    assert max(map(len, NEXT.splitlines())) <= 80
