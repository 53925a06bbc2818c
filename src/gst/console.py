"""What a person sees: progress on stderr, tables on stdout."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from gst.training import Progress, Watcher, silent

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
if not out.is_terminal and "COLUMNS" not in os.environ:
    out.width = 200  # a file or pipe has no edge at which to cut


@contextmanager
def progress_bars(quiet: bool) -> Iterator[Watcher]:
    """A bar a phase: epoch, validation, sparsity, time left."""
    if quiet:
        yield silent
        return
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("val {task.fields[val]:5.1f}  best {task.fields[best]:5.1f}  sparsity {task.fields[sparsity]:.0%}"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Bars(*columns, console=err) as bars:
        tasks: dict[str, TaskID] = {}

        def watch(step: Progress) -> None:
            shown: dict[str, Any] = {"val": step.val, "best": step.best, "sparsity": step.sparsity}
            if step.phase not in tasks or step.epoch == 1:
                tasks[step.phase] = bars.add_task(step.phase, total=step.epochs, **shown)
            bars.update(tasks[step.phase], completed=step.epoch, **shown)

        yield watch


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """A plain table; numbers to the right."""
    grid = Table(title=title, title_justify="left", title_style="bold", header_style="bold", pad_edge=False, box=None)
    cells = [[_text(cell) for cell in row] for row in rows]
    for index, name in enumerate(columns):
        numeric = all(_numeric(row[index]) for row in cells)
        grid.add_column(name, justify="right" if numeric else "left", overflow="fold", no_wrap=index == 0 or numeric)
    for row in cells:
        grid.add_row(*row)
    out.print(grid)


def result(metrics: Mapping[str, Any]) -> None:
    """The outcome of a run: every accuracy it has, on both graphs, and where the edges went."""
    unit = "ROC-AUC" if metrics["metric"] == "rocauc" else "accuracy"
    labels = {
        "dense_": "dense graph, plain training",
        "": "sparse graph, returned model",
        "retrain_": "sparse graph, fresh model",
        "distilled_": "sparse graph, fresh model, distilled",
        "edgeless_": "no edges, distilled: the control",
    }
    counts = {"dense_": metrics["edges_total"], "edgeless_": 0}
    rows = []
    for prefix, label in labels.items():
        if f"{prefix}test" in metrics:
            edges = counts.get(prefix, metrics["edges_kept"])
            rows.append([label, edges, f"{metrics[f'{prefix}val']:.1f}", f"{metrics[f'{prefix}test']:.1f}"])
    recipe = f" ({metrics['recipe']})" if "recipe" in metrics else ""
    name = f"{metrics['method']}{recipe} · {metrics['backbone']} · {metrics['dataset']} · seed {metrics['seed']}"
    table(name, ["", "edges", f"val {unit}", f"test {unit}"], rows)
    removed, kept, total = metrics["sparsity"], metrics["edges_kept"], metrics["edges_total"]
    kind = "arcs" if metrics["directed"] else "pairs"
    out.print(f"\nsparsity {removed:.1%} (share removed) · kept {1 - removed:.1%} = {kept:,} of {total:,} {kind}")
    seconds = metrics["seconds"]
    out.print("seconds  " + " · ".join(f"{phase} {taken:.1f}" for phase, taken in seconds.items()))
    times = metrics.get("inference")
    if times:
        out.print(
            f"inference dense {times['dense_ms']:.2f} ms · sparse {times['sparse_ms']:.2f} ms · "
            f"{times['speedup']:.2f}× (median of {times['repeats']})"
        )


def _text(cell: Any) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _numeric(text: str) -> bool:
    return (
        text == "–"
        or text.replace(",", "").replace(".", "").replace("±", "").replace(" ", "").replace("−", "").isdigit()
    )
