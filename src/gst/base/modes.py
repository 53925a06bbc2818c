"""Modes of torch that a caller may be in: they must not change what gst computes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import copy

import torch
from torch import Tensor
from torch_geometric.data import Data


@contextmanager
def plain_torch() -> Iterator[None]:
    """Inside, torch is as it is by default: gradients, no inference mode, no autocast, 32 bits, on the CPU.

    As a decorator, ``@plain_torch()``, for whatever trains or scores.
    """
    kind = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        if kind != torch.float32:
            torch.set_default_dtype(torch.float32)
            stack.callback(torch.set_default_dtype, kind)
        yield


def usable(data: Data) -> Data:
    """The data, with copies of tensors that were made in inference mode: no gradient may depend on those."""
    made = {name: value for name, value in data.to_dict().items() if isinstance(value, Tensor) and value.is_inference()}
    if not made:
        return data
    found = copy(data)
    for name, value in made.items():
        found[name] = value.clone()
    return found
