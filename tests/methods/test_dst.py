import pytest
import torch

import gst
from graphs import random_graph
from gst import MEST, SET, SNFS, SNIP, InputError, RigL
from gst.base.randomness import seeded
from gst.graph import edgeset
from gst.methods import dynamic, mest, rigl, snfs, snip
from gst.storage.checkpoint import Checkpoint
from gst.train.anchor import anchored_trainer, find_anchor
from gst.train.settings import Masking

FEW = {"hidden": 8, "anchor_epochs": 4, "sparse_epochs": 9, "interval": 2, "cache": False}
METHODS = [SET, RigL, SNFS, MEST]


def fit(method, data=None, **more):
    data = random_graph(nodes=40, edges=120) if data is None else data
    return method(sparsity=0.5, **{**FEW, **more}).fit(data)


@pytest.fixture
def updates(monkeypatch):
    """Every update of a fit: the mask before and after, both scores, and the count."""
    seen, real = [], edgeset.exchange

    def watched(keep, drop, count, grow, choose):
        after = real(keep, drop, count, grow, choose)
        seen.append((keep, after, drop, grow, count))
        return after

    monkeypatch.setattr(edgeset, "exchange", watched)
    return seen


@pytest.fixture
def gradients(monkeypatch):
    """Every gradient that a fit asks for, with the weights of that moment."""
    seen, real = [], dynamic.gradient

    def watched(run, trainer, keep_mask):
        seen.append((real(run, trainer, keep_mask), dynamic.edge_weights(run, trainer)))
        return seen[-1][0]

    for module in (mest, rigl, snfs, snip):
        monkeypatch.setattr(module, "gradient", watched)
    return seen


@pytest.mark.parametrize("method", METHODS)
def test_an_update_drops_the_lowest_and_regrows_the_highest(method, updates):
    fit(method)
    assert len(updates) == 4  # D = 9, ΔT = 2; the fifth would come after the end
    for keep, after, drop, grow, count in updates:
        gone, come = keep & ~after, after & ~keep
        assert int(gone.sum()) == int(come.sum()) == count > 0
        assert float(drop[gone].max()) <= float(drop[keep & after].min())
        assert float(grow[come].min()) >= float(grow[~keep & ~after].max())


@pytest.mark.parametrize("method", [gst.GST, *METHODS])
def test_what_is_returned_is_the_mask_after_the_last_update_with_its_best_model(method, updates):
    est = fit(method)
    assert torch.equal(est.found_.keep_mask, updates[-1][1])
    assert est.result_.metrics["updates"] == len(updates) == 4
    on_the_last_mask = [step["val"] for step in est.found_.history if step["epoch"] > 8]
    assert est.found_.val == max(on_the_last_mask) and len(on_the_last_mask) == 1


@pytest.mark.parametrize("seed", range(4))
def test_the_best_epoch_of_all_is_a_setting(seed, updates):
    est = fit(SET, output="best", seed=seed)
    vals = [step["val"] for step in est.found_.history]
    first = vals.index(max(vals))
    done = sum(step["swapped"] > 0 for step in est.found_.history[:first])
    assert est.result_.metrics["updates"] == done and est.found_.val == max(vals)
    masks = [updates[0][0], *(after for _, after, *_ in updates)]
    assert torch.equal(est.found_.keep_mask, masks[done])


def test_no_update_comes_after_the_last_epoch(updates):
    est = fit(SET, decay=0.0, sparse_epochs=8)  # a share that never falls
    assert [step["epoch"] for step in est.found_.history if step["swapped"]] == [2, 4, 6]
    assert est.result_.metrics["updates"] == 3


def test_the_one_shot_cut_has_had_no_update():
    assert fit(SET, tune=False).result_.metrics["updates"] == 0
    assert fit(SNIP).result_.metrics["updates"] == 0


def test_rigl_regrows_by_the_gradient_and_drops_by_magnitude(updates, gradients):
    fit(RigL)
    for (_, _, drop, grow, _), (gradient, weights) in zip(updates, gradients, strict=True):
        assert torch.equal(grow, gradient.abs()) and torch.equal(drop, weights.abs())


