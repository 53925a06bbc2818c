import pytest
import torch

import gst
from gst.data.links import PARTS, link_split
from gst.graph.pairs import Keys, pair_keys
from gst.testing import KINDS, random_graph


@pytest.mark.parametrize("kind", KINDS)
def test_every_edge_is_a_message_or_supervised_once_and_never_both(kind):
    data = random_graph(nodes=40, edges=150, **kind)
    split = link_split(data, seed=1, val=0.1, test=0.2)
    loops = data.edge_index[0] == data.edge_index[1]
    before = set(pair_keys(data.edge_index[:, ~loops]).tolist())
    messages = split.edge_index[:, split.edge_index[0] != split.edge_index[1]]
    parts = [set(pair_keys(messages).tolist())] + [set(pair_keys(split[f"{part}_pairs"]).tolist()) for part in PARTS]
    assert set.union(*parts) == before and sum(map(len, parts)) == len(before)
    assert len(parts[3]) == round(0.2 * len(before)) and len(parts[2]) == round(0.1 * len(before))


@pytest.mark.parametrize("kind", KINDS)
def test_attributes_of_edges_follow_the_messages(kind):
    data = random_graph(nodes=40, edges=150, **kind)
    data.edge_attr = data.edge_index.t().float()
    split = link_split(data, val=0.1, test=0.2)
    assert torch.equal(split.edge_attr, split.edge_index.t().float())
    assert data.edge_attr.shape[0] == data.num_edges, "the data given has changed"


def test_negatives_are_no_edges_that_their_part_may_know():
    data = random_graph(nodes=40, edges=200)
    split = link_split(data, val=0.1, test=0.2)
    every = Keys.of(data.edge_index)
    assert not every.has(split.val_negatives).any() and not every.has(split.test_negatives).any()
    allowed = Keys.of(torch.cat([split.edge_index, split.train_pairs], 1))
    assert not allowed.has(split.train_negatives).any()
    for part in PARTS:
        assert split[f"{part}_negatives"].shape == split[f"{part}_pairs"].shape
        assert (split[f"{part}_negatives"][0] != split[f"{part}_negatives"][1]).all()


def test_the_seed_decides():
    data = random_graph(nodes=40, edges=200)
    one, again, other = (link_split(data, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.edge_index, again.edge_index) and torch.equal(one.test_negatives, again.test_negatives)
    assert not torch.equal(one.test_pairs, other.test_pairs)


def test_load_splits_by_name_and_by_argument():
    one = gst.load("digits:nodes=200", task="links", split=2)
    again = gst.load("digits:nodes=200,task=links,split=2")
    assert one.name == again.name == "digits:nodes=200,task=links"
    assert torch.equal(one.test_pairs, again.test_pairs) and torch.equal(one.edge_index, again.edge_index)
    assert gst.load("digits:task=nodes").num_edges == gst.load("digits").num_edges


def test_own_data(tmp_path):
    data = random_graph(nodes=60, edges=200)
    torch.save({"x": data.x, "y": data.y, "edge_index": data.edge_index}, tmp_path / "mine.pt")
    split = gst.load(tmp_path / "mine.pt", task="links")
    assert split.name == "mine:task=links" and split.num_edges < data.num_edges


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"val": 0.6, "test": 0.5}, "too few"),
        ({"test": 0}, "test = 0: a share"),
        ({"supervision": 1.5}, "supervision = 1.5"),
    ],
)
def test_bad_shares(arguments, message):
    with pytest.raises(gst.InputError, match=message):
        link_split(random_graph(), **arguments)


def test_bad_names():
    with pytest.raises(gst.InputError, match="unknown task"):
        gst.load("digits", task="edges")
    with pytest.raises(gst.InputError, match="links take a number"):
        gst.load("digits", task="links", split="public")


def test_a_complete_graph_has_no_negatives():
    index = torch.combinations(torch.arange(8)).t()
    data = random_graph(nodes=8)
    data.edge_index = torch.cat([index, index.flip(0)], 1)
    with pytest.raises(gst.InputError, match="nearly all"):
        link_split(data, val=0.2, test=0.2)
