"""GST's recipe "retrain": a graph on which a fresh model trains as well as on all edges."""

import torch

from gst.anchor import Anchor
from gst.cache import Content
from gst.greedy.retrain import EXCHANGES, NETWORKS, Prior, turn
from gst.greedy.target import Target
from gst.models import reset_parameters
from gst.nn.network import Network, OwnNetwork
from gst.problem import Problem
from gst.sparsifiers.base import Found
from gst.training import seeded, train

SHARPNESS = 0.1  # T in units of the margin
APART = 10_007  # from the seed of the run to those of the networks of its search


def retrain(problem: Problem, anchor: Anchor, kept: int) -> Found:
    """Five turns of fresh networks and smaller and smaller exchanges; then the anchor trains on, D epochs.

    In every turn two fresh networks train E epochs on the edges kept so far; then edges are exchanged, by what each
    does to the mean divergence of their answers from the anchor's, and by a prior: agreement and label flow.
    """
    edges, clock, task = problem.edges, problem.checkpoint.clock, problem.task
    start, sparsity = clock(), 1 - kept / edges.num_edges
    prior = Prior.of(edges, anchor.logits, task)
    keep = prior.first(edges, kept)
    target = Target.of(anchor.logits, task.multilabel, SHARPNESS)
    prepared = clock()
    for number, ratio in enumerate(EXCHANGES if 0 < kept < edges.num_edges else ()):

        def make(keep: torch.Tensor = keep, number: int = number, ratio: float = ratio) -> Content:
            networks = [_fresh(problem, keep, NETWORKS * number + k) for k in range(NETWORKS)]
            return {"keep": turn(edges, keep, networks, anchor.logits, target, prior, ratio)}, {}

        depends = {"turn": number, "kept": kept, **problem.depends}
        keep = problem.checkpoint.store.get("turn", depends, make)[0]["keep"].to(problem.device)

    network, sparse = problem.network(), edges.subset(keep)
    network.module.load_state_dict(anchor.model)
    with seeded(problem.settings.seed + 2):
        trainer = problem.trainer(network)
        epochs = problem.settings.sparse_epochs
        best = train(trainer, sparse, epochs, "sparse", sparsity, problem.watch, problem.checkpoint)
    seconds = {"anchor": anchor.seconds, "topology": prepared - start, "sparse": clock() - prepared}
    scores = keep.double() + prior.worth / (1 + prior.worth.max())  # every kept edge above every other
    return Found(keep, scores, network.module, trainer.logits(sparse), best.val, seconds)


def _fresh(problem: Problem, keep: torch.Tensor, number: int) -> Network:
    """A network trained for E epochs on these edges, of a seed that nothing else uses."""
    seed = problem.settings.seed + APART * (number + 1)
    network = problem.network(seed)
    with seeded(seed + 1):
        if isinstance(network, OwnNetwork):
            reset_parameters(network.module)
        trainer, sparse = problem.trainer(network), problem.edges.subset(keep)
        sparsity = 1 - sparse.num_edges / problem.edges.num_edges
        epochs = problem.settings.anchor_epochs
        train(trainer, sparse, epochs, "turn", sparsity, problem.watch, problem.checkpoint)
    network.module.eval()
    return network
