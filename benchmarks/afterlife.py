"""After the cut: unseen nodes and drift, one row per measurement, appended to a CSV file.

    python benchmarks/afterlife.py results/afterlife.csv --datasets cora computers --seeds 5
    python benchmarks/afterlife.py results/afterlife.csv --table

*unseen*: a fifth of the nodes, none of them for training or validation, is hidden with its edges. Every method runs on
the rest; then the hidden nodes arrive, a rule selects their edges (``Result.extend``), and their accuracy is measured.
"no edges" gives them none.

*drift*: features are dropped or shuffled after the cut, or the model is trained further (``gst.after.drift``).

Runs that the file already has are not repeated. GCN, hidden 64, 200 epochs at ``--lr``. ``--table`` prints means and
standard deviations over the seeds, in Markdown.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

import gst
from gst.after.drift import drift
from gst.base.stats import Stat
from gst.base.versions import versions
from gst.lab.markdown import markdown_table
from gst.lab.measurements import Measurements, age
from gst.methods import METHODS
from gst.methods.extend import old_decisions
from gst.storage.cache import Cache

RUN = ["dataset", "part", "method", "sparsity", "seed"]
MEASURED = ["edges_kept", "edges_total", "agreement", "divergence", "dense_test", "test"]
COLUMNS = [*RUN, "change", "amount", *MEASURED, "versions"]
TRAINING: dict[str, Any] = {"hidden": 64, "anchor_epochs": 100, "sparse_epochs": 100}
HIDDEN = 0.2
DEFAULT_METHODS = ["dense", "deploy", "retrain", "gst", "local-similarity", "random"]


def sparsify(data: Data, method: str, sparsity: float, **common: Any) -> gst.Result:
    """``gst.sparsify``, and all edges for ``"dense"``."""
    if method == "dense":
        return gst.sparsify(data, "random", sparsity=0.0, **common)
    return gst.sparsify(data, method, sparsity=sparsity, **common)


def hide(data: Data, seed: int) -> tuple[Data, Data]:
    """The graph without the hidden nodes, and the whole graph with them last and as its test nodes."""
    nodes = int(data.num_nodes)
    free = (~(data.train_mask | data.val_mask) & (data.y >= 0)).nonzero().flatten()
    drawn = free[torch.randperm(free.numel(), generator=torch.Generator().manual_seed(seed))]
    hidden = torch.zeros(nodes, dtype=torch.bool)
    hidden[drawn[: round(HIDDEN * nodes)]] = True
    order = torch.cat([(~hidden).nonzero().flatten(), hidden.nonzero().flatten()])
    position = torch.empty_like(order)
    position[order] = torch.arange(nodes)
    parts = {name: data[name][order] for name in ("x", "y", "train_mask", "val_mask", "test_mask")}
    grown = Data(edge_index=position[data.edge_index], name=data.name, **parts)
    num_seen = nodes - int(hidden.sum())
    index, _ = subgraph(torch.arange(num_seen), grown.edge_index, num_nodes=nodes)
    seen = Data(edge_index=index, name=data.name, **{name: part[:num_seen] for name, part in parts.items()})
    grown.test_mask = torch.arange(nodes) >= num_seen
    return seen, grown


@torch.no_grad()
def accuracy_without_edges(result: gst.Result, grown: Data) -> float:
    """Accuracy of the new nodes when none of their edges is kept."""
    assert result.model is not None
    edges = gst.EdgeSet.from_data(grown)
    graph = edges.sparse_graph(grown, old_decisions(result.graph, result.metrics, grown, edges)[0])
    logits: Tensor = result.model.eval()(graph.x, graph.edge_index)
    return 100 * float((logits.argmax(-1) == grown.y)[grown.test_mask].double().mean())


def measure_unseen(
    data: Data, method: str, sparsity: float, seed: int, common: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    seen, grown = hide(data, seed)
    result = sparsify(seen, method, sparsity, **common)
    if method == "dense":
        rules = ["random"]  # every rule keeps all edges
    elif METHODS[method].kind == "learned":
        rules = ["greedy", "agreement", "random"]
    else:
        rules = ["method", "agreement", "random"]
    for rule in rules:
        metrics = result.extend(grown, rule).metrics  # type: ignore[arg-type]
        yield {"change": f"rule {rule}", "amount": metrics["extended"]["nodes"], **metrics}
    new = metrics["extended"]["nodes"]
    yield {"change": "no edges", "amount": new, "test": accuracy_without_edges(result, grown)}


def measure_drift(
    data: Data, method: str, sparsity: float, seed: int, common: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    result = sparsify(data, method, sparsity, **common)
    size = {name: result.metrics[name] for name in ("edges_kept", "edges_total")}
    for row in drift(result, data, seed=seed):
        yield {**size, **row}


PARTS = {"unseen": measure_unseen, "drift": measure_drift}


def tables(measurements: Measurements) -> str:
    """Three per data set: new nodes, changed features, further training."""
    texts, rows = [], measurements.rows()
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        for title, part, change in (
            ("new nodes", "unseen", ""),
            ("changed features", "drift", "features"),
            ("trained further", "drift", "trained"),
        ):
            cells: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}
            for row in rows:
                if (row["dataset"], row["part"]) == (dataset, part) and row["change"].startswith((change, "none")):
                    column = row["change"] if part == "unseen" else f"{row['change']} {row['amount']}"
                    removed = f"{100 * float(row['sparsity']):.0f} % removed"
                    name = row["method"], " ".join(filter(None, (removed, age(row))))
                    cells.setdefault(name, {}).setdefault(column, []).append(row)
            columns = list(dict.fromkeys(column for line in cells.values() for column in line))
            lines = [
                [", ".join(name), *(summary(line.get(column, [])) for column in columns)]
                for name, line in sorted(cells.items(), key=lambda cell: cell[0][1])
            ]
            texts.append(markdown_table([f"{dataset}, {title}", *columns], lines))
    return "\n".join(texts)


def summary(rows: list[dict[str, str]]) -> str:
    """Test accuracy over the seeds and, where both graphs were compared, the share of equal predictions in %."""
    if not rows:
        return ""
    agreements = [100 * float(row["agreement"]) for row in rows if row["agreement"]]
    return f"{Stat.of(float(row['test']) for row in rows)}" + (f" ({fmean(agreements):.0f})" if agreements else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--datasets", nargs="+", default=["cora", "computers"])
    parser.add_argument("--methods", nargs="+", default=DEFAULT_METHODS)
    parser.add_argument("--sparsities", nargs="+", type=float, default=[0.6, 0.8])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--table", action="store_true", help="print the tables of the file, run nothing")
    args = parser.parse_args()
    table = Measurements(args.csv, RUN, COLUMNS, digits=4)
    if args.table:
        print(tables(table), end="")
        return
    torch.set_num_threads(1)
    for name in args.datasets:
        data = gst.load(name)
        for seed in range(args.seeds):
            with tempfile.TemporaryDirectory() as folder:
                common: dict[str, Any] = {"seed": seed, "cache": Cache(Path(folder)), **TRAINING, "lr": args.lr}
                for part, measure in PARTS.items():
                    for method in args.methods:
                        for sparsity in [0.0] if method == "dense" else args.sparsities:
                            run = dict(zip(RUN, (data.name, part, method, sparsity, seed), strict=True))
                            arguments = (data, method, sparsity, seed, common)
                            start = time.perf_counter()
                            code = versions(data.name, "gcn", "full", method)
                            if table.measure(run, code, measure, *arguments):
                                print(*run.values(), f"{time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
