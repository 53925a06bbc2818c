"""Everything that a loop carries from one epoch to the next as one tree of tensors and plain values, and back.

A state is a dataclass. Its fields may be modules, optimisers, parameters, tensors, plain values, dicts and lists of
them, other dataclasses, and objects that name what they are made of in ``parts()``.
"""

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

_TENSOR = "\0tensor"  # marks the place of a tensor among the words


def capture(value: Any) -> Any:
    """The tree of a state; its tensors are those in use, not copies."""
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
    """Puts a tree back: into modules, optimisers, parameters and dataclasses; gives what takes the place of others."""
    if isinstance(value, nn.Module):
        value.load_state_dict(tree)
    elif isinstance(value, Optimizer):
        state = {number: part for number, part in enumerate(tree) if part}
        for part in state.values():
            part["step"] = part["step"].cpu()  # where Adam keeps it
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
    """Numbered tensors, and the tree with their numbers in their place, fit for JSON."""
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

    words = walk(tree)
    return tensors, words


def join(tensors: dict[str, Tensor], words: Any, device: torch.device) -> Any:
    """The inverse of :func:`split`."""
    if isinstance(words, dict):
        if _TENSOR in words:
            return tensors[words[_TENSOR]].to(device, copy=True)  # its own memory: what was read may be read-only
        return {key: join(tensors, part, device) for key, part in words.items()}
    if isinstance(words, list):
        return [join(tensors, part, device) for part in words]
    return words


def hash_of(tree: Any) -> str:
    """A hash of every tensor and every value of a tree."""
    tensors, words = split(tree)
    total = hashlib.blake2b(json.dumps(words).encode(), digest_size=16)
    for tensor in tensors.values():
        total.update(f"{tensor.dtype} {list(tensor.shape)}".encode())
        total.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return total.hexdigest()
