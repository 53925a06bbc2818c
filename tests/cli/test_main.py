"""The command line as a person uses it: real processes for exit codes and streams, in-process for the rest."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import gst
from graphs import random_graph
from gst.cli import console
from gst.cli import run as run_command
from gst.cli.demo import DEMO, NEXT, reads_line
from gst.cli.options import method_options

PLAIN = ["--hidden", "8", "--anchor-epochs", "3", "--sparse-epochs", "4"]
QUICK = [*PLAIN, "--method", "gst", "--interval", "2"]


@pytest.fixture
def own(tmp_path):
    """A user's own graph as a .pt file."""
    torch.save(random_graph(nodes=40, edges=120), tmp_path / "own.pt")
    return tmp_path / "own.pt"


def test_run_json_is_one_object_with_all_that_is_promised(call, own, tmp_path):
    words = [
        "run",
        "--dataset",
        own,
        "--sparsity",
        0.5,
        "--out",
        tmp_path / "r",
        "--retrain",
        "--json",
        "--quiet",
        *QUICK,
    ]
    code, out, err = call(*words)
    assert code == 0 and err.count("\n") <= 1  # at most the line about agreement
    result = json.loads(out)
    assert result["edges_kept"] == result["edges_total"] - round(0.5 * result["edges_total"])
    names = "dataset method backbone seed sparsity edges_total edges_kept val test retrain_val retrain_test dense_val"
    assert set(names.split()) | {"dense_test", "agreement", "metric", "seconds", "out"} <= result.keys()
    assert result["out"] == str(tmp_path / "r") and result["settings"]["hidden"] == 8
    assert gst.Result.load(tmp_path / "r").metrics["test"] == result["test"]
    again = json.loads(call(*words)[1])
    for key in ("val", "test", "retrain_test", "dense_test"):
        assert again[key] == result[key]


def test_run_prints_a_readable_table_and_progress_goes_to_stderr(call, own, tmp_path):
    code, out, err = call("run", "--dataset", own, "--keep", 20, "--out", tmp_path / "r", "--no-cache", *QUICK)
    assert code == 0
    assert (
        "sparse graph, returned model" in out
        and "kept" in out
        and "share removed" in out
        and "a pass over the whole graph takes" in out
    )
    assert "anchor" in err and "sparse" in err and "anchor" not in out.split("seconds")[0]


def test_inspect_and_export(call, own, tmp_path):
    call("run", "--dataset", own, "--sparsity", 0.5, "--out", tmp_path / "r", "--quiet", "--no-dense", *QUICK)
    code, out, _ = call("inspect", tmp_path / "r")
    assert code == 0 and "isolated nodes" in out and "homophily" in out
    facts = json.loads(call("inspect", tmp_path / "r", "--json")[1])
    assert facts["structure"]["pairs"] == [facts["edges_total"], facts["edges_kept"]]
    code, out, _ = call("export", tmp_path / "r", "--to", "csv")
    assert code == 0 and (tmp_path / "r" / "edges.csv").exists()
    code, out, _ = call("export", tmp_path / "r", "--to", "parquet", "-o", tmp_path / "e.parquet", "--json")
    assert json.loads(out)["out"] == str(tmp_path / "e.parquet")


def test_lists(call):
    assert {row["name"] for row in json.loads(call("methods", "--json")[1])["methods"]} >= {"gst", "random"}
    names = {row["name"] for row in json.loads(call("datasets", "--json")[1])["datasets"]}
    assert {"digits", "Cora", "Squirrel", "synthetic"} <= names
    assert "  PyG Wikipedia" in call("datasets")[1]  # names and sources are not folded at 80 columns
    assert "Cora" in call("datasets")[1] and "Zhang" in call("methods")[1]


def test_every_setting_is_an_option(call):
    code, out, _ = call("run", "--help")
    assert code == 0
    for name in method_options():
        assert f"--{name.replace('_', '-')}" in out, name


def test_switches_and_eigenpairs_reach_the_settings(call, own):
    words = ["run", "--dataset", own, "--sparsity", 0.5, "--json", "--quiet", "--no-dense", *QUICK]
    more = ["--no-semantic", "--eigenpairs", 5, "--matrix", "adjacency"]
    settings = json.loads(call(*words, *more)[1])["settings"]
    assert (settings["semantic"], settings["eigenpairs"], settings["matrix"]) == (False, 5, "adjacency")


def test_arguments_of_a_method(call, own):
    words = ["run", "--dataset", own, "--json", "--quiet", "--no-dense", *PLAIN]
    ugs = ["--method", "ugs", "--prune-ratio", 0.2, "--round-epochs", 1]
    options = json.loads(call(*words, "--sparsity", 0.3, *ugs)[1])["options"]
    assert options == {"prune_ratio": 0.2, "round_epochs": 1, "l1": 1e-6, "weight_prune_ratio": 0.0}
    methods = {row["name"]: row["options"] for row in json.loads(call("methods", "--json")[1])["methods"]}
    assert methods["effective-resistance"] == {"projections": 128, "sample": True, "weights": False}
    assert (
        "prune_ratio" in methods["wd-glt"]
        and methods["gst"] == {}
        and methods["deploy"].items() >= {"by": "arcs", "compensate": False}.items()
    )
    resistance = ["--method", "effective-resistance", "--projections", "none", "--weights"]
    code, out, err = call(*words, "--keep", 20, *resistance)
    assert code == 0, err
    assert json.loads(out)["options"] == {"projections": None, "sample": True, "weights": True}


