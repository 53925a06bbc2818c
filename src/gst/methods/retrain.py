"""GST's recipe "retrain": a graph on which a fresh model trains as well as on all edges."""

from typing import Any

import torch
from torch import Tensor

from gst.base.randomness import seeded
from gst.base.versions import of_method
from gst.methods.base import Found
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.prior import EXCHANGES, NETWORKS, Prior, turn
from gst.nn.network import Network, OwnNetwork
from gst.storage.cache import Content
from gst.train.anchor import Anchor
from gst.train.models import reset_parameters
from gst.train.run import Problem
from gst.train.trainer import train

SHARPNESS = 0.1  # T in units of the margin; of KL, in whose units the prior is
BELIEVERS = 5  # networks whose mean answer on all edges is the one to keep
APART = 10_007  # from the seed of the run to those of the networks of its search


def retrain(problem: Problem, anchor: Anchor, kept: int) -> Found:
    """Turns of fresh networks and smaller and smaller exchanges; then the anchor trains on, D epochs.

    In every turn two fresh networks train E epochs on the edges kept so far; then edges are exchanged, by what each
    does to the mean divergence of their answers from :func:`beliefs`, and by a prior: agreement and label flow. Of all
    the graphs on the way, the one whose networks agree best with the beliefs is taken: no label decides.
    """
    edges, clock, task = problem.edges, problem.checkpoint.clock, problem.task
    start, sparsity = clock(), 1 - kept / edges.num_edges
    wanted = beliefs(problem)
    prior = Prior.of(edges, wanted, task)
    keep = best = prior.first(edges, kept)
    target, highest = Target.of(wanted, task.multilabel, SHARPNESS, damped=False), -1.0
    answers = task.predict(wanted)
    prepared = clock()
    ratios = (*EXCHANGES[: problem.settings.turns], 0.0)  # after the last exchange networks are only asked
    for number, ratio in enumerate(ratios if 0 < kept < edges.num_edges else ()):

        def make(keep: Tensor = keep, number: int = number, ratio: float = ratio) -> Content:
            networks = [fresh(problem, keep, NETWORKS * number + k) for k in range(NETWORKS)]
            with torch.no_grad():
                given = torch.stack([task.predict(network.logits(edges.subset(keep))) for network in networks])
            after = turn(edges, keep, networks, wanted, target, prior, ratio) if ratio else keep
            return {"keep": after}, {"agreement": float((given == answers).double().mean())}

        depends = {"turn": number, "ratio": ratio, "kept": kept, **_depends(problem)}
        after, meta = problem.checkpoint.store.get("turn", depends, make)
        if meta["agreement"] >= highest:
            best, highest = keep, meta["agreement"]
        keep = after["keep"].to(problem.device)

    network, sparse = problem.network(), edges.subset(best)
    network.module.load_state_dict(anchor.model)
    with seeded(problem.settings.seed + 2):
        trainer = problem.trainer(network)
        epochs = problem.settings.sparse_epochs
        last = train(trainer, sparse, epochs, "sparse", sparsity, problem.watch, problem.checkpoint)
    seconds = {"anchor": anchor.seconds, "topology": prepared - start, "sparse": clock() - prepared}
    worth = prior.worth(kept)
    scores = best.double() + worth / (1 + worth.max())  # every kept edge above every other
    return Found(best, scores, network.module, trainer.logits(sparse), last.val, seconds)


def beliefs(problem: Problem) -> Tensor:
    """Mean log-probabilities of five networks trained plainly on all edges, the dense baseline among them."""
    settings = problem.settings

    def make() -> Content:
        first = problem.dense.logits
        others = [fresh(problem, None, -k, settings.sparse_epochs) for k in range(2, BELIEVERS + 1)]
        with torch.no_grad():
            answers = [first, *(network.logits(problem.edges) for network in others)]
        if not problem.task.multilabel:
            answers = [logits.log_softmax(-1) for logits in answers]
        return {"logits": torch.stack(answers).mean(0)}, {}

    return problem.store.get("beliefs", _depends(problem), make)[0]["logits"].to(problem.device)


def _depends(problem: Problem) -> dict[str, Any]:
    return {**problem.depends, "sparse_epochs": problem.settings.sparse_epochs, "search": of_method("retrain")}


def fresh(problem: Problem, keep: Tensor | None, number: int, more: int = 0) -> Network:
    """A network trained for E epochs, or more, on these edges (None: all), of a seed that nothing else uses."""
    seed = (problem.settings.seed + APART * (number + 1)) % 2**31
    network = problem.network(seed)
    with seeded(seed + 1):
        if isinstance(network, OwnNetwork):
            reset_parameters(network.module)
        sparse = problem.edges if keep is None else problem.edges.subset(keep)
        trainer, epochs = problem.trainer(network), problem.settings.anchor_epochs + more
        sparsity = 1 - sparse.num_edges / problem.edges.num_edges
        train(trainer, sparse, epochs, "turn", sparsity, problem.watch, problem.checkpoint)
    network.module.eval()
    return network
