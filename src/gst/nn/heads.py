"""What the outputs of a trained model mean, and when two of its answers are the same."""

from typing import Literal, cast, get_args

import torch
from torch import Tensor
from torch.nn import functional

from gst.base.names import resolve_name

Head = Literal["classes", "labels", "logit", "regression", "embedding"]
AUTO = "auto"
CLOSE = 0.1  # of the spread of all answers: numbers that differ by less are the same answer
ALIKE = 0.95  # cosine from which two embeddings are the same answer


def check_head(head: str) -> str:
    """``"auto"`` or the name of a head; one line for anything else."""
    return resolve_name("head", head, (AUTO, *get_args(Head)))


def as_head(head: str) -> Head:
    """A head by its name."""
    return cast(Head, check_head(head))


def agreement(head: Head, answers: Tensor, wanted: Tensor) -> float:
    """Share of all nodes with the same answer; of several labels, of all nodes and labels.

    The same are: the likeliest class; the sign of each logit; numbers that all differ by less than a tenth of the
    standard deviation of their column; embeddings with a cosine of at least 0.95.
    """
    if head == "classes":
        same = answers.argmax(-1) == wanted.argmax(-1)
    elif head in ("labels", "logit"):
        same = (answers > 0) == (wanted > 0)
    elif head == "regression":
        same = ((answers - wanted).abs() <= CLOSE * wanted.std(0, correction=0)).all(-1)
    else:
        same = functional.cosine_similarity(answers, wanted, dim=-1) >= ALIKE
        same |= (answers == wanted).all(-1)
    return float(same.double().mean())


def spread(answers: Tensor) -> float:
    """Root of the mean squared distance of a node's answer from the mean answer."""
    return float((answers - answers.mean(0)).double().square().sum(-1).mean().sqrt())


def units(answers: Tensor) -> Tensor:
    """The standard deviation of each output, 1 where all are equal: numbers of several units are divided by it."""
    deviation = answers.std(0, correction=0)
    return torch.where(deviation > 0, deviation, 1.0)