def test_the_default_method_is_named(call, own):
    code, out, _ = call("run", "--dataset", own, "--sparsity", 0.5, "--no-dense", "--quiet", *PLAIN)
    assert code == 0 and "by the default method, deploy" in out


def test_weights_of_the_draw_are_trained_with_and_kept():
    data = random_graph(nodes=40, edges=120)
    quick = {"hidden": 8, "anchor_epochs": 2, "sparse_epochs": 2, "cache": False, "sparsity": 0.5}
    plain, weighted = (gst.sparsify(data, "dspar", weights=weights, **quick) for weights in (False, True))
    assert torch.equal(plain.edge_mask, weighted.edge_mask) and "edge_weight" not in plain.graph
    assert bool((weighted.graph.edge_weight > 1).any())
    weights = zip(plain.model.parameters(), weighted.model.parameters(), strict=True)
    assert not all(torch.equal(a, b) for a, b in weights)


def test_own_files(call, tmp_path):
    data = random_graph(nodes=40, edges=120)
    np.savetxt(tmp_path / "edges.txt", data.edge_index.t().numpy(), fmt="%d")
    np.save(tmp_path / "x.npy", data.x.numpy())
    np.save(tmp_path / "y.npy", data.y.numpy())
    files = ["--edges", tmp_path / "edges.txt", "--features", tmp_path / "x.npy", "--labels", tmp_path / "y.npy"]
    code, out, err = call(
        "run", *files, "--split", "random", "--sparsity", 0.5, "--json", "--quiet", "--no-dense", *QUICK
    )
    assert code == 0, err
    assert json.loads(out)["edges_total"] == data.edge_index.shape[1] // 2
    code, _, err = call("run", *files, "--sparsity", 0.5, *QUICK)
    assert code == 2 and "split" in err


def saved(tmp_path, **changes):
    data = random_graph(nodes=40, edges=120)
    for name, value in changes.items():
        data[name] = value
    torch.save(data, tmp_path / "bad.pt")
    return tmp_path / "bad.pt"


def nan_features():
    x = torch.ones(40, 5)
    x[7, 0] = torch.nan
    return x


DIGITS = ["--dataset", "digits", "--sparsity", 0.5]
BAD = {
    "x is NaN or infinite at node 7": lambda t: ["--dataset", saved(t, x=nan_features())],
    "nodes go from 0 to 39": lambda t: ["--dataset", saved(t, edge_index=torch.tensor([[0, 50], [1, 2]]))],
    "edge_index has shape (3, 4)": lambda t: ["--dataset", saved(t, edge_index=torch.zeros(3, 4, dtype=torch.long))],
    "the graph is empty": lambda t: ["--dataset", saved(t, edge_index=torch.zeros(2, 0, dtype=torch.long))],
    "one class": lambda t: ["--dataset", saved(t, y=torch.zeros(40, dtype=torch.long))],
    "outside [0, 1)": lambda t: ["--dataset", "digits", "--sparsity", "1.0"],
    "either sparsity= (share of edges to remove) or keep=": lambda t: ["--dataset", "digits"],
    "unknown data set 'corra': did you mean 'Cora'?": lambda t: ["--dataset", "corra"],
    "unknown backbone 'mlp'": lambda t: ["--dataset", "digits", "--sparsity", 0.5, "--backbone", "mlp"],
    "unknown method 'magic'": lambda t: ["--dataset", "digits", "--sparsity", 0.5, "--method", "magic"],
    "lr = -1.0": lambda t: ["--dataset", "digits", "--sparsity", 0.5, "--lr", "-1"],
    "matrix = 'hessian'": lambda t: [*DIGITS, "--method", "gst", "--matrix", "hessian"],
    "eigenpairs = 'many'": lambda t: [*DIGITS, "--method", "gst", "--eigenpairs", "many"],
    "Invalid value for '--l1'": lambda t: [*DIGITS, "--method", "ugs", "--l1", "much"],
    "UGS: l1 = -1.0: a number from 0 to 1e6 is needed": lambda t: [*DIGITS, "--method", "ugs", "--l1", "-1"],
    "--l1 would have no effect in this run: it is for --method ugs": lambda t: [*DIGITS, "--l1", "1"],
    "--projections many: ": lambda t: [*DIGITS, "--method", "effective-resistance", "--projections", "many"],
    "give --dataset NAME": lambda t: ["--sparsity", 0.5],
    "nowhere.pt": lambda t: ["--dataset", t / "nowhere.pt"],
    "No such option: --sparsty": lambda t: ["--dataset", "digits", "--sparsty", 0.5],
    "cannot write": lambda t: ["--dataset", "digits", "--sparsity", 0.5, "--out", "/proc/gst"],
}


