"""From a name or a user's module to a network bound to a graph."""

from copy import deepcopy
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.names import resolve_name
from gst.base.randomness import own_numbers
from gst.base.text import shown
from gst.nn.backbones import BACKBONES, Backbone
from gst.nn.features import Features, as_features
from gst.nn.network import NativeNetwork, Network, OwnNetwork
from gst.nn.own_input import check_outputs
from gst.train.settings import Settings


def build_backbone(name: str, inputs: int, outputs: int, settings: Settings) -> Backbone:
    """A freshly initialised backbone; the caller seeds."""
    name = resolve_name("backbone", name, BACKBONES)
    words: dict[str, Any] = {key: getattr(settings, key) for key in ("layers", "dropout", "residual", "norm")}
    if name == "gat":
        words["heads"] = settings.heads
    return BACKBONES[name](inputs, settings.hidden, outputs, **words)


def build_network(
    model: nn.Module | None,
    backbone: str,
    data: Data,
    classes: int | None,
    settings: Settings,
    x: Features | None = None,
) -> Network:
    """A network that may be trained without touching what the user holds.

    ``classes``: how many outputs it has; None: as many as ``model`` has. ``x``: the data's features, if at hand.
    """
    device = find_device(settings.device)
    if model is not None and not isinstance(model, Backbone):
        return OwnNetwork(deepcopy(model).to(device), data.to(str(device)), classes)
    if model is None:
        assert classes is not None
        module = build_backbone(backbone, data.x.shape[1], classes, settings)
    else:
        module = deepcopy(model)
        check_outputs(module, module.outputs, classes)
    if x is None:
        x = as_features(data.x.to(device), next(module.parameters()).dtype)
    return NativeNetwork(module.to(device), x)


def reset_parameters(module: nn.Module) -> None:
    """Draws the weights of a user's model anew; the caller seeds."""

    def forget(part: nn.Module) -> None:
        own = list(part.parameters(recurse=False))
        reset = getattr(part, "reset_parameters", None)
        if callable(reset):
            reset()
        elif own:
            raise InputError(
                f"{type(part).__name__} has parameters but no reset_parameters(): a fresh model cannot be made of it"
            )

    with own_numbers():
        module.apply(forget)


def find_device(name: str) -> torch.device:
    """A device that can compute: 1 + 1 is tried, for some can be named and hold tensors that have no values."""
    try:
        device = torch.device(name)
        torch.ones(1, device=device).add(1).item()
    except Exception:  # every backend has errors of its own
        others = "cpu or cuda" if torch.cuda.is_available() else "cpu"
        raise InputError(f"device '{shown(name)}' is not available here: take {others}") from None
    return device


def check_model(model: object) -> None:
    """One clear line for whatever cannot be trained."""
    if model is not None and not isinstance(model, nn.Module):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise InputError(f"model is {what}: an nn.Module is needed (a name such as 'gcn' goes to backbone=)")
