"""Shields gst's computations from the torch modes of the caller."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData


@contextmanager
def plain_torch() -> Iterator[None]:
    """Inside, torch has its defaults: gradients, no inference mode, no autocast, float32, on the CPU.

    Used as a decorator, ``@plain_torch()``, on everything that trains or scores.
    """
    dtype = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        if dtype != torch.float32:
            torch.set_default_dtype(torch.float32)
            stack.callback(torch.set_default_dtype, dtype)
        yield


def without_inference_tensors(data: Any) -> Any:
    """The data, with inference tensors replaced by copies: autograd refuses the former."""
    if isinstance(data, HeteroData):
        return _typed_without_inference_tensors(data)
    tensors = {name: value for name, value in data.to_dict().items() if isinstance(value, Tensor)}
    inference = {name: value for name, value in tensors.items() if value.is_inference()}
    if not inference:
        return data
    data = copy(data)
    for name, value in inference.items():
        data[name] = value.clone()
    return data


def _typed_without_inference_tensors(data: HeteroData) -> HeteroData:
    stores = [store for store in data.stores if any(isinstance(v, Tensor) and v.is_inference() for v in store.values())]
    if not stores:
        return data
    data = copy(data)
    for store in data.stores:
        for name, value in list(store.items()):
            if isinstance(value, Tensor) and value.is_inference():
                store[name] = value.clone()
    return data
