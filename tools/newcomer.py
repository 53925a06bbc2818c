"""What somebody new does, with the installed package alone: own CSV with names, own trained PyG model, export.

Run by ``make package`` in environments that hold nothing but the wheel and what it depends on; the last step is a
plain PyG script that never imports gst. Prints one line of JSON.
"""

import csv
import json
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

import gst

PLAIN = """
import json, sys, torch
from torch_geometric.data import Data
graph = Data.from_dict(torch.load(sys.argv[1]))
assert graph.validate() and "gst" not in sys.modules
print(json.dumps({"columns": graph.num_edges, "first": graph.node_id[0]}))
"""


class MyModel(nn.Module):
    """An ordinary PyG model; nothing in it knows of gst."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = SAGEConv(inputs, 32)
        self.second = SAGEConv(32, outputs)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def write_tables(folder: Path, people: int = 240) -> None:
    """Two groups of friends who mostly know each other, with names as identifiers."""
    chance = random.Random(0)
    names = [f"person-{1000 + 7 * i}" for i in range(people)]
    with (folder / "people.csv").open("w", newline="") as features, (folder / "groups.csv").open("w", newline="") as y:
        rows, labels = csv.writer(features), csv.writer(y)
        rows.writerow(["id", "age", "height", "score"])
        labels.writerow(["id", "group"])
        for i, name in enumerate(names):
            group = i % 2
            rows.writerow([name, chance.gauss(group, 1), chance.gauss(-group, 1), chance.gauss(0, 1)])
            labels.writerow([name, ("red", "blue")[group]])
    with (folder / "friends.csv").open("w", newline="") as edges:
        rows = csv.writer(edges)
        rows.writerow(["source", "target", "since"])
        for _ in range(6 * people):
            u = chance.randrange(people)
            same = chance.random() < 0.8
            v = chance.randrange(people // 2) * 2 + (u % 2 if same else 1 - u % 2)
            if u != v:
                rows.writerow([names[u], names[v], "2024-05-01"])


def main() -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as text, warnings.catch_warnings():
        warnings.simplefilter("ignore", gst.DataWarning)  # pairs that are listed twice
        folder = Path(text)
        write_tables(folder)
        tables = [folder / name for name in ("friends.csv", "people.csv", "groups.csv")]
        data = gst.from_files(*tables, split="random", undirected=True)
        model = MyModel(data.x.shape[1], 2)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(60):
            optimiser.zero_grad()
            logits = model(data.x, data.edge_index)
            nn.functional.cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
            optimiser.step()
        result = gst.Deploy(model, sparsity=0.5).fit(data).result_
        result.save(folder / "run")
        for to in ("pyg", "csv"):
            subprocess.run([sys.executable, "-m", "gst", "export", folder / "run", "--to", to], check=True, stdout=2)
        with (folder / "run" / "edges.csv").open() as file:
            kept = list(csv.DictReader(file))
        assert kept[0]["source"].startswith("person-")
        plain = [sys.executable, "-c", PLAIN, str(folder / "run" / "graph.pt")]
        read = json.loads(subprocess.run(plain, check=True, capture_output=True, text=True).stdout)
        assert read["columns"] == len(kept) == result.graph.num_edges and read["first"] == "person-1000"
    names = ("edges_total", "edges_kept", "test", "agreement")
    print(json.dumps({"version": gst.__version__, **{name: result.metrics[name] for name in names}}))


if __name__ == "__main__":
    main()
