import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gst.base.errors import InputError
from gst.data.splits import PLANETOID, RANDOM, Masks, Sizes, choose, even_quotas, paper_split, parse_split, random_split

LABELS = torch.arange(3000) % 5


def counts(masks: Masks) -> list[int]:
    return [int(mask.sum()) for mask in masks]


@given(
    st.lists(st.integers(-1, 4), min_size=1, max_size=80).filter(lambda labels: max(labels) >= 0),
    st.integers(1, 25),
    st.integers(0, 40),
    st.one_of(st.none(), st.integers(0, 40)),
    st.booleans(),
)
def test_random_split_is_disjoint_within_sizes_and_labelled(labels, train, val, test, per_class):
    y = torch.tensor(labels)
    masks = random_split(y, Sizes(train, val, test, per_class), seed=3)
    assert not (masks.train & masks.val | masks.train & masks.test | masks.val & masks.test).any()
    assert not any((mask & (y < 0)).any() for mask in masks)
    for label in y[y >= 0].unique():
        assert 1 <= int((masks.train & (y == label)).sum()) <= train
    if test is None:
        assert sum(counts(masks)) == int((y >= 0).sum())


def test_random_split_sizes():
    assert counts(random_split(LABELS)) == [100, 150, 2750]
    assert counts(random_split(LABELS, PLANETOID)) == [100, 500, 1000]
    assert torch.bincount(LABELS[random_split(LABELS).train]).tolist() == [20] * 5
    assert torch.bincount(LABELS[random_split(LABELS).val]).tolist() == [30] * 5


def test_small_classes_give_fewer_nodes():
    masks = random_split(torch.tensor([0] * 9 + [1] * 3 + [2]))
    assert counts(masks) == [3 + 1 + 1, 3 + 1, 3 + 1]


def test_seed_decides():
    same, again, other = (random_split(LABELS, RANDOM, seed) for seed in (1, 1, 2))
    assert torch.equal(same.train, again.train) and not torch.equal(same.train, other.train)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=8), st.integers(0, 100))
def test_even_quotas_are_exact_and_even(sizes, total):
    sizes = np.array(sizes)
    quotas = even_quotas(sizes, total)
    assert quotas.sum() == min(total, sizes.sum()) and (quotas <= sizes).all()
    assert all(quotas[i] == sizes[i] or quotas[i] >= quotas.max() - 1 for i in range(sizes.size))


def test_paper_split_is_class_balanced():
    masks = paper_split(LABELS, 422)
    assert counts(masks) == [422, 500, 500]
    assert sorted(torch.bincount(LABELS[masks.train]).tolist()) == [84, 84, 84, 85, 85]


def test_choose_shipped_or_seeded():
    shipped = Masks(*(torch.rand(3000, 10) < 0.3 for _ in range(3)))
    for number in (0, 7):
        assert torch.equal(choose("g", LABELS, number, RANDOM, shipped).val, shipped.val[:, number])
    assert torch.equal(choose("g", LABELS, None, RANDOM, shipped).test, shipped.test[:, 0])
    assert torch.equal(choose("g", LABELS, "public", RANDOM, shipped).test, shipped.test[:, 0])
    one = Masks(*(mask[:, 0] for mask in shipped))
    assert torch.equal(choose("g", LABELS, None, PLANETOID, one).train, one.train)
    assert counts(choose("g", LABELS, 4, PLANETOID, one)) == [100, 500, 1000]
    assert counts(choose("g", LABELS, "random:4", PLANETOID, one)) == [100, 150, 2750]
    assert counts(choose("PubMed", LABELS, "paper", PLANETOID, one)) == [460, 500, 500]


def test_shipped_parts_may_differ_in_columns():
    shipped = Masks(torch.rand(3000, 4) < 0.3, torch.rand(3000, 4) < 0.3, torch.rand(3000) < 0.3)
    masks = choose("g", LABELS, 2, RANDOM, shipped)
    assert torch.equal(masks.train, shipped.train[:, 2]) and torch.equal(masks.test, shipped.test)


@pytest.mark.parametrize("split", ["best", -1, "random:x", "1.5", "public:3", ""])
def test_unknown_split_lists_the_right_ones(split):
    with pytest.raises(InputError, match="choose 'public', 'paper', 'random'"):
        parse_split(split)


def test_refusals_say_what_would_be_right():
    with pytest.raises(InputError, match=r"g ships no public split: use split='random'"):
        choose("g", LABELS, "public", RANDOM)
    with pytest.raises(InputError, match=r"Photo has no split 'paper': .* Cora, CiteSeer, PubMed only"):
        choose("Photo", LABELS, "paper", RANDOM)
    with pytest.raises(InputError, match="has no split 10: it ships 10, numbered 0 to 9"):
        choose("g", LABELS, 10, RANDOM, Masks(*torch.ones(3, 3000, 10, dtype=torch.bool)))
    with pytest.raises(InputError, match="no node has a label"):
        random_split(torch.full((9,), -1))
