"""A run whose answers are scores of pairs of nodes."""

from typing import Any

import torch
from torch_geometric.data import Data

from gst.base.errors import InputError
from gst.nn.links import LinkNetwork, add_decoder
from gst.nn.network import Network
from gst.train.links import LinkTask
from gst.train.models import build_network
from gst.train.run import Run
from gst.train.task import Task


class LinkRun(Run):
    """A graph for link prediction: networks give embeddings, which a decoder turns into scores of pairs."""

    def __init__(self, data: Data, **arguments: Any) -> None:
        super().__init__(data, **arguments)
        if self.batching.batch != "full" or self.training.inductive:
            raise InputError("links are predicted on the whole graph: take batch full and no inductive")

    def make_task(self) -> Task:
        return LinkTask.of_links(self.data, self.training.hidden)

    def make_network(self) -> Network:
        task = self.task
        assert isinstance(task, LinkTask)
        width = task.num_classes if self.model is None else None
        inner = build_network(self.model, self.backbone, self.data, width, self.training, x=self.x)
        if width is None:
            with torch.no_grad():
                width = inner.logits(self.edges).shape[1]
        add_decoder(inner.module, width, self.training.decoder)
        return LinkNetwork(inner, task.pairs)