@pytest.mark.parametrize("words", BAD)
def test_bad_input_gets_one_line_and_exit_code_2(call, tmp_path, words):
    arguments = BAD[words](tmp_path)
    if "--sparsity" not in arguments and "sparsity" not in words:
        arguments += ["--sparsity", 0.5]
    code, out, err = call("run", *arguments, "--quiet")
    assert code == 2 and out == ""
    assert words in err and err.startswith("gst: ") and err.count("\n") == 1


def test_truncated_file(call, own):
    own.write_bytes(own.read_bytes()[:200])
    code, _, err = call("run", "--dataset", own, "--sparsity", 0.5)
    assert code == 2 and "own.pt" in err and err.count("\n") == 1


def test_no_labels_no_split(call, tmp_path):
    for missing, words in (("y", "label"), ("train_mask", "split")):
        data = random_graph(nodes=40, edges=120)
        del data[missing]
        torch.save(data, tmp_path / "bad.pt")
        code, _, err = call("run", "--dataset", tmp_path / "bad.pt", "--sparsity", 0.5)
        assert code == 2 and words in err and err.count("\n") == 1


def test_hostile_pickle_is_refused(call, tmp_path):
    class Gadget:
        def __reduce__(self):
            return (print, ("owned",))

    torch.save({"x": Gadget()}, tmp_path / "evil.pt")
    code, out, err = call("run", "--dataset", tmp_path / "evil.pt", "--sparsity", 0.5)
    assert code == 2 and "owned" not in out and err.count("\n") == 1


def test_inspect_of_no_run(call, tmp_path):
    code, _, err = call("inspect", tmp_path)
    assert code == 2 and "is not a run folder" in err and err.count("\n") == 1


def test_interrupt_is_130(call, own, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "make_method", interrupt)
    code, _, err = call("run", "--dataset", own, "--sparsity", 0.5)
    assert code == 130 and err.endswith("gst: interrupted\n")


def test_as_a_process():
    """``python -m gst`` is ``gst``: streams, exit codes, no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "gst", "methods", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["methods"] and done.stderr == ""
    done = subprocess.run(
        [sys.executable, "-m", "gst", "inspect", "nowhere"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr


def test_demo(call):
    code, out, _ = call("demo", "--quiet", "--json")
    result = json.loads(out)
    assert code == 0 and result.keys() == {"deploy", "gst", "random"}
    for metrics in result.values():
        total = {"pairs": 12_535, "arcs": 25_070}[metrics["by"]]
        assert metrics["edges_kept"] == total - round(0.7 * total)
        assert {"dense_test", "test", "retrain_test"} <= metrics.keys()
    assert result["deploy"]["test"] > 90 and result["gst"]["test"] > 88
    reads = {name: answers["reads"]["mean"] for name, answers in result["deploy"]["answers"].items()}
    assert reads["dense"] > 1.5 * reads["sparse"] >= 1.5


def test_data_helper_type():
    assert isinstance(gst.load("digits"), Data)


def test_arcs_or_pairs_on_the_command_line(call, own, tmp_path):
    words = ["run", "--dataset", own, "--sparsity", 0.5, "--quiet", "--no-cache", "--out"]
    for by in ("arcs", "pairs"):
        code, out, err = call(*words, tmp_path / by, "--by", by, "--json", *PLAIN)
        metrics = json.loads(out)
        assert code == 0 and (metrics["by"], metrics["options"]["by"]) == (by, by), err
        total = metrics["edges_total"]
        assert metrics["edges_kept"] == total - round(0.5 * total)
        code, out, err = call("inspect", tmp_path / by)
        assert code == 0 and f"of {total:,} {by}" in out and by in out, err
    code, _, err = call(*words, tmp_path / "c", "--by", "edges", *PLAIN)
    assert code == 2 and "by = 'edges': choose from arcs, pairs" in err
    code, _, err = call(*words, tmp_path / "c", "--method", "random", "--by", "arcs", *PLAIN)
    assert code == 2 and "--method deploy" in err


def test_the_last_screen_of_the_demo_says_what_sparsity_is_for_and_where_to_go(capsys, monkeypatch):
    monkeypatch.setattr(console.out, "width", 80)
    metrics = {"dataset": "digits", "backbone": "gcn", "sparsity": 0.7, "seed": 0, "metric": "accuracy", "by": "pairs"}
    runs = {name: {**metrics, "edges_total": 12_535, "edges_kept": 3_760, "test": 90.0} for name in DEMO}
    console.comparison(runs)
    answers = {"dense": {"reads": {"mean": 120.4, "p99": 300}}, "sparse": {"reads": {"mean": 11.6, "p99": 40}}}
    console.say(reads_line(answers), *NEXT.splitlines())
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if line[:3] in ("den", "gst", "dep", "ran")][:4] == [
        "dense",
        "gst",
        "deploy",
        "random",
    ]
    assert "reads 11.6 nodes by deploy's graph, 120.4 by the dense one" in out
    assert "gst.Deploy(my_trained_model" in out and "gst search" in out