def test_snfs_regrows_by_all_gradients_so_far(updates, gradients):
    fit(SNFS, momentum=0.8)
    for number, (_, _, drop, grow, _) in enumerate(updates):
        epochs = 2 * (number + 1)
        wanted = sum(0.2 * 0.8 ** (epochs - 1 - i) * gradients[i][0] for i in range(epochs))
        assert torch.allclose(grow, wanted.abs(), atol=1e-9)
        assert torch.equal(drop, gradients[epochs - 1][1].abs())


def test_mest_drops_by_magnitude_and_gradient(updates, gradients):
    fit(MEST, gradient_weight=3.0)
    for (keep, _, drop, _, _), (gradient, weights) in zip(updates, gradients, strict=False):  # one more at the end
        w, g = weights.double().abs(), gradient.double().abs()
        assert torch.allclose(drop, w / w[keep].std(correction=0) + 3 * g / g[keep].std(correction=0))


@pytest.mark.parametrize("method", [SET, MEST])
def test_regrowth_at_random_is_uniform(method):
    """Of 30 pruned edges each comes back as often as any other: χ² of 1200 draws of 5."""
    keep = torch.zeros(40, dtype=torch.bool)
    keep[:10] = True
    phase, counts, rule = dynamic.SparsePhase(None, keep), torch.zeros(40), method(keep=1)
    with seeded(0):
        for _ in range(1200):
            drop = torch.arange(40.0)
            counts += edgeset.exchange(keep, drop, 5, rule.grow_scores(None, phase, drop)).float()
    came = counts[10:]
    assert int(came.sum()) == 6000 and float(((came - 200) ** 2 / 200).sum()) < 58  # 0.999 quantile, 29 degrees


def test_snip_keeps_what_the_loss_is_most_sensitive_to_at_the_anchor():
    data = random_graph(nodes=40, edges=120)
    est = fit(SNIP, data)
    run = est.run(data)
    anchor = find_anchor(run, Masking())
    network = anchored_trainer(run, anchor, Masking()).network
    values = anchor.mask.clone().requires_grad_()
    network.module.eval()
    run.task.loss(network.logits(run.edges, values)[run.task.train]).backward()
    wanted = (anchor.mask * values.grad).abs()
    assert torch.allclose(est.result_.scores, run.edges.to_columns(wanted.double(), torch.inf), atol=1e-9)
    lowest = est.result_.scores[est.result_.edge_mask].min()
    assert bool((est.result_.scores[~est.result_.edge_mask] <= lowest).all())
    assert all(step["swapped"] == 0 for step in est.found_.history)


@pytest.mark.parametrize("method", METHODS)
def test_without_tuning_all_are_gst_without_tuning(method):
    assert torch.equal(fit(method, tune=False).result_.edge_mask, fit(gst.GST, tune=False).result_.edge_mask)


@pytest.mark.parametrize("method", [SNIP, *METHODS])
def test_resumed_in_the_sparse_phase(method, tmp_path):
    """Momentum and random numbers come back with the state."""
    wanted = fit(method)

    def cut(progress):
        if (progress.phase, progress.epoch) == ("sparse", 6):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Checkpoint(tmp_path, every=0) as checkpoint:
        fit(method, callbacks=cut, checkpoint=checkpoint)
    found = fit(method, checkpoint=tmp_path)
    assert torch.equal(found.result_.edge_mask, wanted.result_.edge_mask) and torch.equal(
        found.result_.scores, wanted.result_.scores
    )
    assert torch.equal(found.found_.logits, wanted.found_.logits) and found.found_.history == wanted.found_.history


def test_options_are_checked():
    with pytest.raises(InputError, match="SNFS: momentum = 1"):
        SNFS(sparsity=0.5, momentum=1)
    with pytest.raises(InputError, match="MEST: gradient_weight = -1"):
        MEST(sparsity=0.5, gradient_weight=-1)
