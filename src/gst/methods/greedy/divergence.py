"""What a sparse graph is measured by: how far answers are from those on all edges, sharpened by a temperature."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

SHARPNESS = 0.01  # T in units of the margin


@dataclass(frozen=True)
class Target:
    r"""The divergence D of answers from the wanted ones.

    .. math:: D_T = \sum_i \log(1 + KL_i), \quad
              KL_i = KL(\mathrm{softmax}(Z^A_i / T) ‖ \mathrm{softmax}(Z_i / T))

    of several labels, KL_i is the sum over the Bernoulli distributions σ(Z_i / T). The logarithm damps what one node
    can cost: KL alone would spend edges on nodes that cannot be won back. Undamped, D_T = Σ_i KL_i.
    """

    temperature: float
    labels: bool = False  # whether the outputs are labels of their own
    damped: bool = True

    @classmethod
    def of(cls, logits: Tensor, labels: bool = False, sharpness: float = SHARPNESS, damped: bool = True) -> "Target":
        """T = ``sharpness`` times the median margin between the two best answers of a node.

        So small that right answers count, not how sure they are; in units of the margin because the logits of one
        backbone are ten times as large as those of another.
        """
        if labels:
            margin = logits.abs().median()
        else:
            best = logits.topk(2, dim=-1).values
            margin = (best[:, 0] - best[:, 1]).median()
        return cls(max(sharpness * float(margin), 1e-6), labels, damped)

    def chance(self, logits: Tensor) -> Tensor:
        scaled = logits / self.temperature
        return scaled.sigmoid() if self.labels else scaled.softmax(-1)

    def outcomes(self, logits: Tensor) -> Tensor:
        """log-probabilities; of a label two of them."""
        scaled = logits / self.temperature
        if self.labels:  # log(1 − σ(z)) = log σ(−z)
            return functional.logsigmoid(torch.cat([scaled, -scaled], -1))
        return scaled.log_softmax(-1)

    def entropy(self, wanted: Tensor) -> Tensor:
        """Of each node's wanted answer."""
        sure = self.outcomes(wanted)
        return -(sure.exp() * sure).nan_to_num(0.0).sum(-1)

    def loss(self, wanted: Tensor, logits: Tensor) -> Tensor:
        """D of each node."""
        found, wanted = self.outcomes(logits), self.outcomes(wanted)
        apart = functional.kl_div(found, wanted, reduction="none", log_target=True).sum(-1)
        return apart.clamp(min=0).log1p() if self.damped else apart
