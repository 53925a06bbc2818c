"""Typed graphs on the command line."""

import json

import pytest
import torch
from typer.testing import CliRunner

import gst
from gst.cli.main import app
from typed_graphs import library

QUICK = ["--hidden", "8", "--anchor-epochs", "2", "--sparse-epochs", "3", "--quiet", "--no-cache"]


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def saved(tmp_path):
    torch.save(library(), tmp_path / "graph.pt")
    return tmp_path / "graph.pt"


def test_run_inspect_and_export(saved, tmp_path):
    ran = call("run", "--dataset", saved, "--sparsity", 0.5, *QUICK, "--out", tmp_path / "run")
    assert ran.exit_code == 0, ran.output
    assert "author__writes__paper" in call("inspect", tmp_path / "run").output
    total = gst.Result.load(tmp_path / "run").metrics
    for to, name in {"pyg": "graph.pt", "csv": "edges.csv", "networkx": "graph.json"}.items():
        assert call("export", tmp_path / "run", "--to", to).exit_code == 0
        assert (tmp_path / "run" / name).stat().st_size
    assert gst.load(tmp_path / "run" / "graph.pt").metadata() == library().metadata()
    lines = (tmp_path / "run" / "edges.csv").read_text().splitlines()
    assert lines[0].startswith("source_type,relation,target_type,source,target") and total["edges_kept"]
    refused = call("export", tmp_path / "run", "--to", "scipy")
    assert isinstance(refused.exception, gst.InputError) and "holds no typed graphs" in str(refused.exception)


def test_shares_by_relation_and_protected_relations(saved):
    ran = call("run", "--dataset", saved, "--relation-sparsity", "writes=0.5,cites=0.75", *QUICK, "--json")
    rows = json.loads(ran.stdout)["relations"]
    for name, share in {"author__writes__paper": 0.5, "paper__cites__paper": 0.75}.items():
        assert rows[name]["kept"] == rows[name]["total"] - round(share * rows[name]["total"])
    ran = call("run", "--dataset", saved, "--sparsity", 0.5, "--protect", "writes, near", *QUICK, "--json")
    assert json.loads(ran.stdout)["protected"] == ["author__writes__paper", "author__near__author"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--relation-sparsity", "writes"], "write name=share"),
        (["--relation-sparsity", "writes=0.5", "--sparsity", "0.5"], "not both"),
        (["--sparsity", "0.5", "--by", "pairs"], "graphs of one type"),
        (["--sparsity", "0.5", "--scope", "union"], "topology methods"),
        (["--sparsity", "0.5", "--heads", "2"], "no effect"),
    ],
)
def test_what_has_no_effect_is_refused(saved, words, reason):
    ran = call("run", "--dataset", saved, *words, *QUICK)
    assert isinstance(ran.exception, gst.InputError) and reason in str(ran.exception)


@pytest.mark.slow
def test_the_demo_has_a_typed_graph():
    ran = call("demo", "--typed", "--quiet", "--json")
    metrics = json.loads(ran.stdout)
    assert set(metrics) == {"gst", "deploy", "local-similarity", "random"}
    assert metrics["deploy"]["test"] > metrics["random"]["test"] + 20
