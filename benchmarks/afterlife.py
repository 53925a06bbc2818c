"""Life after the cut: unseen nodes and drift, one row a measurement, appended to a CSV as it goes.

    python benchmarks/afterlife.py results/afterlife.csv --datasets cora computers --seeds 5
    python benchmarks/afterlife.py results/afterlife.csv --table

*unseen*: a fifth of the nodes, none of them for training or validation, is hidden with its edges. Every method runs on
what is left; then the hidden nodes arrive, their edges are chosen by a rule (``gst.after.extend``), and their own accuracy is
measured. "no edges" gives them none.

*drift*: features are dropped or shuffled after the cut, or the model trains on (``gst.after.drift``).

Rows of runs that the file already has are not run again. GCN, hidden 64, 200 epochs at ``--lr``. Of GST, every recipe
that this gst knows. ``--table`` prints means and standard deviations over the seeds, in Markdown.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, get_args

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

import gst
import record
from gst.after.drift import drift
from gst.after.extend import old_decisions
from gst.base.versions import versions
from gst.storage.cache import Cache
from gst.train.settings import Settings

RUN = ["dataset", "part", "method", "sparsity", "seed"]
COLUMNS = [
    *RUN,
    "change",
    "amount",
    "edges_kept",
    "edges_total",
    "agreement",
    "divergence",
    "dense_test",
    "test",
    "versions",
]
TRAINING: dict[str, Any] = {"hidden": 64, "anchor_epochs": 100, "sparse_epochs": 100}
HIDDEN = 0.2
RECIPES = get_args(Settings.model_fields["recipe"].annotation)
METHODS = ["dense", *RECIPES, "local-similarity", "random"]


def find(data: Data, method: str, sparsity: float, **common: Any) -> gst.Result:
    """The run of a row's name."""
    if method == "dense":
        return gst.sparsify(data, "random", sparsity=0.0, **common)
    if method in RECIPES:
        return gst.sparsify(data, "gst", recipe=method, sparsity=sparsity, **common)
    return gst.sparsify(data, method, sparsity=sparsity, **common)


def hide(data: Data, seed: int) -> tuple[Data, Data]:
    """The graph without the hidden nodes, and the whole graph with them at the end and as its test nodes."""
    nodes = int(data.num_nodes)
    free = (~(data.train_mask | data.val_mask) & (data.y >= 0)).nonzero().flatten()
    drawn = free[torch.randperm(free.numel(), generator=torch.Generator().manual_seed(seed))]
    hidden = torch.zeros(nodes, dtype=torch.bool)
    hidden[drawn[: round(HIDDEN * nodes)]] = True
    order = torch.cat([(~hidden).nonzero().flatten(), hidden.nonzero().flatten()])
    place = torch.empty_like(order)
    place[order] = torch.arange(nodes)
    parts = {name: data[name][order] for name in ("x", "y", "train_mask", "val_mask", "test_mask")}
    grown = Data(edge_index=place[data.edge_index], name=data.name, **parts)
    kept = nodes - int(hidden.sum())
    index, _ = subgraph(torch.arange(kept), grown.edge_index, num_nodes=nodes)
    seen = Data(edge_index=index, name=data.name, **{name: part[:kept] for name, part in parts.items()})
    grown.test_mask = torch.arange(nodes) >= kept
    return seen, grown


@torch.no_grad()
def without(result: gst.Result, grown: Data) -> float:
    """Accuracy of the new nodes when none of their edges is kept."""
    assert result.model is not None
    edges = gst.EdgeSet.from_data(grown)
    graph = edges.sparse_graph(grown, old_decisions(result, grown, edges)[0])
    logits: Tensor = result.model.eval()(graph.x, graph.edge_index)
    return 100 * float((logits.argmax(-1) == grown.y)[grown.test_mask].double().mean())


