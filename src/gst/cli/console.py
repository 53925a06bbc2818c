"""Output for people: tables and sentences on stdout."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from gst.base.text import MOST, printable, shown
from gst.methods.display import score_rows, unit

# neither markup nor emoji codes: text from outside is printed literally
out = Console(markup=False, emoji=False, highlight=False)
err = Console(stderr=True, markup=False, emoji=False, highlight=False)
if not out.is_terminal and "COLUMNS" not in os.environ:
    out.width = 200  # a file or pipe has no width to wrap at


FASTER = 1.1  # a speed-up below this is within the noise of a timer


def say(*lines: str, to: Console = out) -> None:
    """Prints every line unwrapped, with control characters replaced."""
    for text in lines:
        to.print(printable(text), soft_wrap=True)


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Prints a plain table with right-aligned numbers."""
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
    """Prints the outcome of a run: its scores on both graphs, edges kept, agreement and times."""
    rows = [[label, edges, *map(_score, scores)] for label, edges, *scores in score_rows(metrics)]
    name = f"{metrics['method']} · {metrics['backbone']} · {metrics['dataset']} · seed {metrics['seed']}"
    table(name, ["", "edges", f"val {unit(metrics)}", f"test {unit(metrics)}"], rows)
    removed, num_kept, total = metrics["sparsity"], metrics["edges_kept"], metrics["edges_total"]
    counted = f"{num_kept:,} of {total:,} {metrics['by']}"
    say("", f"sparsity {removed:.1%} (share removed) · kept {1 - removed:.1%} = {counted}")
    if metrics.get("agreement") is not None:
        say(f"agreement {metrics['agreement']:.1%} of the answers are those of the dense model")
    _say_measures(metrics)
    if seconds := metrics.get("seconds"):  # a run extended to new nodes has none
        say("seconds  " + " · ".join(f"{shown(phase)} {time:.1f}" for phase, time in list(seconds.items())[:9]))
    _say_inference(metrics)


def _say_measures(metrics: Mapping[str, Any]) -> None:
    """One line for each graph with what else was measured of its answers on the test."""
    names = {"auc": "AUC", "ap": "average precision", "mrr": "MRR"}
    for key, label in (("dense_test", "dense"), ("test", "sparse")):
        if measured := (metrics.get("measures") or {}).get(key):
            parts = [f"{names.get(name, name.capitalize())} {value:.3f}" for name, value in measured.items()]
            say(f"{label:<6} " + " · ".join(parts))


def comparison(runs: Mapping[str, Mapping[str, Any]]) -> None:
    """Prints runs of several methods on one graph: the dense model first, then one row per method."""
    first = next(iter(runs.values()))
    rows: list[list[Any]] = [["dense graph", _arcs(first, "edges_total"), _score(first.get("dense_test")), None, None]]
    for name, metrics in runs.items():
        agreement = None if metrics.get("agreement") is None else f"{100 * metrics['agreement']:.1f}"
        scores = [_score(metrics.get(key)) for key in ("test", "retrain_test")]
        rows.append([name, _arcs(metrics, "edges_kept"), *scores, agreement])
    title = f"{first['dataset']} · {first['backbone']} · sparsity {first['sparsity']:.1%} · seed {first['seed']}"
    table(title, ["", "arcs", f"test {unit(first)}", "fresh model", "same answers, %"], rows)
    say("")
    for metrics in runs.values():
        _say_inference(metrics)


def _arcs(metrics: Mapping[str, Any], count: str) -> int:
    """A number of edges in arcs, which methods that count pairs and those that count arcs have in common."""
    return int(metrics[count] * (2 if metrics["by"] == "pairs" else 1))


def _score(score: float | None) -> str | None:
    return None if score is None else f"{score:.1f}"


def _say_inference(metrics: Mapping[str, Any]) -> None:
    if times := metrics.get("inference"):
        both = f"{times['dense_ms']:.2f} ms on all edges, {times['sparse_ms']:.2f} ms on the kept ones"
        gain = times["speedup"]
        verdict = f": {gain:.1f} times as fast" if gain >= FASTER else "; here the time is not that of edges"
        say(f"a pass over the whole graph takes {both}{verdict} (median of {times['repeats']})")


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
