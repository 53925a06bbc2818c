"""Retrain: a graph on which a fresh model trains as well as on all edges."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from gst.base.arguments import check_options
from gst.base.errors import InputError
from gst.base.randomness import seeded
from gst.base.versions import method_version
from gst.methods.base import LearnedSparsifier
from gst.methods.found import Found
from gst.methods.greedy.divergence import Target
from gst.methods.greedy.prior import EXCHANGES, NETWORKS_PER_TURN, Prior, exchange_edges
from gst.methods.registry import register
from gst.nn.network import Network
from gst.storage.cache import Content
from gst.train.anchor import find_anchor
from gst.train.models import reset_own_model
from gst.train.run import Run
from gst.train.settings import Batching, Config, Masking, Training
from gst.train.trainer import train

SHARPNESS = 0.1  # temperature T in units of the margin, for a divergence on the scale of the prior
ENSEMBLE = 5  # networks whose mean answer on all edges is the target
SEED_STRIDE = 10_007  # between the seeds of the networks that the search trains, so that they meet no other seed


@register("retrain")
@dataclass(kw_only=True, eq=False, repr=False)
class Retrain(LearnedSparsifier):
    """Alternates fresh networks on the sparse graph with smaller and smaller exchanges of its edges.

    In every turn two fresh networks train E epochs on the edges kept so far; then edges are exchanged, by what each
    does to the mean divergence of their answers from those of a dense ensemble, and by a prior: agreement of the two
    ends and flow of labels. Of all the graphs on the way, the one whose networks agree best with the ensemble is taken:
    no label decides. The returned model trains on from GST's anchor, D epochs.

    Args:
        turns: exchanges of edges, each with fresh networks, from 0 to 8.
        masker_hidden: width of the masker's hidden layer [64].
        mask_deviation: standard deviation of the mask around 1 [0.01].

    The other arguments are those of :class:`~gst.methods.base.Sparsifier`. ``fit`` also sets ``anchor_``.

    >>> import gst
    >>> data = gst.load("synthetic:nodes=200,degree=8")
    >>> est = gst.Retrain(sparsity=0.5, turns=1, hidden=8, anchor_epochs=5, sparse_epochs=5, cache=False).fit(data)
    >>> metrics = est.result_.metrics
    >>> metrics["edges_kept"] == metrics["edges_total"] - round(0.5 * metrics["edges_total"])
    True
    """

    turns: int = len(EXCHANGES)
    masker_hidden: int | None = None
    mask_deviation: float | None = None

    configs: ClassVar[tuple[type[Config], ...]] = (Training, Batching, Masking)
    complexity: ClassVar[str] = "4 · (E + D) + 18 E epochs"
    takes_typed: ClassVar[bool] = False
    reference: ClassVar[str] = "this project"
    transductive_only: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        most = len(EXCHANGES)
        check_options("Retrain", turns=(self.turns, int, lambda v: 0 <= v <= most, f"a number from 0 to {most}"))
        if self.inductive:
            raise InputError("inductive: retrain trains on edges of all nodes; take gst or deploy")

    def search(self, run: Run, num_kept: int) -> Found:
        self.anchor_ = anchor = find_anchor(run, self.config(Masking, run.data))
        clock = run.checkpoint.clock
        start = clock()
        target = ensemble_logits(run)
        prior = Prior.of(run.edges, target, run.task)
        prepared = clock()
        keep_mask = self._exchange(run, num_kept, target, prior)
        network = run.network()
        network.module.load_state_dict(anchor.model)
        sparse = run.edges.subset(keep_mask)
        with seeded(run.training.seed + 2):
            trainer = run.trainer(network)
            epochs, sparsity = run.training.sparse_epochs, 1 - num_kept / run.edges.num_edges
            best = train(trainer, sparse, epochs, "sparse", sparsity, run.watch, run.checkpoint)
        seconds = {"anchor": anchor.seconds, "topology": prepared - start, "sparse": clock() - prepared}
        worth = prior.bonus(num_kept)
        scores = keep_mask.double() + worth / (1 + worth.max())  # every kept edge above every other
        return Found(keep_mask, scores, network.module, trainer.logits(sparse), best.val, seconds)

    def _exchange(self, run: Run, num_kept: int, target: Tensor, prior: Prior) -> Tensor:
        """The turns; the graph, of all on the way, whose fresh networks agree best with the ensemble."""
        edges, task = run.edges, run.task
        divergence = Target.of(target, task.multilabel, SHARPNESS, damped=False)
        answers = task.predict(target)
        keep_mask = best = run.top_k(prior.start_scores(edges), num_kept)
        highest = -1.0
        ratios = (*EXCHANGES[: self.turns], 0.0)  # after the last exchange networks are only judged
        for number, ratio in enumerate(ratios if 0 < num_kept < edges.num_edges else ()):

            def make(keep_mask: Tensor = keep_mask, number: int = number, ratio: float = ratio) -> Content:
                networks = [
                    fresh_network(run, keep_mask, NETWORKS_PER_TURN * number + k) for k in range(NETWORKS_PER_TURN)
                ]
                with torch.no_grad():
                    logits = [network.logits(edges.subset(keep_mask)) for network in networks]
                predicted = torch.stack([task.predict(each) for each in logits])
                after = keep_mask
                if ratio:
                    room = None if run.cap is None else run.cap.room
                    after = exchange_edges(edges, keep_mask, networks, target, divergence, prior, ratio, room)
                return {"keep": after}, {"agreement": float((predicted == answers).double().mean())}

            depends = {
                "turn": number,
                "ratio": ratio,
                "num_kept": num_kept,
                "max_degree": run.max_degree,
                **_depends(run),
            }
            after, meta = run.checkpoint.store.get("turn", depends, make)
            if meta["agreement"] >= highest:
                best, highest = keep_mask, meta["agreement"]
            keep_mask = after["keep"].to(run.device)
        return best


def ensemble_logits(run: Run) -> Tensor:
    """Mean log-probabilities of five networks trained plainly on all edges, the dense baseline among them."""

    def make() -> Content:
        first = run.dense.logits
        others = [fresh_network(run, None, -k, run.training.sparse_epochs) for k in range(2, ENSEMBLE + 1)]
        with torch.no_grad():
            answers = [first, *(network.logits(run.edges) for network in others)]
        if not run.task.multilabel:
            answers = [logits.log_softmax(-1) for logits in answers]
        return {"logits": torch.stack(answers).mean(0)}, {}

    return run.store.get("ensemble", _depends(run), make)[0]["logits"].to(run.device)


def _depends(run: Run) -> dict[str, Any]:
    return {**run.depends_on_all, "search": method_version("retrain")}


def fresh_network(run: Run, keep_mask: Tensor | None, number: int, more_epochs: int = 0) -> Network:
    """A network trained for E epochs, or more, on these edges (None: all), of a seed that nothing else uses."""
    seed = (run.training.seed + SEED_STRIDE * (number + 1)) % 2**31
    network = run.network(seed)
    with seeded(seed + 1):
        reset_own_model(network)
        sparse = run.subset(keep_mask)
        trainer = run.trainer(network)
        epochs = run.training.anchor_epochs + more_epochs
        sparsity = 1 - sparse.num_edges / run.edges.num_edges
        train(trainer, sparse, epochs, "turn", sparsity, run.watch, run.checkpoint)
    network.module.eval()
    return network
