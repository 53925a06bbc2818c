"""A result: the sparse graph, the model, what was measured; on disk as safetensors and JSON."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst.base.arguments import as_path
from gst.base.errors import InputError
from gst.base.modes import plain_torch
from gst.inference.compiled import Compiled, compile_model
from gst.storage import files, run_folder
from gst.storage.graph_file import pack_graph, unpack_graph
from gst.storage.run_metrics import check_metrics
from gst.train.models import build_backbone
from gst.train.settings import Settings, make_settings


@dataclass
class Result:
    """What :func:`gst.sparsify` found."""

    graph: Data  # only kept edges, every edge-level attribute filtered, nodes never relabelled
    edge_mask: Tensor  # bool, one per column of the dense edge_index
    scores: Tensor  # float64, one per column; infinite for self-loops
    metrics: dict[str, Any]
    model: nn.Module | None  # trained on the sparse graph; None when an own model was saved and not given to load
    settings: Settings
    own_model: bool = False

    def save(self, folder: str | PathLike[str]) -> Path:
        """Writes the run folder in one step: at every instant it holds the result that was there before, or this one.

        A folder that is neither empty nor a run of gst is refused, and left as it is.
        """
        as_path("folder", folder)
        if self.model is None:
            raise InputError("this result was loaded without its own model: give it to Result.load(folder, model=…)")
        tensors, attributes = pack_graph(self.graph)
        tensors |= {"edge_mask": self.edge_mask, "scores": self.scores}
        words = {"own_model": self.own_model, "metrics": self.metrics, "settings": self.settings.model_dump()}
        parts = {"graph": files.pack(tensors, attributes), "model": files.pack(self.model.state_dict())}
        return run_folder.write(folder, words, parts)

    def extend(self, data: Data, rule: Any = "auto") -> "Result":
        """The same run with new nodes: their edges are chosen by the rule that chose the others.

        See :func:`gst.after.extend.extend`.
        """
        from gst.after.extend import extend  # noqa: PLC0415 - it needs the methods, which need this

        return extend(self, data, rule)

    @classmethod
    @plain_torch()
    def load(cls, folder: str | PathLike[str], model: nn.Module | None = None) -> "Result":
        """Reads a run folder, from a stranger too: no code in it is run.

        ``model`` receives the weights of a run with an own model; without it such a run loads with ``model=None``.
        """
        place = as_path("folder", folder) / run_folder.RUN
        run, parts = run_folder.read(folder)
        metrics, words = run.get("metrics"), run.get("settings")
        if not isinstance(metrics, dict) or not isinstance(words, dict):
            raise InputError(f"{place} has no metrics or no settings: it is not a whole run")
        check_metrics(metrics, place)
        settings = make_settings(None, "gcn", words)
        sealed = run["format"] > 1
        (graph_path, graph_content), (model_path, model_content) = parts["graph"], parts["model"]
        tensors, attributes = files.parse(graph_content, graph_path, sealed=sealed)
        if "edge_mask" not in tensors or "scores" not in tensors:
            raise InputError(f"{graph_path} has no edge_mask or no scores: it is not the graph of a run")
        mask, scores = tensors.pop("edge_mask"), tensors.pop("scores")
        graph = unpack_graph(tensors, attributes, graph_path)
        if mask.dtype != torch.bool or mask.dim() != 1 or scores.shape != mask.shape:
            raise InputError(f"{graph_path}: edge_mask and scores have no value for each column of the dense graph")
        if int(mask.sum()) != graph.edge_index.shape[1]:
            raise InputError(f"{graph_path}: edge_mask keeps {int(mask.sum())} columns, edge_index has others")
        state, _ = files.parse(model_content, model_path, sealed=sealed)
        own = bool(run.get("own_model"))
        if not own:
            model = _empty_backbone(str(metrics.get("backbone")), state, graph, settings, model_path)
        if model is not None:
            try:
                model.load_state_dict(state, assign=not own)
            except RuntimeError as error:
                reason = str(error).splitlines()[-1].strip()
                raise InputError(f"{model_path} does not fit the model: {reason}") from None
            model.eval()
        return cls(graph, mask, scores, metrics, model, settings, own)

    def compile(self, layout: str = "auto", features: str = "float32") -> Compiled:
        """The model and the sparse graph bound together for inference; see :func:`gst.inference.compiled.compile_model`.

        ``compile()()`` gives the logits of all nodes, in the order of the data.
        """
        if self.model is None:
            raise InputError("this result was loaded without its own model: give it to Result.load(folder, model=…)")
        return compile_model(self.model, self.graph, layout, features)


def _classes(state: Mapping[str, Tensor], path: Path) -> int:
    """Number of outputs, from the last layer's bias."""
    named = (re.fullmatch(r"layers\.(\d{1,9})\.bias", name) for name in state)
    numbers = [int(match[1]) for match in named if match]
    if not numbers:
        raise InputError(f"{path} holds no backbone of gst")
    return state[f"layers.{max(numbers)}.bias"].numel()


def _empty_backbone(name: str, state: Mapping[str, Tensor], graph: Data, settings: Settings, path: Path) -> nn.Module:
    """A backbone without memory for its weights: what the settings claim is only allocated if the file holds it."""
    if settings.layers > len(state):
        raise InputError(f"{path} holds {len(state)} tensors: too few for {settings.layers} layers")
    with torch.device("meta"):
        model = build_backbone(name, graph.x.shape[1], _classes(state, path), settings)
    for key, wanted in model.state_dict().items():
        if key in state and (state[key].shape != wanted.shape or state[key].dtype != wanted.dtype):
            raise InputError(f"{path} does not fit the model: {key} has shape {list(state[key].shape)}")
    return model
