"""Features of every dtype and layout: the same results as from dense float32, or a one-line error."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.nn import GCN, GraphSAGE

import gst
from graphs import random_graph
from gst.after.drift import drift, dropped, shuffled
from gst.base.errors import InputError
from gst.inference.latency import latency
from gst.nn.features import SparseFeatures, as_features
from gst.sparse.layouts import rows_of
from gst.storage.export import export
from gst.train.footprint import training_memory
from gst.train.run import Run
from gst.train.settings import Training

FEW = {"hidden": 8, "anchor_epochs": 3, "sparse_epochs": 4, "cache": False, "sparsity": 0.5}


def bag_of_words(nodes=40, features=60, **more):
    """A graph whose nodes have few words each; the counts are exact in every dtype."""
    data = random_graph(nodes=nodes, edges=3 * nodes, features=features, **more)
    data.x = (torch.rand(nodes, features, generator=torch.Generator().manual_seed(1)) < 0.05).float()
    data.x[: nodes // 2] *= 2
    return data


def with_x(data, x):
    changed = copy.copy(data)
    changed.x = x
    return changed


@pytest.fixture
def nothing_dense(monkeypatch):
    """Fails the test if any code converts a sparse matrix to a dense one."""

    def refuse(*_, **__):
        raise AssertionError("a sparse matrix was made dense")

    monkeypatch.setattr(torch.Tensor, "to_dense", refuse)
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix):
        monkeypatch.setattr(kind, "toarray", refuse)
        monkeypatch.setattr(kind, "todense", refuse)


def folder_of(data, folder):
    folder.mkdir()
    np.save(folder / "edges.npy", data.edge_index.numpy())
    sp.save_npz(folder / "features.npz", sp.csr_array(data.x.numpy()))
    np.save(folder / "labels.npy", data.y.numpy())
    masks = {name: data[f"{name}_mask"].numpy() for name in ("train", "val", "test")}
    np.savez(folder / "split.npz", **masks)
    return folder


METHODS = [("deploy", {}), ("gst", {}), ("retrain", {"turns": 1}), ("scan", {})]
METHODS += [("ugs", {"round_epochs": 1}), ("mgspar", {"inner_steps": 1}), ("rigl", {})]
METHODS += [
    ("deploy", {"inductive": True}),
    ("deploy", {"batch": "clusters", "clusters": 2}),
    ("deploy", {"batch": "neighbors"}),
]


@pytest.mark.parametrize(("method", "more"), METHODS)
def test_a_sparse_file_trains_as_its_dense_form_and_is_never_made_dense(tmp_path, nothing_dense, method, more):
    data = bag_of_words()
    loaded = gst.load(folder_of(data, tmp_path / "own"))
    assert loaded.x.layout == torch.sparse_csr and loaded.x.dtype == torch.float32 and loaded.x.shape == data.x.shape
    plain, sparse = (gst.sparsify(d, method, dense=True, **FEW, **more) for d in (data, loaded))
    assert torch.equal(plain.edge_mask, sparse.edge_mask)
    for name in ("val", "test", "dense_test", "agreement"):
        assert plain.metrics[name] == sparse.metrics[name]
    for a, b in zip(plain.model.state_dict().values(), sparse.model.state_dict().values(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("backbone", ["gcn", "gat", "sage"])
def test_everything_after_a_run_keeps_features_sparse(tmp_path, nothing_dense, backbone):
    data = bag_of_words()
    loaded = gst.load(folder_of(data, tmp_path / "own"))
    result = gst.sparsify(loaded, backbone=backbone, heads=2, **FEW)
    expected = result.model(data.x, result.graph.edge_index)
    assert torch.allclose(result.model(result.graph.x, result.graph.edge_index), expected, atol=1e-5)
    result.save(tmp_path / "run")
    again = gst.Result.load(tmp_path / "run")
    assert again.graph.x.layout == torch.sparse_csr and again.graph.x.dtype == torch.float32
    assert torch.allclose(again.model(again.graph.x, again.graph.edge_index), expected, atol=1e-5)
    for precision, tolerance in (("float32", 1e-5), ("bfloat16", 0.1)):
        compiled = again.compile("degree", precision)
        assert torch.allclose(compiled(), expected, atol=tolerance)
        compiled.save(tmp_path / "fast")
        assert torch.equal(gst.load_compiled(tmp_path / "fast")(), compiled())
    assert latency(again.model, loaded, again.graph, "natural", repeats=2)["dense"]["macs"] > 0
    rows = drift(again, loaded, shares=[0.5], epochs=[1])
    dense_rows = drift(gst.sparsify(data, backbone=backbone, heads=2, **FEW), data, shares=[0.5], epochs=[1])
    assert [row["agreement"] for row in rows] == [row["agreement"] for row in dense_rows]
    grown = bag_of_words(nodes=44)
    grown.edge_index = torch.cat([data.edge_index, torch.tensor([[40, 0, 41, 1], [0, 40, 1, 41]])], dim=1)
    assert again.extend(with_x(grown, grown.x.to_sparse_csr())).graph.x.layout == torch.sparse_csr
    for to in ("pyg", "csv", "networkx", "scipy"):
        export(again.graph, to, tmp_path / "out.pt")
        if to == "pyg":
            assert gst.load(tmp_path / "out.pt").x.layout == torch.sparse_csr


def test_memory_is_estimated_from_the_stored_values():
    sizes, training = (83_133, 971_298, 5000, 49), Training(hidden=32)
    dense, sparse = (training_memory(*sizes, "gcn", training, stored=n) for n in (None, 2_148_220))
    assert sparse < 2**30 < 4 * 2**30 < dense
    wide = bag_of_words()
    x = torch.sparse_coo_tensor(torch.tensor([[0, 1], [0, 999_999_999]]), torch.ones(2), (40, 10**9))
    for method in ("deploy", "random"):
        with pytest.raises(InputError, match="training on this graph needs about"):
            gst.sparsify(with_x(wide, x), method, **FEW)


KINDS = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8]
VIEWS = {
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "coo": lambda x: x.to_sparse_coo(),
    "halves": lambda x: torch.sparse_coo_tensor(
        x.to_sparse_coo().indices().repeat(1, 2), x.to_sparse_coo().values().repeat(2) / 2, x.shape
    ),
    "stored zeros": lambda x: (
        (x + 1).to_sparse_csr()
        + torch.sparse_csr_tensor(
            (x + 1).to_sparse_csr().crow_indices(),
            (x + 1).to_sparse_csr().col_indices(),
            -torch.ones(x.numel()),
            x.shape,
        )
    ),
    "gradient": lambda x: x.clone().requires_grad_(),
    "not contiguous": lambda x: x.t().contiguous().t(),
    **{str(kind): lambda x, kind=kind: x.to(kind) for kind in KINDS},
    **{f"csr {kind}": lambda x, kind=kind: x.to(kind).to_sparse_csr() for kind in KINDS},
}


@pytest.mark.parametrize("kind", VIEWS)
def test_every_kind_of_x_gives_the_result_of_float32(tmp_path, kind):
    data = bag_of_words()
    other = with_x(data, VIEWS[kind](data.x))
    plain, other_result = (gst.sparsify(d, **FEW) for d in (data, other))
    assert torch.equal(plain.edge_mask, other_result.edge_mask)
    assert plain.metrics["test"] == other_result.metrics["test"]
    assert torch.equal(gst.Random(sparsity=0.5)(other).edge_index, gst.Random(sparsity=0.5)(data).edge_index)
    fitted = gst.Deploy(**FEW).fit(other)
    assert torch.equal(fitted.transform(other).edge_index, plain.graph.edge_index)
    assert other.x.grad is None and other_result.graph.x is other.x
    assert torch.allclose(other_result.model(other.x, data.edge_index), plain.model(data.x, data.edge_index), atol=1e-5)
    other_result.save(tmp_path / "run")
    again = gst.Result.load(tmp_path / "run")
    assert again.graph.x.dtype == other.x.dtype and torch.equal(as_dense(again.graph.x), as_dense(other.x))
    assert torch.allclose(again.compile("natural")(), plain.compile("natural")(), atol=1e-5)
    torch.save(other.to_dict(), tmp_path / "own.pt")
    x = gst.load(tmp_path / "own.pt").x
    assert x.dtype == torch.float32 and torch.equal(as_dense(x), data.x)


def as_dense(x):
    return x.detach().to_dense()


def test_bools_are_features(tmp_path):
    data = bag_of_words()
    data.x = (data.x > 0).float()
    for x in (data.x.bool(), data.x.bool().to_sparse_csr()):
        plain, other_result = (gst.sparsify(d, **FEW) for d in (data, with_x(data, x)))
        assert torch.equal(plain.edge_mask, other_result.edge_mask)


def nan_at_7(x):
    x = x.clone()
    x[7, 0] = torch.nan
    return x


BAD = {
    "x holds torch.complex64": lambda x: x.to(torch.complex64),
    "x has layout torch.sparse_bsr": lambda x: x.to_sparse_bsr((1, 1)),
    "x is a sparse tensor whose indices do not fit": lambda x: torch.sparse_csr_tensor(
        torch.arange(41), torch.full((40,), 99), torch.ones(40), x.shape, check_invariants=False
    ),
    "x is NaN or infinite at node 7": lambda x: nan_at_7(x).to_sparse_csr(),
    "x has values up to 1e+300": lambda x: x.double() * 5e299,
    "x holds no values (device meta)": lambda x: x.to("meta"),
}


@pytest.mark.parametrize("line", BAD)
def test_other_features_are_refused_in_one_line(line):
    data = bag_of_words()
    data = with_x(data, BAD[line](data.x))
    with pytest.raises(InputError) as caught:
        gst.sparsify(data, **FEW)
    assert line in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) <= 300


def test_columns_drift_alike_in_both_layouts():
    x = bag_of_words().x
    for change in (dropped, shuffled):
        thin = change(x.to_sparse_csr(), 0.4, 3)
        assert thin.layout == torch.sparse_csr and torch.equal(thin.to_dense(), change(x, 0.4, 3))
    assert not torch.equal(shuffled(x, 0.4, 3), x)


@pytest.mark.parametrize("layout", ["to_sparse_csr", "to_sparse_csc", "to_sparse_coo"])
def test_rows_of_every_layout(layout):
    x, nodes = bag_of_words().x.double(), torch.tensor([3, 0, 39, 3])
    rows = rows_of(getattr(x, layout)(), nodes)
    assert rows.dtype == torch.float64 and torch.equal(rows.to_dense(), x[nodes])


def test_a_sparse_x_of_any_density_stays_sparse():
    assert isinstance(as_features(torch.rand(20, 10).to_sparse_csr()), SparseFeatures)


class Recorder(torch.nn.Module):
    """A model of PyG layers that records the layout and dtype of its input."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.kinds = inner, set()

    def reset_parameters(self):
        self.inner.reset_parameters()

    def forward(self, x, edge_index):
        self.kinds.add((x.layout, x.dtype))
        return self.inner(x, edge_index)


