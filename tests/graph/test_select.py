import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gst.base.errors import InputError
from gst.graph.select import budget, exchange, top_k
from gst.train.schedule import inverse_power, num_updates, swap_count

SCORES = st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, math.inf, -math.inf, math.nan]) | st.floats(-2, 2, width=32)


@given(st.lists(SCORES, max_size=20), st.sampled_from([torch.float32, torch.float64]), st.data())
def test_top_k_is_a_sort_by_score_then_id(scores, dtype, data):
    k = data.draw(st.integers(0, len(scores)))
    undefined = [math.isnan(score) for score in scores]  # the highest of all
    order = sorted(range(len(scores)), key=lambda e: (not undefined[e], 0 if undefined[e] else -scores[e], e))
    found = torch.tensor(scores, dtype=dtype)
    mask = top_k(found, k).nonzero().flatten().tolist()
    assert mask == sorted(order[:k])
    assert mask == sorted(torch.sort(found, descending=True, stable=True).indices[:k].tolist())


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.3, 0.7, 1.0])), min_size=1, max_size=20), st.data())
def test_exchange_drops_the_lowest_and_regrows_the_highest(edges, data):
    keep_mask = torch.tensor([kept for kept, _ in edges])
    scores = torch.tensor([score for _, score in edges])
    kept, pruned = keep_mask.nonzero().flatten().tolist(), (~keep_mask).nonzero().flatten().tolist()
    count = data.draw(st.integers(0, min(len(kept), len(pruned))))
    after = exchange(keep_mask, scores, count)
    dropped = sorted(kept, key=lambda e: (scores[e], -e))[:count]
    grown = sorted(pruned, key=lambda e: (-scores[e], e))[:count]
    assert set(after.nonzero().flatten().tolist()) == set(kept) - set(dropped) | set(grown)
    assert int(after.sum()) == len(kept)


@given(st.integers(1, 10_000), st.floats(0, 0.999))
def test_budget_follows_the_formula(edges, sparsity):
    assert budget(edges, sparsity=sparsity) == edges - round(sparsity * edges)


@pytest.mark.parametrize("bad", [-0.1, 1.0, 1.5, 10**400, float("nan"), float("inf")])
def test_bad_sparsity(bad):
    with pytest.raises(InputError, match="outside \\[0, 1\\)"):
        budget(10, sparsity=bad)


@pytest.mark.parametrize("bad", ["0.5", True, False, 0.5j, [0.5], torch.tensor(0.5)])
def test_a_sparsity_of_the_wrong_type_is_named(bad):
    with pytest.raises(InputError, match=f"sparsity is a {type(bad).__name__} .*: int or float is needed"):
        budget(10, sparsity=bad)


@pytest.mark.parametrize("bad", [1.5, "3", True, float("nan"), torch.tensor(3)])
def test_a_count_of_the_wrong_type_is_named(bad):
    with pytest.raises(InputError, match=f"keep is a {type(bad).__name__} .*: int is needed"):
        budget(10, keep=bad)


def test_bad_counts():
    with pytest.raises(InputError, match="keep 11 is outside 0 … 10"):
        budget(10, keep=11)
    with pytest.raises(InputError, match=r"either sparsity= .* or keep="):
        budget(10)
    with pytest.raises(InputError, match=r"either sparsity= .* or keep="):
        budget(10, sparsity=0.5, keep=3)


def test_schedule_is_the_paper_s():
    updates = num_updates(400, 20)
    assert updates == 20 and num_updates(401, 20) == 21
    assert inverse_power(5, updates, 0.3, 2) == pytest.approx(0.3 * 0.75**2)
    assert inverse_power(updates, updates, 0.3, 1) == 0
    assert swap_count(0.3, kept=60, pruned=41) == 12
