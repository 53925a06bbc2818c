"""A small typed graph of authors, papers, venues and terms, drawn at random: for tests, examples and the demo."""

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.data.registry import DATASETS, Dataset, DatasetInfo

TOPICS = 4


def papers(*, authors: int = 300, seed: int = 0) -> HeteroData:
    """Authors of four topics, to be told from what they write.

    A paper has the topic of its first author, a venue of that topic nine times in ten, words of that topic one time in
    three; it cites papers, mostly of its topic. Authors and terms say nothing by themselves: authors have noise for
    features, terms and venues have none.

    Args:
        authors: number of authors; three papers for each.
        seed: the same seed gives the same graph.
    """
    if authors < 12:
        raise InputError(f"papers: authors={authors} must be 12 or more")
    generator = torch.Generator().manual_seed(seed)

    def draw(high: int, count: int) -> Tensor:
        return torch.randint(0, high, (count,), generator=generator)

    def mixed(topic: Tensor, share: float, each: int) -> Tensor:
        """One of ``each`` members of the topic with this chance, else one of any topic."""
        loyal = torch.rand(topic.numel(), generator=generator) < share
        return torch.where(loyal, topic, draw(TOPICS, topic.numel())) * each + draw(each, topic.numel())

    number, data = 3 * authors, HeteroData()
    y = torch.arange(authors) % TOPICS
    first = draw(authors, number)
    topic = y[first]
    ids = torch.arange(number)
    same = [(y == t).nonzero().flatten() for t in range(TOPICS)]
    second = torch.stack([same[t][draw(same[t].numel(), 1)][0] for t in topic.tolist()])
    data["author"].x = torch.randn(authors, 8, generator=generator)
    data["author"].y = y
    words = torch.nn.functional.one_hot(topic, TOPICS).float()
    data["paper"].x = torch.cat([words * 0.5, torch.zeros(number, 12)], 1) + torch.randn(
        number, 16, generator=generator
    )
    data["venue"].num_nodes, data["term"].num_nodes = 3 * TOPICS, 40 * TOPICS
    _add(data, "author", "writes", "paper", torch.cat([torch.stack([first, ids]), torch.stack([second, ids])], 1))
    _add(data, "paper", "appears_in", "venue", torch.stack([ids, mixed(topic, 0.9, 3)]))
    _add(data, "paper", "has", "term", torch.stack([ids.repeat(6), mixed(topic.repeat(6), 0.34, 40)]))
    by_topic = torch.sort(topic, stable=True).indices
    near = by_topic[(torch.argsort(by_topic).repeat(3) + draw(60, 3 * number)) % number]
    cites = torch.stack([ids.repeat(3), near])
    _add(data, "paper", "cites", "paper", cites[:, cites[0] != cites[1]])
    role = torch.randperm(authors, generator=generator)
    for name, part in zip(("train", "val", "test"), (role % 3 == 0, role % 3 == 1, role % 3 == 2), strict=True):
        data["author"][f"{name}_mask"] = part
    return data


def _add(data: HeteroData, source: str, name: str, target: str, columns: Tensor) -> None:
    columns = torch.unique(columns, dim=1)
    data[source, name, target].edge_index = columns
    data[target, f"rev_{name}", source].edge_index = columns.flip(0)


_INFO = DatasetInfo("papers", 1372, 10_594, 8, TOPICS, "accuracy", False, "a third each", "drawn at random, typed")
DATASETS.register("papers")(Dataset(_INFO, papers))
