"""UGS, and what all iterative methods share: the path of removals."""

import pytest
import torch
from contract import same
from torch_geometric.nn.models import GCN

from graphs import new_run, random_graph
from gst import InputError
from gst.graph.select import top_k
from gst.methods.iterative import logits_with, removal_scores, worst_first
from gst.methods.ugs import UGS, Masked, all_weights, prune_weights
from gst.nn.backbones import BACKBONES
from gst.storage.cache import Cache
from gst.testing import check_mask

QUICK = {"hidden": 8, "heads": 2, "anchor_epochs": 2, "sparse_epochs": 3, "round_epochs": 2, "cache": False}


def make(**given):
    return UGS(**{**QUICK, **given})


def fit(data=None, **given):
    return make(**given).fit(random_graph(nodes=40, edges=120) if data is None else data)


@pytest.mark.parametrize("backbone", BACKBONES)
def test_same_seed_same_bits_and_the_callers_random_numbers_untouched(backbone):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = fit(sparsity=0.2, backbone=backbone)
    assert torch.equal(torch.rand(3), expected)
    assert same(first, fit(sparsity=0.2, backbone=backbone))
    assert not torch.equal(first.result_.edge_mask, fit(sparsity=0.2, backbone=backbone, seed=1).result_.edge_mask)


def test_a_round_removes_five_percent_of_what_is_left_and_24_rounds_reach_70_percent():
    data = random_graph(nodes=60, edges=500)
    method = fit(data, sparsity=0.7, round_epochs=1)
    total = method.edges_.num_edges
    left = total
    for line in method.found_.history[:-1]:
        assert line["edges"] == left and line["removed"] == round(0.05 * left)
        left -= line["removed"]
    assert len(method.found_.history) == 24
    assert method.found_.history[-1]["edges"] - method.found_.history[-1]["removed"] == total - round(0.7 * total)


def test_one_stored_path_serves_every_sparsity(tmp_path):
    data, events = random_graph(nodes=40, edges=120), []

    def run(**given):
        events.clear()
        return fit(data, callbacks=lambda step: events.append(step.phase), **given)

    cache = Cache(tmp_path)
    fresh = {s: run(sparsity=s) for s in (0.15, 0.3, 0.5)}
    middle = run(sparsity=0.3, cache=cache)
    assert events.count("prune") == QUICK["round_epochs"] * len(middle.found_.history)
    assert same(middle, fresh[0.3])
    assert same(run(sparsity=0.3, cache=cache), fresh[0.3]) and "prune" not in events
    assert same(run(sparsity=0.15, cache=cache), fresh[0.15]) and "prune" not in events
    deeper = run(sparsity=0.5, cache=cache)  # goes on where the stored rounds end
    assert same(deeper, fresh[0.5])
    assert events.count("prune") == QUICK["round_epochs"] * (len(deeper.found_.history) - len(middle.found_.history))
    run(sparsity=0.15, cache=cache, l1=0.0)
    assert "prune" in events
    assert bool((fresh[0.15].result_.edge_mask | ~fresh[0.5].result_.edge_mask).all()), (
        "a deeper cut brought an edge back"
    )


def test_scores_are_the_sparsity_at_which_an_edge_goes():
    data = random_graph(nodes=40, edges=120, loops=True)
    deep = fit(data, sparsity=0.6)
    total = deep.edges_.num_edges
    scores = torch.empty(total, dtype=torch.float64)
    edge = deep.edges_.column_edge
    scores[edge[edge >= 0]] = deep.result_.scores[edge >= 0]
    assert bool(deep.result_.scores[edge < 0].isinf().all())
    for s in (0.1, 0.35, 0.6):
        kept = total - round(s * total)
        assert torch.equal(top_k(scores, kept), fit(data, sparsity=s).found_.keep_mask)
        assert bool((scores[~top_k(scores, kept)] <= s + 1 / total).all())


def test_ties_go_to_the_lower_id():
    left = torch.tensor([1, 4, 6])
    assert worst_first(left, torch.tensor([1.0, 1.0, 1.0])).tolist() == [6, 4, 1]
    assert torch.equal(top_k(removal_scores(torch.tensor([2, 1, 0])), 2), torch.tensor([True, True, False]))


def test_an_edge_that_hurts_goes_first():
    data = random_graph(nodes=30, edges=60, classes=2, seed=3)
    data.x = torch.nn.functional.one_hot(data.y, 2).float()  # the class itself, blurred by edges between classes
    method = fit(data, keep=1, round_epochs=15, lr=0.1, dropout=0.0, prune_ratio=0.3, l1=0.0)
    u, v = method.edges_.pairs
    alike = data.y[u] == data.y[v]
    seen = torch.isin(u, data.train_mask.nonzero()) | torch.isin(v, data.train_mask.nonzero())
    scores = removal_scores(torch.arange(alike.numel())).clone()
    edge = method.edges_.column_edge
    scores[edge] = method.result_.scores
    assert scores[alike & seen].mean() > scores[~alike & seen].mean() + 0.1


