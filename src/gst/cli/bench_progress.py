"""What a person sees of a sweep: one live table on stderr, or a line a run where there is no terminal."""

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
    """Counts of what is done, and the time that is left."""

    def __init__(self, title: str, plan: Plan) -> None:
        self.title, self.plan, self.begun = title, plan, time.monotonic()
        self.done = self.failed = 0
        self.lines: dict[tuple[str, ...], list[float]] = defaultdict(list)
        self.wrong: dict[tuple[str, ...], int] = defaultdict(int)
        self.total: dict[tuple[str, ...], int] = defaultdict(int)
        for cell in plan.todo.values():
            self.total[cell.dataset, cell.backbone, cell.method] += 1

    def add(self, row: Row) -> None:
        name = row.dataset, row.backbone, row.method
        self.done += 1
        if row.status == "failed":
            self.failed += 1
            self.wrong[name] += 1
        else:
            self.lines[name].append(row.test if row.test is not None else float("nan"))

    def left(self) -> str:
        """Time left, as if the rest took as long as what was done."""
        todo = len(self.plan.todo) + len(self.plan.hopeless) - self.done
        if not self.done or not todo:
            return "–"
        return str(timedelta(seconds=round((time.monotonic() - self.begun) / self.done * todo)))

    def caption(self) -> str:
        words = [
            f"{self.done} of {len(self.plan.todo) + len(self.plan.hopeless)} runs",
            f"{self.plan.known} known before",
        ]
        words += [f"{self.failed} failed"] if self.failed else []
        return " · ".join([*words, f"time left {self.left()}"])

    def __rich__(self) -> Table:
        grid = Table(title=self.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for column in ("data set", "backbone", "method"):
            grid.add_column(column)
        for column in ("done", "of", "failed", "mean test"):
            grid.add_column(column, justify="right")
        for name, total in self.total.items():
            found, wrong = self.lines[name], self.wrong[name]
            if 0 < len(found) + wrong < total or (total and len(self.total) <= 24):
                mean = f"{sum(found) / len(found):.1f}" if found else "–"
                grid.add_row(*name, str(len(found)), str(total), str(wrong or "–"), mean)
        grid.caption, grid.caption_justify = self.caption(), "left"
        return grid


@contextmanager
def watching(title: str, plan: Plan, quiet: bool) -> Iterator[Callable[[Row], None]]:
    """Called with every row as it comes."""
    view = View(title, plan)
    if quiet:
        yield view.add
    elif err.is_terminal:
        with Live(view, console=err, refresh_per_second=2):
            yield view.add
    else:

        def tell(row: Row) -> None:
            view.add(row)
            words = (row.dataset, row.backbone, row.method, row.recipe, row.variation, f"{row.sparsity:g}")
            outcome = row.reason if row.status == "failed" else f"test {row.test:.1f}"
            what = " ".join(filter(None, words))
            say(f"{what} seed {row.seed}: {outcome} · {view.caption()}", to=err)

        yield tell
