"""What each of several workers does in tests/test_distributed.py; started by torchrun."""

import json
import sys
from pathlib import Path

import torch

import gst
from graphs import random_graph
from gst.base import distributed
from gst.graph import select
from gst.graph.edgeset import EdgeSet
from gst.graph.shared_select import shared_top_k
from gst.nn import layerwise
from gst.nn.backbones import GCN
from gst.storage.checkpoint import Checkpoint
from gst.storage.state_tree import hash_of

RUN = {"backbone": "cluster-gcn", "batch": "clusters", "clusters": 6, "clusters_per_batch": 3, "sparsity": 0.5}
FEW = {"hidden": 8, "anchor_epochs": 6, "sparse_epochs": 8, "interval": 3, "lr": 0.01, "cache": False}


def check_selection() -> None:
    torch.manual_seed(3)  # the same scores everywhere
    many = [torch.randn(101), torch.randint(0, 4, (57,)).float(), torch.tensor([torch.inf, -torch.inf, torch.nan, 0.0])]
    many += [torch.randn(1000).mul(1e-300).double(), torch.zeros(9)]
    for scores in many:
        for k in range(0, scores.numel() + 1, 1 + scores.numel() // 13):
            assert torch.equal(shared_top_k(scores, k), select.top_k(scores, k)), (scores, k)
    keep = select.top_k(many[0], 40)
    assert torch.equal(select.exchange(keep, many[0], 7, choose=shared_top_k), select.exchange(keep, many[0], 7))


def check_whole_graphs() -> None:
    data = random_graph(nodes=50, edges=200, weighted=True)
    edges = EdgeSet.from_data(data)
    torch.manual_seed(0)
    model, values = GCN(5, 8, 3).eval(), 1 + 0.1 * torch.rand(edges.num_edges)
    layerwise.RUN = 40
    found = layerwise.layerwise_logits(model, data.x, edges, values)
    leaf = values.clone().requires_grad_()
    wanted = model.run(data.x, edges.adjacency.blocks(2), leaf)
    assert torch.allclose(found, wanted, atol=1e-5)
    slope = layerwise.edge_gradient(model, data.x, edges, values, lambda logits: logits.square().sum())
    assert torch.allclose(slope, torch.autograd.grad(wanted.square().sum(), leaf)[0], atol=1e-4)


def main(folder: Path) -> None:
    with distributed.process_group():
        check_selection()
        check_whole_graphs()
        data = gst.load("synthetic:nodes=300,degree=8")
        with Checkpoint(folder / "state", every=0) as place:
            result = gst.sparsify(data, "gst", **RUN, **FEW, checkpoint=place)
        facts = {"kept": result.metrics["edges_kept"], "total": result.metrics["edges_total"]}
        facts |= {"mask": hash_of(result.edge_mask), "scores": hash_of(result.scores)}
        facts["model"] = hash_of(list(result.model.state_dict().values()))
        (folder / f"{distributed.rank()}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
