import torch

from gst.graph.pairs import Keys, draw_negatives


def test_a_set_of_pairs_knows_both_orders_and_nothing_else():
    known = Keys.of(torch.tensor([[0, 5, 2], [3, 1, 2]]))
    asked = torch.tensor([[3, 1, 0, 2, 0], [0, 5, 5, 2, 1]])
    assert known.has(asked).tolist() == [True, True, False, True, False]
    assert not Keys.of(torch.zeros(2, 0, dtype=torch.long)).has(asked).any()


def test_negatives_are_uniform_over_all_pairs_that_are_not_known():
    known = torch.tensor([[0, 1, 2], [1, 2, 3]])
    drawn = draw_negatives(6000, 5, Keys.of(known), torch.Generator().manual_seed(0))
    pairs = drawn.sort(0).values
    counts = torch.bincount(pairs[0] * 5 + pairs[1], minlength=25)
    open_pairs = [(u, v) for u in range(5) for v in range(u + 1, 5) if (u, v) not in {(0, 1), (1, 2), (2, 3)}]
    assert sorted(counts.nonzero().flatten().tolist()) == [u * 5 + v for u, v in open_pairs]
    expected = 6000 / len(open_pairs)
    assert ((counts[counts > 0] - expected).abs() < 5 * expected**0.5).all()
