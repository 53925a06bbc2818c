"""What the steps of an epoch see: the loss of some training nodes, computed on a small part of the graph."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gst.base import distributed
from gst.base.randomness import generator
from gst.graph.edgeset import EdgeSet
from gst.nn.features import Features, rows
from gst.nn.masker import Masker
from gst.nn.network import NativeNetwork, Network
from gst.nn.pyg_loaders import LoaderDraws
from gst.sparse.neighbours import LocalBlock
from gst.sparse.sampler import Draw, draw_entries
from gst.train.settings import Batching
from gst.train.task import Task

CLUSTER = 500  # nodes, where the number of clusters is not given


class Batch(Protocol):
    """One step."""

    @property
    def targets(self) -> Tensor:
        """Training nodes whose loss it takes."""

    def logits(self, network: Network, masker: Masker | None, x: Features | None) -> Tensor:
        """Of the targets; ``x`` is what the masker sees of all nodes."""


class Batches(Protocol):
    """Cuts an epoch into steps."""

    def epoch(self, edges: EdgeSet) -> Iterator[Batch]:
        """The steps on these edges, this process's share of each; drawn from the current generator."""


@dataclass(frozen=True)
class ClusterBatch:
    """The subgraph induced by some nodes: degrees and means ignore the rest (Chiang et al., KDD 2019)."""

    nodes: Tensor  # sorted
    targets: Tensor  # sorted
    edges: EdgeSet  # all

    def logits(self, network: Network, masker: Masker | None, x: Features | None) -> Tensor:
        part, ids = self.edges.induced(self.nodes)
        inside = network.within(self.edges, self.nodes, ids)
        mask = None
        if masker is not None and part.num_edges:
            assert x is not None
            mask = masker(rows(x, self.nodes), part)
        return inside.logits(part, mask, torch.searchsorted(self.nodes, self.targets))


@dataclass(frozen=True)
class Clusters:
    """Some clusters at a time, others together in every epoch."""

    part: Tensor  # [N] the cluster of every node
    train: Tensor  # training nodes
    count: int  # clusters in a step

    def epoch(self, edges: EdgeSet) -> Iterator[ClusterBatch]:
        number = int(self.part.max()) + 1
        order = torch.randperm(number, generator=generator()).to(self.part.device)
        by_cluster = torch.sort(self.part, stable=True).indices
        start = torch.searchsorted(self.part[by_cluster], torch.arange(number + 1, device=self.part.device)).tolist()
        trains = torch.zeros_like(self.part, dtype=torch.bool)
        trains[self.train] = True
        for step in order.split(max(self.count, distributed.size())):
            mine = step[distributed.local_slice(step.numel())].tolist()
            members = [by_cluster[start[c] : start[c + 1]] for c in mine]
            nodes = torch.cat(members).sort().values if members else by_cluster[:0]
            yield ClusterBatch(nodes, nodes[trains[nodes]], edges)


@dataclass(frozen=True)
class NeighbourBatch:
    """Sampled receptive fields of some training nodes (Hamilton et al., NeurIPS 2017)."""

    targets: Tensor  # sorted
    edges: EdgeSet
    degree: Tensor  # D̃ of all edges, not only of those drawn
    fanout: int
    seed: int
    draw: Draw

    def logits(self, network: Network, masker: Masker | None, x: Features | None) -> Tensor:
        assert isinstance(network, NativeNetwork)
        depth, nodes = len(network.module.layers), self.targets
        blocks: list[LocalBlock] = []
        for layer in reversed(range(depth)):
            blocks.insert(0, self.edges.neighbours.block(nodes, self.fanout, self.seed + layer, self.draw))
            nodes = blocks[0].nodes
        x_local = rows(network.x, nodes)
        masks = None if masker is None else masker.at_entries(x_local, blocks, self.edges.directed)
        known = [block.with_degree(self.degree[block.nodes]) for block in blocks]
        return network.module.run(x_local, known, masks)


@dataclass(frozen=True)
class NeighbourSamples:
    """Some training nodes at a time, in a new order every epoch."""

    train: Tensor
    count: int  # training nodes in a step
    fanout: int
    loader: str = "gst"

    def epoch(self, edges: EdgeSet) -> Iterator[NeighbourBatch]:
        order = self.train[torch.randperm(self.train.numel(), generator=generator()).to(self.train.device)]
        seeds = torch.randint(2**62, (-(-self.train.numel() // self.count),), generator=generator()).tolist()
        degree = edges.neighbours.degree(None, torch.get_default_dtype())
        draw = draw_entries if self.loader == "gst" else LoaderDraws(edges.neighbours, self.fanout)
        for step, seed in zip(order.split(self.count), seeds, strict=True):
            mine = step[distributed.local_slice(step.numel())].sort().values
            yield NeighbourBatch(mine, edges, degree, self.fanout, seed, draw)


def make_batches(batching: Batching, part: Callable[[int], Tensor], task: Task) -> Batches | None:
    """The batches that the config asks for; None for full batches. ``part(n)``: the cluster of every node, of n."""
    if batching.batch == "full":
        return None
    if batching.batch == "neighbors":
        return NeighbourSamples(task.train, batching.batch_nodes, batching.fanout, batching.loader)
    nodes = task.y.shape[0]
    number = min(nodes, batching.clusters or -(-nodes // CLUSTER))
    return Clusters(part(number), task.train, batching.clusters_per_batch)
