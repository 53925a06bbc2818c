"""The state that a loop carries from one epoch to the next as a tree of tensors and plain values, and back.

A state is a dataclass. Its fields may be modules, optimisers, parameters, tensors, plain values, dicts and lists of
these, other dataclasses, and objects whose ``parts()`` returns their components by name.
"""

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

_TENSOR = "\0tensor"  # stands for a tensor among the plain values


def capture(value: Any) -> Any:
    """The tree of a state; its tensors are not copied."""
    if isinstance(value, nn.Module):
        return dict(value.state_dict())
    if isinstance(value, Optimizer):
        state = value.state_dict()["state"]
        count = sum(len(group["params"]) for group in value.param_groups)
        return [state.get(number, {}) for number in range(count)]
    if hasattr(value, "parts"):
        return capture(value.parts())
    if is_dataclass(value):
        return {field.name: capture(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: capture(part) for key, part in value.items()}
    if isinstance(value, list):
        return [capture(part) for part in value]
    return value


def restore(value: Any, tree: Any) -> Any:
    """Restores modules, optimisers, parameters and dataclasses in place; other values are returned from the tree."""
    if isinstance(value, nn.Module):
        value.load_state_dict(tree)
    elif isinstance(value, Optimizer):
        state = {number: part for number, part in enumerate(tree) if part}
        for part in state.values():
            part["step"] = part["step"].cpu()  # Adam keeps it on the CPU
        value.load_state_dict({"state": state, "param_groups": value.state_dict()["param_groups"]})
    elif isinstance(value, nn.Parameter):
        value.data.copy_(tree)
    elif hasattr(value, "parts"):
        for name, part in value.parts().items():
            restore(part, tree[name])
    elif is_dataclass(value):
        for field in fields(value):
            setattr(value, field.name, restore(getattr(value, field.name), tree[field.name]))
    elif isinstance(value, dict) and value.keys() == tree.keys():
        return {key: restore(part, tree[key]) for key, part in value.items()}
    else:
        return tree
    return value


def split(tree: Any) -> tuple[dict[str, Tensor], Any]:
    """Numbered tensors, and the tree with numbers instead of tensors, fit for JSON."""
    tensors: dict[str, Tensor] = {}

    def walk(part: Any) -> Any:
        if isinstance(part, Tensor):
            name = str(len(tensors))
            tensors[name] = part
            return {_TENSOR: name}
        if isinstance(part, dict):
            return {key: walk(inner) for key, inner in part.items()}
        if isinstance(part, list):
            return [walk(inner) for inner in part]
        return part

    plain = walk(tree)
    return tensors, plain


def join(tensors: dict[str, Tensor], plain: Any, device: torch.device) -> Any:
    """The inverse of :func:`split`."""
    if isinstance(plain, dict):
        if _TENSOR in plain:
            return tensors[plain[_TENSOR]].to(device, copy=True)  # a copy: tensors read from a file may be read-only
        return {key: join(tensors, part, device) for key, part in plain.items()}
    if isinstance(plain, list):
        return [join(tensors, part, device) for part in plain]
    return plain


def hash_of(tree: Any) -> str:
    """A hash of every tensor and every value of a tree."""
    tensors, plain = split(tree)
    digest = hashlib.blake2b(json.dumps(plain).encode(), digest_size=16)
    for tensor in tensors.values():
        digest.update(f"{tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