class DropoutFirst(GCN):
    def forward(self, x, edge_index):
        return super().forward(torch.nn.functional.dropout(x, training=self.training), edge_index)


def input_kinds(inner, data):
    """Layouts and dtypes that a copy of the model is called with."""
    run = Run(data, model=Recorder(inner), cache=False)
    network = run.network()
    network.module.kinds.clear()
    network.logits(run.edges)
    return network.module.kinds


def test_own_models_get_their_dtype_and_a_layout_that_they_support():
    data = bag_of_words()
    sparse = with_x(data, data.x.to_sparse_csr())
    assert input_kinds(GCN(60, 8, 2, 3), sparse) == {(torch.sparse_csr, torch.float32)}
    assert input_kinds(GraphSAGE(60, 8, 2, 3), sparse) == {(torch.strided, torch.float32)}  # it gathers rows
    # dropout takes no sparse x
    assert input_kinds(DropoutFirst(60, 8, 2, 3), sparse) == {(torch.strided, torch.float32)}
    assert input_kinds(GCN(60, 8, 2, 3).double(), data) == {(torch.strided, torch.float64)}
    assert input_kinds(GCN(60, 8, 2, 3), with_x(data, data.x.long())) == {(torch.strided, torch.float32)}


@pytest.mark.parametrize("more", [{}, {"batch": "clusters", "clusters": 2}, {"method": "gst"}])
@pytest.mark.parametrize("make", [GCN, GraphSAGE])
def test_own_models_learn_the_same_from_sparse_features(tmp_path, make, more):
    data = bag_of_words()
    torch.manual_seed(0)
    model = make(60, 8, 2, 3)
    sparse = with_x(data, data.x.to_sparse_csr())
    plain, other_result = (gst.sparsify(d, model=model, **FEW, **more) for d in (data, sparse))
    if "method" in more:
        assert torch.equal(plain.edge_mask, other_result.edge_mask)
        assert torch.allclose(plain.compile("natural")(), other_result.compile("degree")(), atol=1e-4)
    else:  # Deploy adds edges one by one: X·W, rounded differently, decides between those that are nearly as good
        assert (plain.edge_mask == other_result.edge_mask).double().mean() > 0.9
    pairs = zip(plain.model.parameters(), other_result.model.parameters(), strict=True)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in pairs)
    other_result.save(tmp_path)
    again = gst.Result.load(tmp_path, model=make(60, 8, 2, 3))
    assert torch.allclose(again.compile("natural")(), other_result.compile("natural")(), atol=1e-6)


