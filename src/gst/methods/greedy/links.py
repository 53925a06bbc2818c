"""What a greedy search keeps of a network that scores links: its scores against landmarks, or of the training pairs.

The compiled kernels know losses of single nodes, and a score has two ends. So every node is scored against the same
landmarks, whose embeddings stay those of the dense graph: s_ic = z_i · z_c^A. That is linear in z_i, so the landmarks
are multiplied into the last layer, and a native network of embeddings becomes one with an output for each landmark.
Other networks are searched by the scores of their training pairs.
"""

from copy import deepcopy

import torch
from torch import Tensor, nn

from gst.graph.edgeset import EdgeSet
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.network_arrays import all_known
from gst.nn.backbones import Backbone
from gst.nn.links import LinkNetwork
from gst.nn.network import NativeNetwork, Network

LANDMARKS = 64
SHARPNESS = 1.0  # temperature in units of the median score: all scores count, not only their signs


@torch.no_grad()
def link_objective(network: LinkNetwork, edges: EdgeSet, scores: Tensor) -> tuple[Network, Tensor, Target]:
    """The network to search with, its wanted answers and their divergence, from a trained network of links.

    Args:
        network: in evaluation mode.
        edges: all edges.
        scores: of all pairs of the task on all edges.
    """
    inner = network.inner
    if not isinstance(inner, NativeNetwork) or not all_known([inner]) or inner.module.stack[-1].attention is not None:
        return network, scores, Target.of(scores, multilabel=True, sharpness=SHARPNESS)
    embeddings = inner.logits(edges)
    landmarks = embeddings[choose_landmarks(network)]
    folded = NativeNetwork(fold(inner.module, landmarks), inner.x)
    wanted = embeddings @ landmarks.t()
    return folded, wanted, Target.of(wanted, multilabel=True, sharpness=SHARPNESS)


def choose_landmarks(network: LinkNetwork) -> Tensor:
    """Ends of training pairs, drawn at random: nodes of many links come first."""
    ends = network.pairs.ends[:, network.pairs.searched].flatten().cpu()
    order = ends[torch.randperm(ends.numel(), generator=torch.Generator().manual_seed(0))]
    nodes, first = torch.unique(order, return_inverse=True)
    place = torch.full((nodes.numel(),), ends.numel()).scatter_reduce(0, first, torch.arange(ends.numel()), "amin")
    return nodes[place.argsort()[:LANDMARKS]].to(network.pairs.ends.device)


def fold(module: Backbone, landmarks: Tensor) -> Backbone:
    """A copy of the module whose outputs are the dot products of its embeddings with the landmarks."""
    folded = deepcopy(module)
    last = folded.stack[-1]
    last.weight = nn.Parameter(last.weight @ landmarks.t())
    last.bias = nn.Parameter(landmarks @ last.bias)
    if last.root is not None:
        last.root = nn.Parameter(last.root @ landmarks.t())
    folded.outputs = landmarks.shape[0]
    return folded
