"""What a sparse graph is measured by: how far answers are from those on all edges, sharpened by a temperature."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

SHARPNESS = 0.05  # T in units of the margin


@dataclass(frozen=True)
class Target:
    r"""The divergence of answers from the wanted ones.

    .. math:: KL_T = \sum_i KL(\mathrm{softmax}(Z^A_i / T) ‖ \mathrm{softmax}(Z_i / T))

    of several labels, the sum over the Bernoulli distributions σ(Z / T).
    """

    temperature: float
    labels: bool = False  # whether the outputs are labels of their own

    @classmethod
    def of(cls, logits: Tensor, labels: bool = False, sharpness: float = SHARPNESS) -> "Target":
        """T = ``sharpness`` times the median margin between the two best answers of a node.

        So small that right answers count, not how sure they are; in units of the margin because the logits of one
        backbone are ten times as large as those of another.
        """
        if labels:
            margin = logits.abs().median()
        else:
            best = logits.topk(2, dim=-1).values
            margin = (best[:, 0] - best[:, 1]).median()
        return cls(max(sharpness * float(margin), 1e-6), labels)

    def chance(self, logits: Tensor) -> Tensor:
        scaled = logits / self.temperature
        return scaled.sigmoid() if self.labels else scaled.softmax(-1)

    def outcomes(self, logits: Tensor) -> Tensor:
        """log-probabilities; of a label two of them."""
        scaled = logits / self.temperature
        if self.labels:  # log(1 − σ(z)) = log σ(−z)
            return functional.logsigmoid(torch.cat([scaled, -scaled], -1))
        return scaled.log_softmax(-1)

    def entropy(self, logits: Tensor) -> Tensor:
        """Of each node's wanted answer."""
        sure = self.outcomes(logits)
        return -(sure.exp() * sure).nan_to_num(0.0).sum(-1)

    def loss(self, wanted: Tensor, logits: Tensor) -> Tensor:
        """KL of each node."""
        found, wanted = self.outcomes(logits), self.outcomes(wanted)
        return functional.kl_div(found, wanted, reduction="none", log_target=True).sum(-1)
