import torch

from gst.data import load


def test_digits_is_the_promised_graph():
    data = load("digits")
    assert data.x.shape == (1797, 64) and data.x.dtype == torch.float32
    assert float(data.x.min()) == 0 and float(data.x.max()) == 1
    assert data.num_edges == 2 * 12_535
    assert data.is_undirected() and data.is_coalesced() and not data.has_self_loops()
    assert torch.bincount(data.y[data.train_mask]).tolist() == [5] * 10
    assert int(data.val_mask.sum()) == 500 and int(data.test_mask.sum()) == 1247


def test_two_loads_are_identical_and_seeds_differ():
    first, second, other = load("digits"), load("Digits"), load("digits", split=1)
    for key in ("x", "y", "edge_index", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(first[key], second[key])
    assert torch.bincount(other.y[other.train_mask]).tolist() == [5] * 10
    assert not torch.equal(first.train_mask, other.train_mask)


def test_fewer_nodes_are_the_first_ones_linked_among_themselves():
    whole, part = load("digits"), load("digits:nodes=600")
    assert part.name == "digits:nodes=600" and torch.equal(part.x, whole.x[:600]) and torch.equal(part.y, whole.y[:600])
    assert part.edge_index.max() < 600 and part.is_undirected()
    assert int(torch.bincount(part.edge_index[0]).min()) >= 10  # everyone has its ten nearest
