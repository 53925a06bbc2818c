"""A small graph of accounts, devices and transfers, drawn at random: the structure of fraud, not its difficulty."""

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gst.base.errors import InputError
from gst.data.registry import DATASETS, Dataset, DatasetInfo

RING = 5  # fraudulent accounts that share devices
RARE = 0.04  # share of them
WIDTH = 8  # features of an account, and of a transfer


def fraud(*, accounts: int = 1000, typed: int = 1, seed: int = 0) -> HeteroData | Data:
    """Accounts use devices and make transfers, which other accounts receive; 4 % of the accounts are fraudulent.

    Fraudulent accounts come in rings of five that share two devices and send to one another, more and larger sums than
    others, who have a device of their own and send to anybody. Features alone say little: those of an account are
    noise with a small shift. Labels are rare, so accuracy says nothing: the metric is ROC-AUC.

    Args:
        accounts: number of accounts; three transfers for each.
        typed: 1 for a ``HeteroData``; 0 for the same as one ``Data``, whose nodes are accounts, devices and transfers
            in this order, with their type in three further features, and labels of accounts only.
        seed: the same seed gives the same graph.
    """
    if accounts < 250:
        raise InputError(f"fraud: accounts={accounts} must be 250 or more: each part of the split needs some frauds")
    if typed not in (0, 1):
        raise InputError(f"fraud: typed={typed} is neither 1, a typed graph, nor 0, a plain one")
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    rings = round(RARE * accounts / RING)
    y = (torch.arange(accounts) < RING * rings).long()
    ring = torch.where(y == 1, torch.arange(accounts) // RING, -1)

    def draw(high: int, count: int) -> Tensor:
        return torch.randint(0, high, (count,), generator=generator)

    own = torch.arange(accounts) + 2 * rings  # a device of one's own; the first ones belong to the rings
    shared = 2 * ring + draw(2, accounts)
    device = torch.where((y == 1) & (torch.rand(accounts, generator=generator) < 0.8), shared, own)
    visits = torch.stack([draw(accounts, accounts // 5), draw(accounts + 2 * rings, accounts // 5)])
    uses = torch.cat([torch.stack([torch.arange(accounts), device]), visits], 1)

    number = 3 * accounts
    sender = torch.cat([draw(accounts, number - RING * rings * 3), (y == 1).nonzero().flatten().repeat(3)])
    mate = ring[sender] * RING + (sender + 1 + draw(RING - 1, number)) % RING
    inside = (y[sender] == 1) & (torch.rand(number, generator=generator) < 0.6)
    receiver = torch.where(inside, mate, (sender + 1 + draw(accounts - 1, number)) % accounts)  # never the sender
    order = torch.randperm(number, generator=generator)
    sender, receiver, large = sender[order], receiver[order], inside[order].float()

    data["account"].x = torch.randn(accounts, WIDTH, generator=generator) + 0.3 * y[:, None]
    data["account"].y = y
    data["device"].num_nodes = accounts + 2 * rings
    data["transfer"].x = torch.randn(number, WIDTH, generator=generator) + 0.7 * large[:, None]
    _add(data, "account", "uses", "device", uses)
    _add(data, "account", "sends", "transfer", torch.stack([sender, torch.arange(number)]))
    _add(data, "transfer", "reaches", "account", torch.stack([torch.arange(number), receiver]))
    part = _parts(y, generator)
    for name, role in (("train", 0), ("val", 1), ("test", 2)):
        data["account"][f"{name}_mask"] = part == role
    return data if typed else plain(data)


def plain(data: HeteroData) -> Data:
    """The same graph with nodes of one type: accounts, then devices, then transfers."""
    kinds = ("account", "device", "transfer")
    sizes = [int(data[kind].num_nodes) for kind in kinds]
    start = dict(zip(kinds, [0, sizes[0], sizes[0] + sizes[1]], strict=True))
    nodes = sum(sizes)
    x = torch.zeros(nodes, WIDTH + len(kinds))
    for number, (kind, size) in enumerate(zip(kinds, sizes, strict=True)):
        rows = slice(start[kind], start[kind] + size)
        x[rows, WIDTH + number] = 1
        if "x" in data[kind]:
            x[rows, :WIDTH] = data[kind].x
    columns = [
        data[source, name, target].edge_index + torch.tensor([[start[source]], [start[target]]])
        for source, name, target in data.edge_types
    ]
    y = torch.full((nodes,), -1)
    y[: sizes[0]] = data["account"].y
    masks = {name: torch.zeros(nodes, dtype=torch.bool) for name in ("train_mask", "val_mask", "test_mask")}
    for name, mask in masks.items():
        mask[: sizes[0]] = data["account"][name]
    return Data(x=x, y=y, edge_index=torch.unique(torch.cat(columns, 1), dim=1), **masks)


def _parts(y: Tensor, generator: torch.Generator) -> Tensor:
    """0, 1 or 2 for training, validation and test: half, a quarter and a quarter of either class."""
    part = torch.empty_like(y)
    for kind in (0, 1):
        ids = (y == kind).nonzero().flatten()
        ids = ids[torch.randperm(ids.numel(), generator=generator)]
        part[ids] = torch.tensor([0, 1, 0, 2])[torch.arange(ids.numel()) % 4]
    return part


def _add(data: HeteroData, source: str, name: str, target: str, columns: Tensor) -> None:
    columns = torch.unique(columns, dim=1)
    data[source, name, target].edge_index = columns
    data[target, f"rev_{name}", source].edge_index = columns.flip(0)


_INFO = DatasetInfo(
    "fraud", 5016, 7200, WIDTH, 2, "rocauc", False, "50/25/25 % of each class", "drawn at random, typed"
)
DATASETS.register("fraud")(Dataset(_INFO, fraud))
