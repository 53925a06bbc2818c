"""From a name or a user's module to a network bound to a graph."""

from copy import deepcopy

import torch
from torch import nn
from torch_geometric.data import Data

from gst.errors import InputError
from gst.nn.backbones import BACKBONES, Backbone
from gst.nn.features import Features, as_features
from gst.nn.network import NativeNetwork, Network, OwnNetwork
from gst.resolve import resolve_name
from gst.settings import Settings


def build_backbone(name: str, inputs: int, outputs: int, settings: Settings) -> Backbone:
    """A freshly initialised backbone; the caller seeds."""
    name = resolve_name("backbone", name, BACKBONES)
    extra = {"heads": settings.heads} if name == "gat" else {}
    return BACKBONES[name](inputs, settings.hidden, outputs, layers=settings.layers, dropout=settings.dropout, **extra)


def build_network(
    model: nn.Module | None,
    backbone: str,
    data: Data,
    classes: int,
    settings: Settings,
    x: Features | None = None,
) -> Network:
    """A network that may be trained without touching what the user holds; ``x``: the data's features, if at hand."""
    device = find_device(settings.device)
    if model is not None and not isinstance(model, Backbone):
        return OwnNetwork(deepcopy(model).to(device), data.to(str(device)))
    module = deepcopy(model) if model else build_backbone(backbone, data.x.shape[1], classes, settings)
    return NativeNetwork(module.to(device), as_features(data.x.to(device)) if x is None else x)


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

    module.apply(forget)


def find_device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {name!r} is not available: {str(error).splitlines()[0]}") from None
    return device