def unseen(data: Data, method: str, sparsity: float, seed: int, common: dict[str, Any]) -> Iterator[dict[str, Any]]:
    seen, grown = hide(data, seed)
    result = find(seen, method, sparsity, **common)
    if method == "dense":
        rules = ["random"]  # all edges stay, whatever the rule
    elif method in RECIPES:
        rules = ["greedy", "agreement", "random"]
    else:
        rules = ["method", "agreement", "random"]
    for rule in rules:
        m = result.extend(grown, rule).metrics  # type: ignore[arg-type]
        yield {"change": f"rule {rule}", "amount": m["extended"]["nodes"], **m}
    yield {"change": "no edges", "amount": m["extended"]["nodes"], "test": without(result, grown)}


def drifted(data: Data, method: str, sparsity: float, seed: int, common: dict[str, Any]) -> Iterator[dict[str, Any]]:
    result = find(data, method, sparsity, **common)
    amount = {name: result.metrics[name] for name in ("edges_kept", "edges_total")}
    for row in drift(result, data, seed=seed):
        yield {**amount, **row}


PARTS = {"unseen": unseen, "drift": drifted}


def tables(path: Path) -> None:
    """Three a data set: new nodes, changed features, training that went on."""
    rows = record.read(path)
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        for title, part, change in (
            ("new nodes", "unseen", ""),
            ("changed features", "drift", "features"),
            ("trained on", "drift", "trained"),
        ):
            cells: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}
            for row in rows:
                if (row["dataset"], row["part"]) == (dataset, part) and row["change"].startswith((change, "none")):
                    column = row["change"] if part == "unseen" else f"{row['change']} {row['amount']}"
                    removed = f"{100 * float(row['sparsity']):.0f} % removed"
                    name = row["method"], " ".join(filter(None, (removed, record.age(row))))
                    cells.setdefault(name, {}).setdefault(column, []).append(row)
            columns = list(dict.fromkeys(column for line in cells.values() for column in line))
            print(f"\n| {dataset}, {title} | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
            for name, line in sorted(cells.items(), key=lambda cell: cell[0][1]):
                print(f"| {', '.join(name)} | {' | '.join(summary(line.get(column, [])) for column in columns)} |")


def summary(rows: list[dict[str, str]]) -> str:
    """Test accuracy over the seeds and, where both graphs were asked, the nodes in % that they answer alike."""
    if not rows:
        return ""
    tests = [float(row["test"]) for row in rows]
    spread = f" ± {stdev(tests):.1f}" if len(tests) > 1 else ""
    alike = [100 * float(row["agreement"]) for row in rows if row["agreement"]]
    return f"{fmean(tests):.1f}{spread}" + (f" ({fmean(alike):.0f})" if alike else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--datasets", nargs="+", default=["cora", "computers"])
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--sparsities", nargs="+", type=float, default=[0.6, 0.8])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--table", action="store_true", help="print what the file has, run nothing")
    args = parser.parse_args()
    if args.table:
        tables(args.csv)
        return
    torch.set_num_threads(1)
    done = record.done(args.csv, RUN)
    for name in args.datasets:
        data = gst.load(name)
        for seed in range(args.seeds):
            with tempfile.TemporaryDirectory() as folder:
                common: dict[str, Any] = {"seed": seed, "cache": Cache(Path(folder)), **TRAINING, "lr": args.lr}
                for part, measure in PARTS.items():
                    for method in args.methods:
                        for sparsity in [0.0] if method == "dense" else args.sparsities:
                            key = dict(zip(RUN, (data.name, part, method, sparsity, seed), strict=True))
                            if tuple(map(str, key.values())) in done:
                                continue
                            start = time.perf_counter()
                            code = versions(data.name, "gcn", "full", "gst" if method == "paper" else method)
                            rows = measure(data, method, sparsity, seed, common)
                            record.add(args.csv, RUN, COLUMNS, [{**r, **key, "versions": code} for r in rows], 4)
                            print(*key.values(), f"{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
