"""The objective of the search: the divergence of a network's answers from those it gives on all edges."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from gst.nn.heads import CLOSE, Head, spread

SHARPNESS = 0.01  # T in units of the margin


@dataclass(frozen=True)
class Target:
    r"""The divergence D_T of answers Z from the wanted answers Z^A, sharpened by a temperature T.

    .. math:: D_T = \sum_i \log(1 + KL_i), \quad
              KL_i = KL(\mathrm{softmax}(Z^A_i / T) ‖ \mathrm{softmax}(Z_i / T))

    For several labels, KL_i is the sum over the Bernoulli distributions σ(Z_i / T). For numbers and embeddings it is
    that of the normal distributions around the answers, ‖Z^A_i − Z_i‖² / 2T². The logarithm damps what a single node
    can cost: KL alone would spend edges on nodes whose answers cannot be recovered. Undamped, D_T = Σ_i KL_i.
    """

    temperature: float
    multilabel: bool = False  # whether the outputs are independent labels
    damped: bool = True
    squares: bool = False  # whether they are numbers: "probabilities" are then the outputs in units of T

    @classmethod
    def of(
        cls, logits: Tensor, multilabel: bool = False, sharpness: float = SHARPNESS, damped: bool = True
    ) -> "Target":
        """T = ``sharpness`` times the median margin between the two best answers of a node.

        T is so small that the right answer counts, not how confident it is; and relative to the margin, because logits
        of one backbone are ten times as large as those of another.
        """
        if multilabel:
            margin = logits.abs().median()
        else:
            best = logits.topk(2, dim=-1).values
            margin = (best[:, 0] - best[:, 1]).median()
        return cls(max(sharpness * float(margin), 1e-6), multilabel, damped)

    @classmethod
    def for_head(cls, head: Head, logits: Tensor) -> "Target":
        """The divergence for what the outputs mean; T of numbers and embeddings is a tenth of their spread."""
        if head in ("regression", "embedding"):
            return cls(max(CLOSE * spread(logits), 1e-12), squares=True)
        return cls.of(logits, multilabel=head in ("labels", "logit"))

    def probabilities(self, logits: Tensor) -> Tensor:
        """softmax(Z / T), or σ(Z / T) for several labels."""
        scaled = logits / self.temperature
        if self.squares:
            return scaled
        return scaled.sigmoid() if self.multilabel else scaled.softmax(-1)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """Log-probabilities of all outcomes: one per class, or two per label."""
        scaled = logits / self.temperature
        if self.multilabel:  # log(1 − σ(z)) = log σ(−z)
            return functional.logsigmoid(torch.cat([scaled, -scaled], -1))
        return scaled.log_softmax(-1)

    def entropy(self, wanted: Tensor) -> Tensor:
        """Entropy of each node's wanted answer; of numbers what makes the kernels' cross entropy a squared distance."""
        if self.squares:
            return -(wanted / self.temperature).square().sum(-1) / 2
        log_p = self.log_probabilities(wanted)
        return -(log_p.exp() * log_p).nan_to_num(0.0).sum(-1)

    def loss(self, wanted: Tensor, logits: Tensor) -> Tensor:
        """D of each node."""
        if self.squares:
            distance = ((wanted - logits) / self.temperature).square().sum(-1) / 2
            return distance.log1p() if self.damped else distance
        log_q, log_p = self.log_probabilities(logits), self.log_probabilities(wanted)
        kl = functional.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)
        return kl.clamp(min=0).log1p() if self.damped else kl
