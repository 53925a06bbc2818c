"""The cap on what a node reads, against brute force."""

from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gst
from graphs import random_graph
from gst.graph.cap import Cap, capped_budget, place_in_group
from gst.graph.edgeset import EdgeSet
from gst.graph.select import exchange, top_k

ARCS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=8)


def fits(target, room, chosen):
    return all(sum(int(target[e]) == node for e in chosen) <= room for node in range(4))


@given(arcs=ARCS, room=st.integers(1, 3), k=st.integers(0, 8))
def test_the_best_edges_that_fit(arcs, room, k):
    scores, target = (torch.tensor(column) for column in zip(*arcs, strict=True))
    cap = Cap(torch.full((4,), room), target)
    ids = range(len(arcs))
    feasible = [c for size in ids for c in combinations(ids, size + 1) if fits(target, room, c)]
    assert cap.capacity == max(map(len, feasible))
    number = min(k, cap.capacity)
    mask = cap.top_k(scores.double(), k)
    assert int(mask.sum()) == number and fits(target, room, mask.nonzero().flatten().tolist())
    best = max((sum(int(scores[e]) for e in c) for c in feasible if len(c) == number), default=0)
    assert int(scores[mask].sum()) == best


@given(arcs=ARCS, room=st.integers(1, 3), count=st.integers(0, 4), seed=st.integers(0, 9))
def test_an_exchange_keeps_number_and_cap(arcs, room, count, seed):
    drop, target = (torch.tensor(column) for column in zip(*arcs, strict=True))
    grow = torch.rand(len(arcs), generator=torch.Generator().manual_seed(seed))
    cap = Cap(torch.full((4,), room), target)
    before = cap.top_k(grow.flip(0), max(1, cap.capacity - 2))
    count = min(count, int(before.sum()), int((~before).sum()))
    after = cap.exchange(before, drop.double(), count, grow)
    assert int(after.sum()) == int(before.sum()) and fits(target, room, after.nonzero().flatten().tolist())
    assert int((before & ~after).sum()) <= count


def test_without_a_limit_in_reach_it_is_the_plain_choice():
    scores, grow = torch.randint(0, 5, (2, 60), generator=torch.Generator().manual_seed(0)).double()
    cap = Cap(torch.full((4,), 60), torch.arange(60) % 4)
    mask = top_k(scores, 20)
    assert torch.equal(cap.top_k(scores, 20), mask)
    assert torch.equal(cap.exchange(mask, scores, 7, grow), exchange(mask, scores, 7, grow))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_places(group):
    assert place_in_group(torch.tensor(group)).tolist() == [group[:i].count(g) for i, g in enumerate(group)]


def test_an_impossible_pair_says_what_fits():
    edges = EdgeSet.from_data(random_graph(nodes=20, edges=40), "arcs")
    largest = int(torch.bincount(edges.pairs[1]).clamp(max=2).sum())
    assert capped_budget(edges, 2, None, None) == capped_budget(edges, 2, None, largest) == largest
    with pytest.raises(gst.InputError, match=f"max_degree = 2 leaves room for {largest} of {edges.num_edges} arcs"):
        capped_budget(edges, 2, None, largest + 1)
    for bad in (0, -1, 2.5, True, "many"):
        with pytest.raises(gst.InputError, match="max_degree"):
            gst.SCAN(max_degree=bad)
    with pytest.raises(gst.InputError, match="take by = "):
        gst.Deploy(max_degree=3, by="pairs")
