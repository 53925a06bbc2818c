import pytest
import torch

from gst.base.errors import InputError
from gst.graph import partition
from gst.graph.edgeset import EdgeSet
from gst.graph.partition import metis, streamed


def ring_of_cliques(cliques: int, size: int) -> torch.Tensor:
    pairs = [(c * size + i, c * size + j) for c in range(cliques) for i in range(size) for j in range(i)]
    pairs += [(c * size, (c + 1) % cliques * size + 1) for c in range(cliques)]
    return torch.tensor(pairs).T


@pytest.mark.parametrize("directed", [False, True])
def test_cliques_stay_whole(directed):
    arcs = ring_of_cliques(4, 8)
    index = arcs if directed else torch.cat([arcs, arcs.flip(0)], 1)
    edges = EdgeSet.from_edge_index(index, 32)
    assert edges.directed == directed
    part = metis(edges, 4)
    assert all(part[c * 8 : c * 8 + 8].unique().numel() == 1 for c in range(4))
    assert part.unique().tolist() == [0, 1, 2, 3]
    assert torch.equal(part, metis(edges, 4))


def test_no_edges_and_one_part():
    edges = EdgeSet.from_edge_index(torch.empty(2, 0, dtype=torch.long), 5)
    assert metis(edges, 2).tolist() == [0, 1, 0, 1, 0]
    assert metis(EdgeSet.from_edge_index(ring_of_cliques(2, 4), 8), 1).tolist() == [0] * 8


def test_more_parts_than_nodes_is_refused():
    with pytest.raises(InputError, match="cannot have 9 parts"):
        metis(EdgeSet.from_edge_index(ring_of_cliques(2, 4), 8), 9)


def test_streamed_parts_are_balanced_and_follow_the_edges(monkeypatch):
    edges = EdgeSet.from_edge_index(ring_of_cliques(20, 10), 200)
    part = streamed(edges, 10, seed=1)
    sizes = torch.bincount(part, minlength=10)
    assert int(sizes.max()) <= 22 and int(sizes.sum()) == 200
    inside = (part[edges.pairs[0]] == part[edges.pairs[1]]).double().mean()
    assert inside > 0.5, "at random it would be a tenth"
    assert torch.equal(part, streamed(edges, 10, seed=1)) and not torch.equal(part, streamed(edges, 10, seed=2))
    assert torch.equal(partition.partition(edges, 4), metis(edges, 4))
    monkeypatch.setattr(partition, "METIS_EDGES", 10)
    assert torch.equal(partition.partition(edges, 10, 1), part)


def test_streamed_of_no_edges_fills_evenly():
    edges = EdgeSet.from_edge_index(torch.empty(2, 0, dtype=torch.long), 7)
    assert sorted(torch.bincount(streamed(edges, 3), minlength=3).tolist()) == [2, 2, 3]