def test_an_own_model_without_sparse_support_is_refused_if_dense_features_do_not_fit(monkeypatch):
    data = bag_of_words()
    monkeypatch.setattr("gst.base.memory.available_memory", lambda: 2**30)
    x = torch.sparse_csr_tensor(torch.tensor([0] + [1] * 40), torch.tensor([0]), torch.ones(1), (40, 10**8))
    model = GraphSAGE(3, 8, 2, 3)
    with pytest.raises(InputError, match="GraphSAGE takes no sparse x, and a dense one needs about"):
        gst.sparsify(with_x(data, x), model=model, **FEW)


@pytest.mark.real
def test_eighty_thousand_packages_with_sparse_features_in_little_memory(tmp_path):
    folder = Path(os.environ.get("GST_MIRROR", "")) / "debian"
    if not (folder / "features.npz").is_file():
        pytest.skip("no files of debian in $GST_MIRROR")
    program = (
        "import json, resource, sys\nfrom gst.cli.main import main\n"
        "try:\n    main()\nfinally:\n    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    command = f"run --dataset {folder} --method random --sparsity 0.8 --hidden 32 --anchor-epochs 1 --sparse-epochs 1"
    command += " --no-dense --json --quiet"
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)
    assert metrics["edges_kept"] == metrics["edges_total"] - round(0.8 * metrics["edges_total"])
    assert int(done.stderr.split()[-1]) < 3 * 2**20  # KiB
