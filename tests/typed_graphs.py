"""Small typed graphs."""

import torch
from torch import Tensor
from torch_geometric.data import HeteroData


def columns(sources: int, targets: int, count: int, generator: torch.Generator) -> Tensor:
    ends = [torch.randint(0, size, (count,), generator=generator) for size in (sources, targets)]
    return torch.unique(torch.stack(ends), dim=1)


def library(seed: int = 0, authors: int = 24, papers: int = 40, terms: int = 10) -> HeteroData:
    """Authors with labels, papers, and terms without features; one relation of every kind.

    ``writes`` has a reverse by name, ``has`` one by content in another order, ``cites`` goes one way, ``near`` is its
    own reverse, with self-loops and duplicates.
    """
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    data["paper"].x = torch.randn(papers, 8, generator=generator)
    y = torch.arange(authors) % 3
    data["author"].x = torch.randn(authors, 6, generator=generator) + y[:, None]
    data["author"].y = y
    role = torch.randperm(authors, generator=generator) % 3
    for number, split in enumerate(("train", "val", "test")):
        data["author"][f"{split}_mask"] = role == number
    data["term"].num_nodes = terms
    writes = columns(authors, papers, 2 * papers, generator)
    data["author", "writes", "paper"].edge_index = writes
    data["paper", "rev_writes", "author"].edge_index = writes.flip(0)
    data["author", "writes", "paper"].edge_attr = torch.arange(writes.shape[1])
    has = columns(papers, terms, 2 * papers, generator)
    data["paper", "has", "term"].edge_index = has
    mixed = torch.randperm(has.shape[1], generator=generator)
    data["term", "of", "paper"].edge_index = has.flip(0)[:, mixed]
    data["paper", "cites", "paper"].edge_index = columns(papers, papers, papers, generator)
    near = columns(authors, authors, authors, generator)
    near = near[:, near[0] != near[1]]
    loop = torch.tensor([[0], [0]])
    data["author", "near", "author"].edge_index = torch.cat([near, near.flip(0), near[:, :1], near[:, :1], loop], 1)
    return data


QUICK = {"hidden": 8, "anchor_epochs": 3, "sparse_epochs": 4, "cache": False}
