import pytest
import torch
from torch_geometric.data import Data

from graphs import KINDS, random_graph
from gst.base.errors import InputError
from gst.graph.edgeset import EdgeSet
from gst.graph.sampling import inverse_inclusion
from gst.methods.effective_resistance import EffectiveResistance, resistance_rates


def by_pseudo_inverse(edges: EdgeSet) -> torch.Tensor:
    u, v = edges.pairs
    weight = edges.edge_weight.double()
    adjacency = torch.zeros(edges.num_nodes, edges.num_nodes, dtype=torch.float64)
    adjacency.index_put_((u, v), weight, accumulate=True)
    adjacency = adjacency + adjacency.t()
    inverse = torch.linalg.pinv(torch.diag(adjacency.sum(1)) - adjacency, hermitian=True)
    return weight * (inverse[u, u] + inverse[v, v] - 2 * inverse[u, v])


@pytest.mark.parametrize("kind", KINDS)
def test_rates_against_the_dense_pseudo_inverse(kind):
    edges = EdgeSet.from_data(random_graph(nodes=25, edges=60, **kind))
    rates = resistance_rates(edges)
    assert torch.allclose(rates, by_pseudo_inverse(edges), atol=1e-8)
    trees = edges.num_nodes - int(edges.components.max()) - 1  # edges of a spanning forest (Foster)
    assert float(rates.sum()) == pytest.approx(trees)
    near = resistance_rates(edges, projections=512, seed=1) / rates - 1
    assert float(near.square().mean().sqrt()) < 1.3 * (2 / 512) ** 0.5


def test_one_projection_still_gives_every_edge_a_chance():
    edges = EdgeSet.from_data(random_graph(nodes=25, edges=60))
    assert bool((resistance_rates(edges, projections=1) >= resistance_rates(edges) / edges.num_nodes).all())


def test_bridges_stay_first():
    cliques = [*torch.combinations(torch.arange(5)).tolist(), *torch.combinations(torch.arange(5, 10)).tolist()]
    ends = torch.tensor([*cliques, [4, 5], [9, 10]]).t()
    data = Data(edge_index=torch.cat([ends, ends.flip(0)], dim=1), num_nodes=11)
    kept = EffectiveResistance(keep=2, sample=False, projections=None)(data)
    assert kept.edge_index.t().tolist() == [[4, 5], [9, 10], [5, 4], [10, 9]]


def test_weights_are_those_of_the_draw():
    data = random_graph(nodes=25, edges=60, weighted=True)
    edges, method = EdgeSet.from_data(data), EffectiveResistance(keep=20, projections=None, weights=True, seed=2)
    keep, scores = method.select(edges)
    factor = edges.to_columns(inverse_inclusion(resistance_rates(edges), scores, 20), 1.0)
    mask = edges.to_columns(keep, True)
    assert torch.allclose(method(data).edge_weight, (data.edge_weight * factor)[mask].float())


def test_seed_of_projections_and_draw():
    data = random_graph(nodes=25, edges=60)
    first, again, other = (EffectiveResistance(0.5, seed=seed).score(data) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)


@pytest.mark.parametrize("projections", [0, -3, 1.5, "many"])
def test_bad_number_of_projections(projections):
    with pytest.raises(InputError, match="projections"):
        EffectiveResistance(0.5, projections=projections)
