"""A run on a typed graph."""

from copy import deepcopy
from functools import cached_property
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData

from gst.base.errors import InputError
from gst.base.names import normalise_name
from gst.base.text import shown
from gst.graph.edgeset import By
from gst.graph.relations import check_typed, find_target
from gst.graph.typed import Amount, TypedEdges
from gst.nn.masker import Masker
from gst.nn.network import Network
from gst.nn.rgcn import RGCN, TypedBlocks, TypedFeatures, typed_features
from gst.nn.typed_masker import TypedMasker
from gst.nn.typed_network import TypedNative, TypedOwn
from gst.train.run import Run
from gst.train.task import Task

BACKBONES = ("rgcn",)


class TypedRun(Run):
    """What a search on a typed graph works on.

    Args:
        data: a PyG ``HeteroData``; the target type has y and the three split masks.
        target: the type of the nodes with labels; None: the only one that has them.
        protect: relations whose edges all stay.
        sparsity: a share by relation, if budgets are by relation.
        scope: what topology is judged on, ``"union"`` or ``"relation"``.

    The other arguments are those of :class:`~gst.train.run.Run`.
    """

    edges: TypedEdges

    def __init__(
        self,
        data: HeteroData,
        *,
        target: str | None = None,
        protect: Any = None,
        sparsity: Amount = None,
        scope: str = "union",
        **arguments: Any,
    ) -> None:
        self.target, self.protect, self.sparsity, self.scope = target, protect, sparsity, scope
        super().__init__(data, **arguments)
        if self.batching.batch != "full":
            raise InputError(f"batch {self.batching.batch} is for graphs of one type: a typed graph takes full")
        if self.training.inductive:
            raise InputError("inductive is for graphs of one type: leave it off for a typed graph")

    def check_graph(self, data: Any) -> None:
        check_typed(data)

    def resolve(self, backbone: str) -> str:
        if self.model is None and normalise_name(backbone) not in ("rgcn", "gcn"):
            raise InputError(
                f"backbone '{shown(backbone)}' is for graphs of one type: a typed graph takes rgcn or your model"
            )
        return "rgcn"  # the GCN of typed graphs

    def make_task(self) -> Task:
        store = self.data[find_target(self.data, self.target)]
        parts = {name: store.get(name) for name in ("y", "train_mask", "val_mask", "test_mask")}
        nodes, metric = int(store.num_nodes), getattr(self.data, "metric", None)
        return Task.from_data(Data(x=torch.zeros(nodes, 0), num_nodes=nodes, metric=metric, **parts))

    def make_edges(self, by: By) -> TypedEdges:
        """An edge and its reverse are one, whatever ``by`` says."""
        return TypedEdges.from_hetero(self.data, self.target, self.protect, self.sparsity)

    def make_features(self) -> TypedFeatures:
        return typed_features(self.data, self.edges.schema, self.device)

    def check_memory(self, **masker: int) -> None:
        """What a typed network takes is small beside its graph."""

    @property
    def inputs(self) -> list[int | None]:
        """The number of features of each type."""
        return [None if x is None else int(x.shape[1]) for x in self.x]

    @cached_property
    def _blocks(self) -> TypedBlocks:
        return TypedBlocks(self.edges)

    def new_masker(self, hidden: int, deviation: float) -> Masker:
        return TypedMasker(self.edges.schema, self.inputs, hidden, deviation).to(self.device)

    def make_network(self) -> Network:
        schema, training = self.edges.schema, self.training
        if self.model is not None and not isinstance(self.model, RGCN):
            data = self.data.to(str(self.device)) if self.device.type != "cpu" else self.data
            return TypedOwn(deepcopy(self.model).to(self.device), data, schema, self.task.num_classes)
        if self.model is not None:
            return TypedNative(deepcopy(self.model).to(self.device), self.x, self._blocks)
        if training.residual or training.norm != "none":
            raise InputError("residual and norm are for graphs of one type: R-GCN has neither")
        sizes = {"layers": training.layers, "dropout": training.dropout}
        module = RGCN(schema, self.inputs, training.hidden, self.task.num_classes, **sizes)  # type: ignore[arg-type]
        return TypedNative(module.to(self.device), self.x, self._blocks)

    @property
    def depends(self) -> dict[str, Any]:
        typed: dict[str, Any] = {"target": self.edges.schema.target, "counted": self.edges.counts.tolist()}
        if self.edges.quota is not None:
            typed["quota"] = list(self.edges.quota)
        return {**super().depends, **typed, "scope": self.scope}

    def on(self, data: Data) -> Run:
        raise InputError("weights of the edges' own are for graphs of one type")
