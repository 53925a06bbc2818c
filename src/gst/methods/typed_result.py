"""What a result on a typed graph has of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData

from gst.base.errors import InputError
from gst.graph.relations import Schema
from gst.nn.rgcn import RGCN
from gst.train.settings import Training
from gst.train.typed_run import TypedRun


def typed_metrics(run: TypedRun, keep_mask: Tensor) -> dict[str, Any]:
    """How many edges each relation has and keeps; of a protected one none is counted."""
    edges = run.edges
    relation = edges.edge_relation.cpu()
    kept = torch.bincount(relation[keep_mask], minlength=len(edges.schema.relations)).tolist()
    total = edges.counts.tolist()
    names = [each.name for each in edges.schema.relations]
    relations = {name: {"total": total[i], "kept": kept[i]} for i, name in enumerate(names) if total[i]}
    protected = [name for i, name in enumerate(names) if not total[i]]
    return {"target": edges.schema.target, "relations": relations, "protected": protected, "scope": run.scope}


def empty_rgcn(name: str, state: Mapping[str, Tensor], graph: HeteroData, training: Training, path: Path) -> nn.Module:
    """An R-GCN without memory for its weights: what the settings claim is only allocated if the file holds it."""
    if name != "rgcn":
        raise InputError(f"{path} belongs to the backbone {name!r}: a typed graph has rgcn")
    last = f"layers.{training.layers - 1}.bias.0"
    if training.layers > len(state) or last not in state:
        raise InputError(f"{path} holds {len(state)} tensors: not those of {training.layers} layers")
    candidates = [name for name in graph.node_types if graph[name].get("y") is not None]
    for target in candidates or graph.node_types[:1]:
        schema = Schema.stored(graph, target)
        inputs = [None if graph[n].get("x") is None else int(graph[n].x.shape[1]) for n in schema.node_types]
        with torch.device("meta"):
            sizes = (training.hidden, state[last].numel())
            model = RGCN(schema, inputs, *sizes, layers=training.layers, dropout=training.dropout)
        wanted = model.state_dict()
        if wanted.keys() == state.keys() and all(
            state[key].shape == part.shape and state[key].dtype == part.dtype for key, part in wanted.items()
        ):
            return model
    raise InputError(f"{path} does not fit the model: its weights are those of another graph or of other settings")
