"""``gst bench``: the paper's experiments."""

import os
import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from gst.cli import console
from gst.cli.options import DataRoot, Json, place_option, print_json

DB = Path("runs/bench.db")


def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help="fig1, rq1, rq2, rq3, rq4-…, rq5-…")],
    profile: Annotated[str, typer.Option(help="smoke, quick or paper: how large everything is")] = "quick",
    only: Annotated[str | None, typer.Option(help="filter such as dataset=cora,backbone=gcn")] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="at most this many runs now")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=1000, help="number of seeds, instead of the profile's")
    ] = None,
    db: Annotated[Path, place_option(help="store of finished runs")] = DB,
    start: Annotated[Path | None, typer.Option("--from", help="record to start from: folder, CSV or store")] = None,
    record: Annotated[Path | None, place_option(help="folder to write the CSV record to")] = None,
    engine: Annotated[str, typer.Option(help="local or ray")] = "local",
    workers: Annotated[int | None, typer.Option(min=1, max=4096, help="processes, else one per core")] = None,
    data_root: DataRoot = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="no progress")] = False,
    as_json: Json = False,
) -> None:
    """Run an experiment of the paper; finished runs are not repeated."""
    from gst.base.errors import InputError, InterruptedRunError  # noqa: PLC0415
    from gst.base.names import resolve_name  # noqa: PLC0415
    from gst.cli.bench_progress import show_progress  # noqa: PLC0415
    from gst.cli.bench_summary import show  # noqa: PLC0415
    from gst.lab.bench.cells import filter_cells  # noqa: PLC0415 - other commands need none of this
    from gst.lab.bench.engines import ENGINES, worker_context  # noqa: PLC0415
    from gst.lab.bench.experiments import EXPERIMENTS, PROFILES, cells_of  # noqa: PLC0415
    from gst.lab.bench.load import load_rows  # noqa: PLC0415
    from gst.lab.bench.record import read_record, write_record  # noqa: PLC0415
    from gst.lab.bench.runner import carry_out, make_plan  # noqa: PLC0415
    from gst.lab.bench.store import Store  # noqa: PLC0415
    from gst.lab.bench.summary import efficiency, summarise  # noqa: PLC0415

    started = time.monotonic()
    name = resolve_name("experiment", name, EXPERIMENTS)
    profile = resolve_name("profile", profile, PROFILES)
    engine = resolve_name("engine", engine, ENGINES)
    cells = list(filter_cells(cells_of(name, profile, seeds), only))
    if not cells:
        raise InputError(f"--only {only}: no run of {name} --profile {profile} matches")
    known = [] if start is None else load_rows(start).rows
    if record is not None:
        read_record(record, name)  # a file that cannot be extended is refused before hours of work
    with Store(db) as store:
        if engine == "local":
            worker_context()  # starts importing
        store.add(known)
        plan = make_plan(cells, store, limit, data_root)
        count = workers or _cores()
        try:
            with show_progress(f"{name} · {EXPERIMENTS[name].title} · {profile}", plan, quiet) as on_row:
                carry_out(plan, store, engine, count, data_root, on_row)
        except KeyboardInterrupt:
            raise InterruptedRunError(signal.SIGINT, f"interrupted; the same command continues with {db}") from None
        rows = [row for row in store.rows(name, profile) if row.key in plan.cells]
        written = [] if record is None else write_record(record, store.rows(name))
    failed = [row for row in rows if row.status == "failed"]
    if as_json:
        print_json(
            {
                "experiment": name,
                "profile": profile,
                "cells": len(plan.cells),
                "ran": plan.num_rows,
                "done": len(rows) - len(failed),
                "failed": [{"reason": row.reason, "command": row.command} for row in failed],
                "db": str(db),
                "record": [str(path) for path in written],
                "seconds": time.monotonic() - started,
                "table": summarise(rows),
                **({"efficiency": efficiency(rows)} if name == "rq3" else {}),
            }
        )
        return
    show(name, rows)
    for reason in sorted({row.reason for row in failed}):
        console.say(f"failed: {sum(row.reason == reason for row in failed)} × {reason}")
    console.say(f"{len(rows) - len(failed)} of {len(plan.cells)} runs done, in {db}")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
