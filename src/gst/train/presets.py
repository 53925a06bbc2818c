"""Settings that go with a data set: the paper's table, and those of dense models as strong as the published ones."""

from gst.base.names import normalise_name
from gst.train.settings import Value

# E, D, lr and ΔT of the paper's table, by data set; E where a backbone has its own
PAPER = {
    "cora": (100, 400, 0.001, 20),
    "citeseer": (200, 500, 0.001, 20),
    "pubmed": (200, 600, 0.001, 20),
    "arxiv": (200, 300, 0.01, 3),
    "proteins": (200, 300, 0.01, 3),
    "products": (200, 300, 0.01, 3),
}
PAPER_ANCHOR = {("citeseer", "gcn"): 100, ("arxiv", "clustergcn"): 100}
# its inductive setting is for these two, each with the batches that it was made for
INDUCTIVE = {"sage": "neighbors", "clustergcn": "clusters"}
OGB = ("ogbn", "synthetic")  # what comes before the name of a graph of OGB, or of its twin

# as the paper has it for its own, an anchor, then twenty intervals
_COMMON: dict[str, Value] = {"anchor_epochs": 100, "sparse_epochs": 100, "interval": 5, "hidden": 64, "lr": 0.01}
_WIKIPEDIA: dict[str, Value] = {
    **_COMMON,
    "sparse_epochs": 200,
    "interval": 10,
    "hidden": 128,
    "dropout": 0.2,
    "weight_decay": 0.0,
}
_HETEROPHILOUS: dict[str, Value] = {**_COMMON, "layers": 3, "residual": True, "dropout": 0.2, "weight_decay": 0.0}
_FOLDERS: dict[str, Value] = {**_COMMON, "hidden": 128}
_TYPED: dict[str, Value] = {
    "anchor_epochs": 60,
    "sparse_epochs": 60,
    "interval": 3,
    "hidden": 64,
    "lr": 0.005,
    "weight_decay": 1e-4,
}
# docs/guide/data-sets.md has what a dense GCN reaches with them, and what is published
DENSE: dict[str, dict[str, Value]] = {
    **dict.fromkeys(("computers", "photo", "cs", "physics"), _COMMON),
    **dict.fromkeys(("chameleon", "squirrel"), _WIKIPEDIA),
    **dict.fromkeys(("tolokers", "minesweeper", "questions", "romanempire", "amazonratings"), _HETEROPHILOUS),
    **dict.fromkeys(("arxivcitations", "debian"), _FOLDERS),
    **dict.fromkeys(("acm", "dblp", "imdb"), _TYPED),
    "papers": {**_TYPED, "hidden": 32},
    "digits": {"anchor_epochs": 100, "sparse_epochs": 200, "hidden": 64, "lr": 0.01},
}

LINKS: dict[str, Value] = {**_COMMON, "sparse_epochs": 200, "interval": 10, "dropout": 0.2, "weight_decay": 0.0}


def preset(dataset: str | None, backbone: str) -> dict[str, Value]:
    """The settings that go with a published data set and this backbone; for any other name none.

    >>> preset("Cora", "gat"), preset("mine", "gat")
    ({'anchor_epochs': 100, 'sparse_epochs': 400, 'lr': 0.001, 'interval': 20}, {})
    """
    name, _, options = (dataset or "").partition(":")
    if "task=links" in options.split(","):
        return dict(LINKS)
    name = normalise_name(name)
    large = next((name.removeprefix(before) for before in OGB if name.startswith(before)), "")
    if name in DENSE:
        return dict(DENSE[name])
    graph = large if large in PAPER else name
    if graph not in PAPER:
        return {}
    anchor, sparse, lr, interval = PAPER[graph]
    anchor = PAPER_ANCHOR.get((graph, normalise_name(backbone)), anchor)
    values: dict[str, Value] = {"anchor_epochs": anchor, "sparse_epochs": sparse, "lr": lr, "interval": interval}
    if large and normalise_name(backbone) in INDUCTIVE:
        values |= {"inductive": True, "batch": INDUCTIVE[normalise_name(backbone)]}
    return values
