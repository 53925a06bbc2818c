import math

import pytest
import torch
from contract import renamed
from hypothesis import given
from test_triangles import REAL, by_networkit, dense, real_edges
from torch_geometric.data import Data

from graphs import KINDS, graphs, random_graph
from gst.graph.edgeset import EdgeSet
from gst.methods.local_similarity import LocalSimilarity, local_similarity_scores


def jaccard(edges: EdgeSet) -> torch.Tensor:
    """[N, N], −1 where there is no edge."""
    adjacency = dense(edges)
    common = adjacency @ adjacency
    union = adjacency.sum(1)[:, None] + adjacency.sum(1) - common
    return torch.where(adjacency > 0, common / union.double().clamp(min=1), -1)


def by_sorting(edges: EdgeSet) -> torch.Tensor:
    """The definition, node by node."""
    similarity = jaccard(edges)
    scores = torch.zeros_like(similarity)
    for node in range(edges.num_nodes):
        neighbours = sorted((-float(similarity[node, other]), other) for other in range(edges.num_nodes))
        neighbours = [other for negative, other in neighbours if negative <= 0]
        for rank, other in enumerate(neighbours, start=1):
            scores[node, other] = 1 - math.log(rank) / math.log(len(neighbours)) if len(neighbours) > 1 else 1
    u, v = edges.pairs
    return torch.maximum(scores[u, v], scores[v, u])


@given(graphs())
def test_definition(data):
    edges = EdgeSet.from_data(data)
    assert torch.equal(local_similarity_scores(edges), by_sorting(edges))


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_nodes_do_not_matter_ties_aside(kind):
    data = random_graph(nodes=40, edges=200, **kind)
    method, edges = LocalSimilarity(sparsity=0.5), EdgeSet.from_data(data)
    similarity = jaccard(edges)
    u, v = edges.pairs
    alone = torch.ones(edges.num_edges, dtype=torch.bool)
    for end, other in ((u, v), (v, u)):
        alone &= (similarity[end] == similarity[end, other][:, None]).sum(1) == 1
    clear = edges.to_columns(alone, True)
    assert int(alone.sum()) > 30
    assert torch.equal(method.score(data)[clear], method.score(renamed(data))[clear])


def test_every_node_keeps_its_best_edge_first():
    data = random_graph(nodes=40, edges=200)
    edges = EdgeSet.from_data(data)
    scores = local_similarity_scores(edges)
    best = torch.zeros(40, dtype=torch.float64).scatter_reduce(0, edges.pairs.flatten(), scores.repeat(2), "amax")
    assert bool((best[edges.degree > 0] == 1).all())
    kept = LocalSimilarity(keep=int((scores == 1).sum()))(data)
    assert torch.equal(kept.edge_index.unique(), edges.pairs.unique())


def test_leaf_edges_score_one():
    star = torch.tensor([[0, 0, 0, 0], [1, 2, 3, 4]])
    data = Data(edge_index=torch.cat([star, star.flip(0)], dim=1), num_nodes=6)
    assert LocalSimilarity(keep=2).score(data).tolist() == [1.0] * 8
    assert LocalSimilarity(keep=2)(data).edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]  # ties by edge id


@pytest.mark.real
@pytest.mark.parametrize("name", REAL)
def test_equals_networkit_to_the_last_bit(name):
    edges = real_edges(name)
    expected = by_networkit(edges, lambda nk, *given: nk.LocalSimilarityScore(*given).run().scores())
    assert torch.equal(local_similarity_scores(edges), expected)