def test_edges_that_the_loss_does_not_see_only_shrink():
    data = random_graph(nodes=200, edges=400)
    nodes = torch.arange(200)
    data.train_mask, data.val_mask, data.test_mask = nodes < 3, nodes >= 100, (nodes >= 3) & (nodes < 100)
    run = new_run(data, hidden=8, lr=0.01, cache=False)
    method = UGS(sparsity=0.01, round_epochs=20)
    _, (stage,), _ = method.path(run, run.edges.num_edges - 1)
    field = run.edges.adjacency.blocks(2, run.task.train)[0].nodes
    unseen = ~torch.isin(run.edges.pairs, field).any(0)
    assert bool(unseen.any()) and not bool(unseen.all())
    # Adam makes a full step of a constant slope, however small
    expected = torch.full_like(stage.scores[unseen], 1 - stage.facts["epoch"] * 0.01)
    torch.testing.assert_close(stage.scores[unseen], expected, rtol=0, atol=1e-3)


def test_edge_values_never_turn_negative():
    method = fit(sparsity=0.1, lr=0.5, round_epochs=8, l1=1.0)
    assert all(torch.tensor(line["val"]).isfinite() for line in method.found_.history)
    assert bool(method.found_.logits.isfinite().all())


@pytest.mark.parametrize("backbone", ["gcn", "gat"])
def test_tickets_prune_weights_along(backbone):
    method = fit(sparsity=0.14, weight_prune_ratio=0.2, backbone=backbone)
    assert len(method.found_.history) == 3
    sizes = {name: p.shape for name, p in method.result_.model.named_parameters() if p.dim() > 1}
    assert {name: mask.shape for name, mask in method.weight_masks_.items()} == sizes
    left = total = sum(mask.numel() for mask in method.weight_masks_.values())
    for _ in method.found_.history:
        left -= round(0.2 * left)
    assert sum(int(mask.sum()) for mask in method.weight_masks_.values()) == left < total
    for name, weight in method.result_.model.named_parameters():
        if name in method.weight_masks_:
            assert torch.equal(weight != 0, method.weight_masks_[name]), "pruned weights are 0, the others are not"
            assert not weight._backward_hooks
    assert same(method, fit(sparsity=0.14, weight_prune_ratio=0.2, backbone=backbone))
    assert fit(sparsity=0.1).weight_masks_ == {}


def test_tickets_from_the_cache_are_the_same(tmp_path):
    ticket = {"sparsity": 0.2, "weight_prune_ratio": 0.2}
    fresh = fit(**ticket)
    for _ in range(2):
        again = fit(**ticket, cache=Cache(tmp_path))
        assert same(fresh, again)
        assert all(torch.equal(mask, again.weight_masks_[name]) for name, mask in fresh.weight_masks_.items())


def test_weights_go_by_magnitude_over_all_matrices():
    kept = {"a": torch.tensor([[True, True], [False, True]]), "b": torch.tensor([[True, True]])}
    magnitudes = {"a": torch.tensor([[0.1, 0.9], [5.0, 0.3]]), "b": torch.tensor([[0.2, 0.8]])}
    masks = prune_weights(magnitudes, kept, 0.4)
    assert masks["a"].tolist() == [[False, True], [False, True]] and masks["b"].tolist() == [[False, True]]


def test_masks_of_one_change_nothing_and_learn():
    run = new_run(random_graph(nodes=30, edges=60), hidden=8, cache=False)
    network = run.network()
    network.module.eval()
    masked = Masked(run, network, run.edges, all_weights(network.module))
    for mask in (masked.mask, *masked.weight_masks.values()):
        assert 0 < (mask - 1).abs().max() <= 1.1e-5
        mask.data.fill_(1.0)
    assert torch.equal(masked.logits(), network.logits(run.edges))
    assert torch.equal(logits_with(network, {}, run.edges, None, None), network.logits(run.edges))
    (run.task.loss(masked.logits(nodes=run.task.train)) + masked.norm()).backward()
    for mask in (masked.mask, *masked.weight_masks.values()):
        assert bool((mask.grad != 1).any())


@pytest.mark.parametrize("ticket", [0.0, 0.2])
def test_own_model(ticket):
    data = random_graph(nodes=30, edges=60)
    model = GCN(5, 8, 2, out_channels=3, dropout=0.5)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    runs = [
        fit(data, model=model, sparsity=0.12, weight_prune_ratio=ticket, cache=True, hidden=None, heads=None)
        for _ in range(2)
    ]
    assert same(*runs) and isinstance(runs[0].result_.model, GCN)
    check_mask(data, runs[0].result_.edge_mask, sparsity=0.12)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize(
    "wrong", [{"prune_ratio": 0}, {"prune_ratio": 1.0}, {"round_epochs": 0}, {"l1": -1}, {"weight_prune_ratio": 1}]
)
def test_wrong_arguments_get_one_clear_line(wrong):
    with pytest.raises(InputError, match=f"UGS: {next(iter(wrong))} = "):
        make(sparsity=0.5, **wrong)
