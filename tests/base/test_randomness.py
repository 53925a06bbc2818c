"""Per-thread generators: the numbers of torch after ``manual_seed``, independent of torch's global generator."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch_geometric.nn import GATConv

from graphs import random_graph
from gst.base.randomness import generator, redirect_torch_random, seeded
from gst.nn.own_model import call_model, gated
from reliability.threads import CALLS, run

ONES = torch.ones(64)
DRAWS = {
    "dropout": lambda: functional.dropout(ONES, 0.3, True),
    "dropout1d": lambda: functional.dropout1d(ONES.view(4, 4, 4), 0.5, True),
    "alpha_dropout": lambda: functional.alpha_dropout(ONES, 0.3, True),
    "rrelu": lambda: functional.rrelu(-ONES, training=True),
    "gumbel_softmax": lambda: functional.gumbel_softmax(ONES),
    "rand": lambda: torch.rand(5),
    "randn": lambda: torch.randn(5, dtype=torch.float64),
    "randint": lambda: torch.randint(9, (5,)),
    "randint from": lambda: torch.randint(2, 9, (5,)),
    "randperm": lambda: torch.randperm(10),
    "rand_like": lambda: torch.rand_like(ONES),
    "randn_like": lambda: torch.randn_like(ONES),
    "randint_like": lambda: torch.randint_like(ONES, 9),
    "bernoulli": lambda: torch.bernoulli(ONES / 2),
    "multinomial": lambda: torch.multinomial(ONES, 5),
    "normal": lambda: torch.normal(ONES, ONES),
    "poisson": lambda: torch.poisson(ONES),
    "exponential_": lambda: torch.empty(5).exponential_(),
    "linear layer": lambda: nn.Linear(4, 4).weight.detach().clone(),
    "trunc_normal_": lambda: nn.init.trunc_normal_(torch.empty(5)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_foreign_code_draws_the_numbers_of_the_seed_without_touching_torchs_generator(draw):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        expected = draw()
        before = torch.get_rng_state()
        with seeded(3), redirect_torch_random():
            assert torch.equal(draw(), expected)
        assert torch.equal(torch.get_rng_state(), before)


def test_outside_of_a_seed_torchs_generator_is_used():
    assert generator() is None
    with seeded(1):
        assert generator() is not None
        with ThreadPoolExecutor(1) as other:
            assert other.submit(generator).result() is None


class Dropping(nn.Module):
    """A user's model with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = GATConv(5, 4, heads=2, dropout=0.3), GATConv(8, 3, heads=1)

    def forward(self, x, edge_index):
        return self.last(functional.dropout(self.first(x, edge_index).relu(), 0.5, self.training), edge_index)


@pytest.mark.parametrize("name", CALLS)
def test_a_run_draws_nothing_from_torchs_generator(name):
    before = torch.get_rng_state()
    run(name)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_gate_applies_only_to_its_own_thread():
    """PyG's modules are shared: while one thread has gates, another that calls the same layer gets none."""
    data, model = random_graph(nodes=20, edges=60), Dropping().eval()
    plain = call_model(model, data)
    with ThreadPoolExecutor(1) as other, gated(model, data, torch.zeros(data.num_edges)):
        assert not torch.allclose(call_model(model, data), plain)
        again = Dropping().eval()
        again.load_state_dict(model.state_dict())
        assert torch.equal(other.submit(call_model, again, data).result(), plain)
