import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gst.base.errors import InputError
from gst.data.synthetic import synthetic


@settings(max_examples=40, deadline=None)
@given(st.integers(40, 200), st.integers(2, 4), st.floats(0.5, 6), st.floats(0, 1), st.integers(0, 5))
def test_exact_sizes(nodes, classes, degree, homophily, seed):
    data = synthetic(nodes=nodes, classes=classes, degree=degree, homophily=homophily, features=3, seed=seed)
    pairs = round(nodes * degree / 2)
    assert data.x.shape == (nodes, 3) and data.x.dtype == torch.float32
    assert data.num_edges == 2 * pairs
    assert data.is_undirected() and data.is_coalesced() and not data.has_self_loops()
    sizes = torch.bincount(data.y)
    assert sizes.numel() == classes and int(sizes.max() - sizes.min()) <= 1
    source, target = data.edge_index
    assert int((data.y[source] == data.y[target]).sum()) == 2 * round(pairs * homophily)


def test_seed_decides():
    first, again, other = synthetic(seed=1), synthetic(seed=1), synthetic(seed=2)
    assert torch.equal(first.x, again.x) and torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.edge_index[:, :50], other.edge_index[:, :50])


def test_every_node_is_equally_likely():
    degree = torch.bincount(synthetic(nodes=4000, degree=50.0).edge_index[0], minlength=4000).float()
    assert degree.view(4, -1).mean(dim=1).tolist() == pytest.approx([50.0] * 4, abs=1.0)


def test_signal_moves_the_class_means_apart():
    data = synthetic(nodes=3000, signal=5.0, classes=2)
    means = torch.stack([data.x[data.y == label].mean(dim=0) for label in (0, 1)])
    assert means.norm(dim=1).tolist() == pytest.approx([5.0, 5.0], abs=0.3)


def test_large_graphs_need_no_square():
    data = synthetic(nodes=100_000, degree=20.0, features=4)
    assert data.num_edges == 2_000_000


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"nodes": 0}, "nodes=0 must be at least 3 per class"),
        ({"classes": 1}, "classes=1 must be 2 or more"),
        ({"degree": 0}, "degree=0 must be above 0"),
        ({"degree": float("nan")}, "degree=nan must be above 0"),
        ({"homophily": 1.5}, "homophily=1.5 must lie between 0 and 1"),
        ({"features": 0}, "features=0 must be 1 or more"),
        ({"signal": -1.0}, "signal=-1.0 must be a number from 0 up"),
        ({"seed": -1}, "seed=-1 must be 0 or more"),
        ({"nodes": 100, "degree": 60}, "pairs inside the classes are more than half"),
        ({"nodes": 100, "degree": 60, "homophily": 0}, "pairs between the classes are more than half"),
    ],
)
def test_impossible_options_are_refused(options, reason):
    with pytest.raises(InputError, match=reason):
        synthetic(**options)
