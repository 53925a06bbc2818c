"""What a person sees: progress on stderr, tables on stdout."""

import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from gst.base import distributed
from gst.base.errors import AgreementWarning
from gst.base.text import MOST, printable, shown
from gst.train.trainer import Progress, Watcher, silent

# no markup and no emoji codes: what is printed is text, whoever wrote it
out = Console(markup=False, emoji=False, highlight=False)
err = Console(stderr=True, markup=False, emoji=False, highlight=False)
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
    bars, tasks = Bars(*columns, console=err), dict[str, TaskID]()

    def watch(step: Progress) -> None:
        now: dict[str, Any] = {"val": step.val, "best": step.best, "sparsity": step.sparsity}
        if not tasks:  # not before: whoever is refused shall see one line and no empty ones
            bars.start()
        if step.phase not in tasks or step.epoch == 1:
            tasks[step.phase] = bars.add_task(step.phase, total=step.epochs, **now)
        bars.update(tasks[step.phase], completed=step.epoch, **now)

    try:
        yield watch
    finally:
        if tasks:
            bars.stop()


def say(*lines: str, to: Console = out) -> None:
    """Each on a line of its own, however long; signs that a terminal would act on are replaced."""
    for text in lines:
        to.print(printable(text), soft_wrap=True)


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """A plain table; numbers to the right."""
    grid = Table(
        title=shown(title, MOST),
        title_justify="left",
        title_style="bold",
        header_style="bold",
        pad_edge=False,
        box=None,
    )
    cells = [[_text(cell) for cell in row] for row in rows]
    for index, name in enumerate(columns):
        numeric = all(_numeric(row[index]) for row in cells)
        grid.add_column(
            shown(name), justify="right" if numeric else "left", overflow="fold", no_wrap=index == 0 or numeric
        )
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
        scores = [metrics.get(f"{prefix}{part}") for part in ("val", "test")]
        if scores != [None, None]:
            edges = counts.get(prefix, metrics["edges_kept"])
            rows.append([label, edges, *(None if score is None else f"{score:.1f}" for score in scores)])
    recipe = f" ({metrics['recipe']})" if metrics.get("recipe") else ""
    name = f"{metrics['method']}{recipe} · {metrics['backbone']} · {metrics['dataset']} · seed {metrics['seed']}"
    table(name, ["", "edges", f"val {unit}", f"test {unit}"], rows)
    removed, kept, total = metrics["sparsity"], metrics["edges_kept"], metrics["edges_total"]
    kind = "arcs" if metrics["directed"] else "pairs"
    say("", f"sparsity {removed:.1%} (share removed) · kept {1 - removed:.1%} = {kept:,} of {total:,} {kind}")
    if metrics.get("agreement") is not None:
        say(f"agreement {metrics['agreement']:.1%} of the answers are those of the dense model")
    if seconds := metrics.get("seconds"):  # nodes that came later took none
        say("seconds  " + " · ".join(f"{shown(phase)} {taken:.1f}" for phase, taken in list(seconds.items())[:9]))
    times = metrics.get("inference")
    if times:
        say(
            f"inference dense {times['dense_ms']:.2f} ms · sparse {times['sparse_ms']:.2f} ms · "
            f"{times['speedup']:.2f}× (median of {times['repeats']})"
        )


@contextmanager
def warnings_in_one_line() -> Iterator[None]:
    """A person's terminal gets the line that matters, without the place in the code; of several workers from one."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", AgreementWarning)
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, AgreementWarning):
                usual(message, category, *place, **more)
            elif distributed.rank() == 0:
                print(f"gst: {message}", file=sys.stderr)

        warnings.showwarning = show
        yield


def _text(cell: Any) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:,}" if isinstance(cell, int) else shown(cell, MOST)


def _numeric(text: str) -> bool:
    return (
        text == "–"
        or text.replace(",", "").replace(".", "").replace("±", "").replace(" ", "").replace("−", "").isdigit()
    )
