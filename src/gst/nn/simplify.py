"""A recorded tape made cheaper: what is not needed goes, and products with weights come before sums over neighbours."""

from collections import Counter
from dataclasses import replace

import torch

from gst.nn.tape import Step, Tape


def simplified(steps: list[Step], output: int, weighted: bool) -> Tape:
    """The tape of these steps that ends with register ``output``."""
    steps = list(steps)
    while True:
        uses = Counter(source for number in _needed(steps, output) for source in steps[number].sources)
        for number in _needed(steps, output):
            if _improve(number, steps, uses, _levels(steps)):
                break
        else:
            return Tape(tuple(_ordered(steps, output)), weighted)


def _improve(number: int, steps: list[Step], uses: Counter[int], levels: list[int]) -> bool:
    """Rewrites one step if that pays; new steps are appended, so sources may have higher numbers for a while."""
    step = steps[number]
    if step.kind not in ("linear", "affine"):
        return False
    source = step.sources[0]
    before = steps[source]
    if step.kind == "affine":
        if before.kind == "affine" and uses[source] == 1:
            factor, shift = before.tensors
            merged = factor * step.tensors[0], shift * step.tensors[0] + step.tensors[1]
        elif before.kind == "linear" and uses[source] == 1:
            weight, bias = before.tensors
            merged = weight * step.tensors[0], bias * step.tensors[0] + step.tensors[1]
        else:
            return False
        steps[number] = replace(before, tensors=merged)
        return True
    weight, bias = step.tensors
    if before.kind == "concatenate":  # [a ‖ b] W = a W_a + b W_b
        width = steps[before.sources[0]].width
        steps.append(Step("linear", before.sources[:1], step.width, (weight[:width], torch.zeros_like(bias))))
        steps.append(Step("linear", before.sources[1:], step.width, (weight[width:], bias)))
        steps[number] = Step("add", (len(steps) - 2, len(steps) - 1), step.width, (), (1.0, 1.0))
        return True
    hops = [source]  # the sum and perhaps its scale, the last first
    while steps[hops[-1]].kind == "scale":
        hops.append(steps[hops[-1]].sources[0])
    inner = steps[hops[-1]]
    if inner.kind != "sum" or any(uses[hop] != 1 for hop in hops):
        return False
    sent = inner.sources[0]
    if step.width > before.width and levels[sent] > 0:
        return False
    steps.append(Step("linear", (sent,), step.width, (weight, torch.zeros_like(bias))))
    for hop in reversed(hops):
        steps.append(replace(steps[hop], sources=(len(steps) - 1,), width=step.width))
    steps[number] = Step("affine", (len(steps) - 1,), step.width, (torch.ones_like(bias), bias))
    return True


def _levels(steps: list[Step]) -> list[int]:
    levels = [-1] * len(steps)

    def level(number: int) -> int:
        if levels[number] < 0:
            step = steps[number]
            levels[number] = max([level(s) for s in step.sources], default=0) + step.is_hop
        return levels[number]

    for number in range(len(steps)):
        level(number)
    return levels


def _needed(steps: list[Step], output: int) -> list[int]:
    """The steps that the output depends on, sources first."""
    order: list[int] = []
    seen: set[int] = set()

    def visit(number: int) -> None:
        if number not in seen:
            seen.add(number)
            for source in steps[number].sources:
                visit(source)
            order.append(number)

    visit(output)
    return order


def _ordered(steps: list[Step], output: int) -> list[Step]:
    order = _needed(steps, output)
    new = {number: position for position, number in enumerate(order)}
    return [replace(steps[n], sources=tuple(new[s] for s in steps[n].sources)) for n in order]
