"""Progress of a sweep on stderr: one live table, or one line per run where there is no terminal."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from rich.live import Live
from rich.table import Table

from gst.cli.console import err, say
from gst.lab.bench.rows import Row
from gst.lab.bench.runner import Plan


class View:
    """Counts of finished runs by data set, backbone and method, and the time left."""

    def __init__(self, title: str, plan: Plan) -> None:
        self.title = title
        self.plan = plan
        self.started = time.monotonic()
        self.num_done = 0
        self.num_failed = 0
        self.scores: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self.failures: dict[tuple[str, ...], int] = defaultdict(int)
        self.total: dict[tuple[str, ...], int] = defaultdict(int)
        for cell in plan.todo.values():
            self.total[cell.dataset, cell.backbone, cell.method] += 1

    def add(self, row: Row) -> None:
        name = row.dataset, row.backbone, row.method
        self.num_done += 1
        if row.status == "failed":
            self.num_failed += 1
            self.failures[name] += 1
        else:
            self.scores[name].append(row.test if row.test is not None else float("nan"))

    def time_left(self) -> str:
        """An estimate from the mean time of the runs so far."""
        left = self.plan.num_rows - self.num_done
        if not self.num_done or not left:
            return "–"
        return str(timedelta(seconds=round((time.monotonic() - self.started) / self.num_done * left)))

    def caption(self) -> str:
        parts = [f"{self.num_done} of {self.plan.num_rows} runs", f"{self.plan.known} known before"]
        parts += [f"{self.num_failed} failed"] if self.num_failed else []
        return " · ".join([*parts, f"time left {self.time_left()}"])

    def __rich__(self) -> Table:
        grid = Table(title=self.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for column in ("data set", "backbone", "method"):
            grid.add_column(column)
        for column in ("done", "of", "failed", "mean test"):
            grid.add_column(column, justify="right")
        for name, total in self.total.items():
            scores, failures = self.scores[name], self.failures[name]
            if 0 < len(scores) + failures < total or (total and len(self.total) <= 24):
                mean = f"{sum(scores) / len(scores):.1f}" if scores else "–"
                grid.add_row(*name, str(len(scores)), str(total), str(failures or "–"), mean)
        grid.caption, grid.caption_justify = self.caption(), "left"
        return grid


@contextmanager
def show_progress(title: str, plan: Plan, quiet: bool) -> Iterator[Callable[[Row], None]]:
    """Yields a function to call with every finished row."""
    view = View(title, plan)
    if quiet:
        yield view.add
    elif err.is_terminal:
        with Live(view, console=err, refresh_per_second=2):
            yield view.add
    else:

        def print_row(row: Row) -> None:
            view.add(row)
            parts = (row.dataset, row.backbone, row.method, row.variation, f"{row.sparsity:g}")
            outcome = row.reason if row.status == "failed" else f"test {row.test:.1f}"
            say(f"{' '.join(filter(None, parts))} seed {row.seed}: {outcome} · {view.caption()}", to=err)

        yield print_row
