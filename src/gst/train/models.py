"""From a name or a user's module to a network bound to a graph."""

from copy import deepcopy

import torch
from torch import nn
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.base.randomness import redirect_torch_random
from gst.base.text import shown
from gst.nn.backbones import BACKBONES, Backbone
from gst.nn.features import Features, as_features
from gst.nn.links import LinkNetwork
from gst.nn.network import NativeNetwork, Network, OwnNetwork
from gst.nn.own_input import check_outputs
from gst.train.settings import Training


def build_backbone(name: str, inputs: int, outputs: int, training: Training) -> Backbone:
    """A freshly initialised backbone; the caller seeds."""
    backbone = BACKBONES[BACKBONES.resolve(name)]
    names = ("layers", "dropout", "residual", "norm", *backbone.arguments)
    return backbone(inputs, training.hidden, outputs, **{name: getattr(training, name) for name in names})


def build_network(
    model: nn.Module | None,
    backbone: str,
    data: Data,
    classes: int | None,
    training: Training,
    x: Features | None = None,
) -> Network:
    """A network to train that shares nothing with the user's model.

    ``classes``: the number of outputs; None: as many as ``model`` has. ``x``: the features of ``data``, if already
    converted.
    """
    device = find_device(training.device)
    if model is not None and not isinstance(model, Backbone):
        return OwnNetwork(deepcopy(model).to(device), data.to(str(device)), classes)
    if model is None:
        assert classes is not None
        module = build_backbone(backbone, data.x.shape[1], classes, training)
    else:
        module = deepcopy(model)
        check_outputs(module, module.outputs, classes)
    if x is None:
        x = as_features(data.x.to(device), next(module.parameters()).dtype)
    return NativeNetwork(module.to(device), x)


def reset_parameters(module: nn.Module) -> None:
    """Initialises a user's model anew; the caller seeds."""

    def reset_part(part: nn.Module) -> None:
        reset = getattr(part, "reset_parameters", None)
        if callable(reset):
            reset()
        elif list(part.parameters(recurse=False)):
            raise InputError(
                f"{type(part).__name__} has parameters but no reset_parameters(): a fresh model cannot be made of it"
            )

    with redirect_torch_random():
        module.apply(reset_part)


def reset_own_model(network: Network) -> None:
    """Initialises a network anew if its module is a user's; the caller seeds."""
    inner = network.inner if isinstance(network, LinkNetwork) else network
    if isinstance(inner, OwnNetwork):
        reset_parameters(network.module)


def find_device(name: str) -> torch.device:
    """A device that can compute; tried with 1 + 1, because meta, for one, holds tensors without values."""
    try:
        device = torch.device(name)
        torch.ones(1, device=device).add(1).item()
    except Exception:  # every backend raises errors of another type
        others = "cpu or cuda" if torch.cuda.is_available() else "cpu"
        raise InputError(f"device '{shown(name)}' is not available here: take {others}") from None
    return device


def check_model(model: object) -> None:
    """Refuses whatever is not a module."""
    if model is not None and not isinstance(model, nn.Module):
        what = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise InputError(f"model is {what}: an nn.Module is needed (a name such as 'gcn' goes to backbone=)")
