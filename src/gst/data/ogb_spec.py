"""Sizes of the large graphs of the Open Graph Benchmark (Hu et al., NeurIPS 2020), as published."""

from dataclasses import dataclass


@dataclass(frozen=True)
class OGBSpec:
    """One graph: what its raw files must hold, and the sizes that its synthetic twin imitates."""

    name: str
    nodes: int
    rows: int  # of the edge list: OGB's number of edges
    edges: int  # distinct pairs among the rows; arxiv lists some in both directions, products has 64 self-loops
    features: int  # of a node; those of proteins are averaged over its edges
    classes: int  # or labels, where a node has several
    split: str  # name of the official split
    parts: tuple[int, int, int]  # training, validation and test nodes
    hub: float  # largest degree over the mean degree
    multilabel: bool = False
    edge_features: bool = False  # edges have features, nodes have none

    @property
    def metric(self) -> str:
        return "rocauc" if self.multilabel else "accuracy"

    @property
    def shares(self) -> str:
        """The parts in percent.

        >>> ARXIV.shares
        '54/18/29 %'
        """
        return "/".join(f"{100 * part / self.nodes:.0f}" for part in self.parts) + " %"


ARXIV = OGBSpec(
    name="arxiv",
    nodes=169_343,
    rows=1_166_243,
    edges=1_157_799,
    features=128,
    classes=40,
    split="time",
    parts=(90_941, 29_799, 48_603),
    hub=950,
)
PROTEINS = OGBSpec(
    name="proteins",
    nodes=132_534,
    rows=39_561_252,
    edges=39_561_252,
    features=8,
    classes=112,
    split="species",
    parts=(86_619, 21_236, 24_679),
    hub=13,
    multilabel=True,
    edge_features=True,
)
PRODUCTS = OGBSpec(
    name="products",
    nodes=2_449_029,
    rows=61_859_140,
    edges=61_859_076,
    features=100,
    classes=47,
    split="sales_ranking",
    parts=(196_615, 39_323, 2_213_091),
    hub=350,
)
SPECS = (ARXIV, PROTEINS, PRODUCTS)
