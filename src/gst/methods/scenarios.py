"""Answers that survive change: copies of a network on features that are dropped, shuffled or perturbed."""

from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from gst.graph.edgeset import EdgeSet
from gst.nn.feature_changes import CHANGES
from gst.nn.features import as_features
from gst.nn.network import NativeNetwork, Network
from gst.nn.recognise import TapeNetwork
from gst.nn.trained import TrainedNetwork
from gst.train.run import Run

TOLERATED = 0.2  # per cent that answers that survive change may cost as cut


@dataclass(frozen=True)
class Scenarios:
    """How many copies, what happens to their features, and to which share of them.

    The features as they are count as much as ``weight`` copies.
    """

    copies: int
    change: str = "dropped"
    strength: float = 0.4
    weight: int = 2

    def features(self, x: Tensor, seed: int) -> list[Tensor]:
        """The features of each copy."""
        return [CHANGES[self.change](x, self.strength, 1000 * seed + copy + 1) for copy in range(self.copies)]


def on_features(network: Network, x: Tensor) -> Network:
    """The same network on other features."""
    if isinstance(network, TrainedNetwork):
        changed = copy(network)
        changed.data = copy(network.data)
        changed.data.x = x
        changed._last = None
        return changed
    if isinstance(network, TapeNetwork):
        dense = isinstance(network.x, Tensor)
        return network.on(x if dense else as_features(x, x.dtype))
    assert isinstance(network, NativeNetwork)
    return NativeNetwork(network.module, as_features(x, next(network.module.parameters()).dtype))


@torch.no_grad()
def copies(
    network: Network, edges: EdgeSet, wanted: Tensor, x: Tensor, scenarios: Scenarios | None, seed: int
) -> tuple[list[Network], list[Tensor]]:
    """The network and its copies, each with the answers that it gives on all edges."""
    if scenarios is None:
        return [network], [wanted]
    networks, answers = [network] * scenarios.weight, [wanted] * scenarios.weight
    for changed in scenarios.features(x, seed):
        networks.append(on_features(network, changed))
        answers.append(networks[-1].logits(edges))
    return networks, answers


# what "auto" compares, plain Deploy first
CANDIDATES = (None, Scenarios(8, "dropped", 0.2), Scenarios(8, "dropped", 0.4), Scenarios(8, "perturbed", 0.2))
HELD_OUT = (("dropped", 0.2), ("dropped", 0.3), ("shuffled", 0.2), ("shuffled", 0.3))


class Robustness(NamedTuple):
    """Per cent: validation scores, or agreement without labels."""

    as_cut: float
    changed: float


def held_out(x: Tensor, seed: int) -> list[Tensor]:
    """Changed features that no search sees."""
    return [CHANGES[change](x, share, 7777 + 1000 * seed + number) for number, (change, share) in enumerate(HELD_OUT)]


@torch.no_grad()
def robustness(run: Run, network: Network, draws: list[Network], keep_mask: Tensor) -> Robustness:
    """How well these edges keep the answers, on the features as they are and on changed ones."""
    changed = [validated(run, draw, keep_mask) for draw in draws]
    return Robustness(validated(run, network, keep_mask), sum(changed) / len(changed))


@torch.no_grad()
def validated(run: Run, network: Network, keep_mask: Tensor) -> float:
    """The score of the validation nodes; without labels the agreement with the answers on all edges in per cent."""
    edges = run.subset(keep_mask)
    if run.task.metric is None:
        return 100 * run.task.agreement(network.logits(edges), network.logits(run.edges))
    nodes = run.task.val
    return run.task.score(network.logits(edges, None, nodes), "val")
