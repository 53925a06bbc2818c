"""A result: the sparse graph, the model, what was measured; on disk as safetensors and JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gst import artifact
from gst.compiled import Compiled, compile_model
from gst.errors import InputError
from gst.models import build_backbone
from gst.packing import pack_graph, unpack_graph
from gst.settings import Settings, make_settings

FORMAT = 2
READABLE = (1, 2)  # 1 has no hashes: a changed byte in its numbers cannot be seen
_RUN, _GRAPH, _MODEL = "run.json", "graph.safetensors", "model.safetensors"


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
        """Writes the run folder, all of it or nothing; a result that was there before stays until this one is whole."""
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise InputError(f"cannot write {place}: it is a file, a folder is needed")
        if self.model is None:
            raise InputError("this result was loaded without its own model: give it to Result.load(folder, model=…)")
        tensors, words = pack_graph(self.graph)
        tensors |= {"edge_mask": self.edge_mask, "scores": self.scores}
        files = {_GRAPH: artifact.pack(tensors, words), _MODEL: artifact.pack(self.model.state_dict())}
        run = {
            "format": FORMAT,
            "own_model": self.own_model,
            "metrics": self.metrics,
            "settings": self.settings.model_dump(),
            "files": {name: artifact.digest(content) for name, content in files.items()},
        }
        files[_RUN] = artifact.pack_json(run)
        artifact.write_together({place / name: content for name, content in files.items()})
        return place

    def extend(self, data: Data, rule: Any = "auto") -> "Result":
        """The same run with new nodes: their edges are chosen by the rule that chose the others.

        See :func:`gst.extend.extend`.
        """
        from gst.extend import extend  # noqa: PLC0415 - it needs the methods, which need this

        return extend(self, data, rule)

    @classmethod
    def load(cls, folder: str | PathLike[str], model: nn.Module | None = None) -> "Result":
        """Reads a run folder, from a stranger too: no code in it is run.

        ``model`` receives the weights of a run with an own model; without it such a run loads with ``model=None``.
        """
        place = Path(folder)
        if not (place / _RUN).is_file():
            raise InputError(f"{place} is not a run folder: it has no {_RUN}")
        run = artifact.read_json(place / _RUN, unsealed=(1,))
        if run.get("format") not in READABLE:
            raise InputError(f"{place / _RUN} has format {run.get('format')!r}: this gst reads formats 1 to {FORMAT}")
        metrics, words, known = run.get("metrics"), run.get("settings"), run.get("files", {})
        if not isinstance(metrics, dict) or not isinstance(words, dict) or not isinstance(known, dict):
            raise InputError(f"{place / _RUN} has no metrics or no settings: it is not a whole run")
        settings = make_settings(None, "gcn", words)
        sealed = run["format"] > 1
        tensors, attributes = artifact.read_tensors(place / _GRAPH, sealed=sealed, known=known.get(_GRAPH))
        if "edge_mask" not in tensors or "scores" not in tensors:
            raise InputError(f"{place / _GRAPH} has no edge_mask or no scores: it is not the graph of a run")
        mask, scores = tensors.pop("edge_mask"), tensors.pop("scores")
        graph = unpack_graph(tensors, attributes, place / _GRAPH)
        state, _ = artifact.read_tensors(place / _MODEL, sealed=sealed, known=known.get(_MODEL))
        own = bool(run.get("own_model"))
        if not own:
            model = _empty_backbone(str(metrics.get("backbone")), state, graph, settings, place / _MODEL)
        if model is not None:
            try:
                model.load_state_dict(state, assign=not own)
            except RuntimeError as error:
                raise InputError(
                    f"{place / _MODEL} does not fit the model: {str(error).splitlines()[-1].strip()}"
                ) from None
            model.eval()
        return cls(graph, mask, scores, metrics, model, settings, own)

    def compile(self, layout: str = "auto", features: str = "float32") -> Compiled:
        """The model and the sparse graph bound together for inference; see :func:`gst.compiled.compile_model`.

        ``compile()()`` gives the logits of all nodes, in the order of the data.
        """
        if self.model is None:
            raise InputError("this result was loaded without its own model: give it to Result.load(folder, model=…)")
        return compile_model(self.model, self.graph, layout, features)


def _classes(state: Mapping[str, Tensor], path: Path) -> int:
    """Number of outputs, from the last layer's bias."""
    biases = [name for name in state if name.startswith("layers.") and name.endswith(".bias")]
    if not biases:
        raise InputError(f"{path} holds no backbone of gst")
    return state[max(biases)].numel()


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
