import pytest
import torch

import gst

QUICK = {"hidden": 16, "anchor_epochs": 20, "sparse_epochs": 20, "lr": 0.01, "cache": False}


def test_rings_share_devices_and_labels_are_rare():
    data = gst.load("fraud")
    y = data["account"].y
    assert 0.03 < float(y.double().mean()) < 0.05
    account, device = data["account", "uses", "device"].edge_index
    used = torch.bincount(device[y[account] == 1])
    others = torch.bincount(device[y[account] == 0])
    assert used[used > 0].double().mean() > 1.4 * others[others > 0].double().mean()
    for name, share in (("train_mask", 0.5), ("val_mask", 0.25), ("test_mask", 0.25)):
        mask = data["account"][name]
        assert float(mask.double().mean()) == pytest.approx(share, abs=0.01) and int(y[mask].sum()) > 0


def test_the_plain_form_is_the_same_graph():
    typed, plain = gst.load("fraud"), gst.load("fraud:typed=0")
    assert plain.num_nodes == typed.num_nodes and plain.num_edges == sum(
        typed[kind].edge_index.shape[1] for kind in typed.edge_types
    )
    accounts = typed["account"].num_nodes
    assert torch.equal(plain.y[:accounts], typed["account"].y) and (plain.y[accounts:] == -1).all()
    uses = typed["account", "uses", "device"].edge_index + torch.tensor([[0], [accounts]])
    number = plain.edge_index[0] * plain.num_nodes + plain.edge_index[1]
    assert torch.isin(uses[0] * plain.num_nodes + uses[1], number).all()


def test_plain_runs_report_what_rare_labels_need():
    result = gst.sparsify(gst.load("fraud:typed=0,accounts=300"), "random", sparsity=0.3, dense=True, **QUICK)
    measured = result.metrics["measures"]["dense_test"]
    assert measured["auc"] == pytest.approx(result.metrics["dense_test"] / 100)
    assert 0 < measured["positives"] < 0.06 and 0 < measured["ap"] <= 1 and 0 <= measured["precision@1%"] <= 1


def test_typed_runs():
    result = gst.sparsify(gst.load("fraud:accounts=300"), "random", sparsity=0.3, **QUICK)
    assert result.metrics["metric"] == "rocauc" and "ap" in result.metrics["measures"]["test"]


@pytest.mark.parametrize(("name", "message"), [("fraud:accounts=20", "250 or more"), ("fraud:typed=2", "neither 1")])
def test_bad_options(name, message):
    with pytest.raises(gst.InputError, match=message):
        gst.load(name)
