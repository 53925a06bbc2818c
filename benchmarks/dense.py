"""Dense models with the presets of their data sets against published ones of the same kind, as JSON.

    python benchmarks/dense.py                              # all that are published, three splits each
    python benchmarks/dense.py physics tolokers --splits 5
    python benchmarks/dense.py --table                      # the rows of docs/results/dense-models.md

Split k (shipped, or drawn with seed k) is trained with seed k on all edges, E + D epochs; the best validation epoch is
tested. Models are cached below the data root, so a second call takes seconds. Data sets without raw files are named on
stderr and left out.
"""

import argparse
import json
import sys
from typing import Any

import gst
from gst.base.names import resolve_name
from gst.base.stats import Stat

SHCHUR = "Shchur et al., 2018: 2 layers, hidden 64"
YAN = "Yan et al., ICDM 2022: links both ways"
PLATONOV = "Platonov et al., ICLR 2023: skip connections, LayerNorm, hidden 512, 1 to 5 layers"
PUBLISHED = {  # of GCN: mean, standard deviation, source
    "Computers": (82.6, 2.4, SHCHUR),
    "Photo": (91.2, 1.2, SHCHUR),
    "CS": (91.1, 0.5, SHCHUR),
    "Physics": (92.8, 1.0, SHCHUR),
    "Chameleon": (64.82, 2.24, YAN),
    "Squirrel": (53.43, 2.01, YAN),
    "Minesweeper": (89.75, 0.52, PLATONOV),
    "Tolokers": (83.64, 0.67, PLATONOV),
    "Questions": (76.09, 1.27, PLATONOV),
    "Roman-empire": (73.69, 0.74, PLATONOV),
    "Amazon-ratings": (48.70, 0.63, PLATONOV),
}
SHOWN = ("anchor_epochs", "sparse_epochs", "layers", "hidden", "residual", "lr", "dropout", "weight_decay")


def measure(name: str, splits: int) -> dict[str, Any]:
    """Test scores of a GCN on the first splits."""
    tests: list[float] = []
    for split in range(splits):
        run = gst.Random(sparsity=0.0, seed=split).run(gst.load(name, split=split))
        tests.append(round(run.dense.test, 2))
        print(f"{name} split {split}: {tests[-1]}", file=sys.stderr, flush=True)
    stat = Stat.of(tests)
    assert stat is not None
    mean, deviation, source = PUBLISHED[name]
    return {
        "dataset": name,
        "metric": run.task.metric,
        "settings": {key: getattr(run.training, key) for key in SHOWN},
        "tests": tests,
        "mean": round(stat.mean, 2),
        "deviation": round(stat.sd or 0.0, 2),
        "published": mean,
        "published_deviation": deviation,
        "source": source,
    }


def line(row: dict[str, Any]) -> str:
    """A line of the table."""
    ours = f"{row['mean']:.1f} ± {row['deviation']:.1f} ({len(row['tests'])})"
    published = f"{row['published']:.1f} ± {row['published_deviation']:.1f}"
    return f"| {row['dataset']} | {row['metric']} | {ours} | {published} | {row['source']} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=list(PUBLISHED))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--table", action="store_true", help="print Markdown instead of JSON")
    args = parser.parse_args()
    rows = []
    for dataset in args.datasets:
        name = resolve_name("data set", dataset, PUBLISHED)
        try:
            rows.append(measure(name, args.splits))
        except gst.InputError as error:
            print(error, file=sys.stderr)
    print("\n".join(map(line, rows)) if args.table else json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
