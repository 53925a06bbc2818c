"""A complete run of GST against plain PyTorch Geometric training, in one process, as JSON.

Peer: ``torch_geometric.nn.GCN`` on the dense graph, hidden 512, as many epochs as GST has in all, each a training step
and a validation pass. GST (Algorithm 1 of the paper): anchor + topology + sparse phase. Both are timed in alternating
slices, so that a noisy machine disturbs both alike; ``ratio`` below 1 means that GST is faster.

    python benchmarks/epoch.py --datasets cora citeseer pubmed

``peak_gib`` is the peak resident memory of a process that runs GST alone, the interpreter and its libraries included.
"""

import argparse
import json
import subprocess
import sys
import time

import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import gst
from gst.train.presets import preset
from gst.train.task import Task
from gst.train.trainer import Progress


class Peer:
    """Plain PyG training of a two-layer GCN."""

    def __init__(self, data: Data, hidden: int) -> None:
        self.data = data
        self.task = Task.from_data(data)
        self.model = GCN(data.x.shape[1], hidden, 2, self.task.num_classes, dropout=0.5)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.001, weight_decay=5e-4)

    def epoch(self) -> float:
        self.model.train()
        self.optimizer.zero_grad()
        self.task.loss(self.model(self.data.x, self.data.edge_index)[self.task.train]).backward()
        self.optimizer.step()
        self.model.eval()
        with torch.no_grad():
            return self.task.score(self.model(self.data.x, self.data.edge_index)[self.task.val], "val")


def race(name: str, hidden: int, sparsity: float, share: float) -> dict[str, float | int | str]:
    """Times both on one data set; whenever GST has finished 20 epochs, the peer trains 20 as well."""
    data = gst.load(name)
    epochs = {key: max(20, round(share * int(preset(name, "gcn")[key]))) for key in ("anchor_epochs", "sparse_epochs")}
    total = sum(epochs.values())
    peer = Peer(data, hidden)
    for _ in range(2):
        peer.epoch()
    peer_seconds = 0.0
    peer_epochs = 0

    def watch(progress: Progress) -> None:
        nonlocal peer_seconds, peer_epochs
        if progress.epoch % 20 == 0:
            start = time.perf_counter()
            for _ in range(20):
                peer.epoch()
            peer_seconds += time.perf_counter() - start
            peer_epochs += 20

    start = time.perf_counter()
    result = gst.sparsify(data, "gst", sparsity=sparsity, hidden=hidden, cache=False, callbacks=watch, **epochs)  # type: ignore[arg-type]
    ours = time.perf_counter() - start - peer_seconds
    theirs = peer_seconds * total / peer_epochs
    return {
        "dataset": name,
        "hidden": hidden,
        "sparsity": sparsity,
        "epochs": total,
        "gst_seconds": round(ours, 3),
        "pyg_seconds": round(theirs, 3),
        "ratio": round(ours / theirs, 3),
        "topology_seconds": round(result.metrics["seconds"]["topology"], 3),
        "peak_gib": peak_gib(name, hidden, sparsity),
    }


def peak_gib(name: str, hidden: int, sparsity: float) -> float:
    """Memory does not depend on the number of epochs, so a few are enough."""
    code = (
        f"import gst; gst.sparsify(gst.load({name!r}), 'gst', sparsity={sparsity}, hidden={hidden}, cache=False, "
        "anchor_epochs=5, sparse_epochs=10); print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return round(float(done.stdout) / 2**20, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--sparsity", type=float, default=0.4)
    parser.add_argument("--share", type=float, default=1.0, help="share of the paper's epochs, for a quick look")
    args = parser.parse_args()
    races = [race(name, args.hidden, args.sparsity, args.share) for name in args.datasets]
    report = {"benchmark": "epoch", "threads": torch.get_num_threads(), "share": args.share, "races": races}
    json.dump(report, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
