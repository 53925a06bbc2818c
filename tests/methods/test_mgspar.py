from dataclasses import replace

import pytest
import torch
from torch.nn import functional
from torch_geometric.nn.models import GCN

from graphs import new_run, random_graph
from gst import InputError
from gst.methods.iterative import logits_with
from gst.methods.mgspar import MGSpar, adam, initial_weights, meta_gradient, outer_labels
from gst.nn.backbones import BACKBONES
from gst.storage.cache import Cache
from gst.testing import check_mask

QUICK = {"hidden": 8, "heads": 2, "anchor_epochs": 2, "sparse_epochs": 3, "inner_steps": 2, "meta_epochs": 2}


def fit(data=None, **given):
    data = random_graph(nodes=30, edges=60) if data is None else data
    return MGSpar(**{**QUICK, "cache": False, **given}).fit(data)


def losses(backbone, kind=None):
    """Inner and outer loss of a tiny network in double precision, its initial weights and gates."""
    data = random_graph(nodes=12, edges=20, **(kind or {}))
    run = new_run(data, backbone=backbone, hidden=4, heads=2, cache=False)
    network, task = run.network(), run.task
    edges = replace(run.edges, loops=run.edges.loops.double())
    network.module.double().eval()
    network.x = network.x.double()
    names = [name for name, _ in network.module.named_parameters()]
    everyone = torch.arange(12)

    def loss(nodes):
        def value(weights, gate):
            named = dict(zip(names, weights, strict=True))
            return functional.cross_entropy(logits_with(network, named, edges, gate, nodes), task.y[nodes])

        return value

    start = [weight.double() for weight in initial_weights(run, network, names, seed=4)]
    gate = torch.ones(run.edges.num_edges, dtype=torch.float64)
    return loss(task.train), loss(everyone), start, gate


RATES = {"steps": 5, "lr": 0.05, "weight_decay": 1e-3}


def train(inner, start, gate, *, create_graph):
    """The inner training, plainly."""
    state = [*start, *(torch.zeros_like(w) for _ in range(2) for w in start)]
    for number in range(1, RATES["steps"] + 1):
        with torch.enable_grad():
            weights = [w.requires_grad_() if w.is_leaf else w for w in state[: len(start)]]
            slopes = torch.autograd.grad(inner(weights, gate), weights, create_graph=create_graph)
        slopes = [slope + RATES["weight_decay"] * weight for slope, weight in zip(slopes, weights, strict=True)]
        state = adam([*weights, *state[len(start) :]], slopes, number, RATES["lr"])
    return state[: len(start)]


@pytest.mark.parametrize("kind", [{}, {"directed": True, "loops": True}])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_meta_gradient_equals_finite_differences_through_the_whole_training(backbone, kind):
    inner, outer, start, gate = losses(backbone, kind)
    weights, found = meta_gradient(inner, outer, start, gate, **RATES)

    def trained(gate):
        with torch.no_grad():
            return float(outer(train(inner, start, gate, create_graph=False), gate))

    expected = torch.empty_like(found)
    for edge in range(gate.numel()):
        shift = torch.zeros_like(gate)
        shift[edge] = 1e-6
        expected[edge] = (trained(gate + shift) - trained(gate - shift)) / 2e-6
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)
    direct = torch.autograd.grad(outer(weights, g := gate.clone().requires_grad_()), g)[0]
    assert (found - direct).abs().max() > 0.05 * found.abs().max(), "the way through the weights matters"


@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_meta_gradient_equals_one_unrolled_graph(backbone):
    inner, outer, start, gate = losses(backbone)
    gate = gate.requires_grad_()
    trained = train(inner, start, gate, create_graph=True)
    expected = torch.autograd.grad(outer(trained, gate), gate)[0]
    weights, found = meta_gradient(inner, outer, start, gate, **RATES)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(weights, [weight.detach() for weight in trained])


def test_adam_is_adam():
    inner, _, start, gate = losses("gcn")
    weights = [torch.nn.Parameter(w.clone()) for w in start]
    optimizer = torch.optim.Adam(weights, lr=RATES["lr"], weight_decay=RATES["weight_decay"])
    for _ in range(RATES["steps"]):
        optimizer.zero_grad()
        inner(weights, gate).backward()
        optimizer.step()
    found, _ = meta_gradient(inner, inner, start, gate, **RATES)
    for mine, theirs in zip(found, weights, strict=True):
        torch.testing.assert_close(mine, theirs.detach(), rtol=0, atol=1e-2)  # but for the damping


def test_same_seed_same_bits_stored_or_not_and_other_sparsities_are_free(tmp_path):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, events = fit(sparsity=0.3), []
    assert torch.equal(torch.rand(3), expected)
    for cache in (False, Cache(tmp_path), Cache(tmp_path)):
        again = fit(sparsity=0.3, cache=cache)
        assert torch.equal(first.result_.scores, again.result_.scores) and torch.equal(
            first.found_.logits, again.found_.logits
        )
        assert first.found_.history == again.found_.history
    fit(sparsity=0.1, cache=Cache(tmp_path), callbacks=lambda step: events.append(step.phase))
    assert set(events) == {"sparse"}
    deeper = fit(sparsity=0.5, cache=Cache(tmp_path), callbacks=lambda step: events.append(step.phase))
    assert events.count("prune") == QUICK["meta_epochs"] * (len(deeper.found_.history) - len(first.found_.history))
    assert torch.equal(deeper.result_.scores, fit(sparsity=0.5).result_.scores)
    assert not torch.equal(first.result_.scores, fit(sparsity=0.3, seed=1).result_.scores)


def test_edges_that_hurt_go_first():
    data = random_graph(nodes=40, edges=100, classes=2, seed=3)
    data.x = functional.one_hot(data.y, 2).float()  # the class itself, blurred by edges between classes
    method = fit(data, sparsity=0.3, prune_ratio=0.1, inner_steps=20, lr=0.1, outer="val", hidden=16)
    u, v = method.edges_.pairs
    alike = (data.y[u] == data.y[v]).float()
    assert alike[~method.found_.keep_mask].mean() < alike.mean() - 0.15


def test_outer_labels_never_use_test_labels():
    data = random_graph(nodes=30, edges=60)
    wrong = data.clone()
    wrong.y = torch.where(data.test_mask, (data.y + 1) % 3, data.y)
    for outer in ("self", "train", "val"):
        labels, other = (outer_labels(new_run(d, hidden=8, anchor_epochs=3, cache=False), outer) for d in (data, wrong))
        assert torch.equal(labels, other)
        assert torch.equal(labels[data.train_mask], data.y[data.train_mask])
        judged = {"self": torch.ones(30, dtype=torch.bool), "train": data.train_mask}
        judged["val"] = data.train_mask | data.val_mask
        assert torch.equal(labels >= 0, judged[outer])


def test_own_model_is_left_alone():
    data = random_graph(nodes=30, edges=60)
    model = GCN(5, 8, 2, out_channels=3, dropout=0.5)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first, second = (fit(data, model=model, sparsity=0.2, hidden=None, heads=None) for _ in range(2))
    check_mask(data, first.result_.edge_mask, sparsity=0.2)
    assert torch.equal(first.result_.scores, second.result_.scores) and torch.equal(
        first.found_.logits, second.found_.logits
    )
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("wrong", [{"prune_ratio": 0}, {"inner_steps": -1}, {"meta_epochs": 0}, {"outer": "test"}])
def test_wrong_arguments_get_one_clear_line(wrong):
    with pytest.raises(InputError, match=f"MGSpar: {next(iter(wrong))} = "):
        MGSpar(sparsity=0.5, **wrong)
