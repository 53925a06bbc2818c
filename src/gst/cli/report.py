"""``gst report``: rows of experiments as one page."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from gst.base.errors import InputError
from gst.base.optional import optional
from gst.base.user_paths import check_file
from gst.cli import console
from gst.cli.bench import DB
from gst.cli.options import Force, Json, place_option, print_json

_DEFAULTS = (DB, Path("results"))  # the store of gst bench, then the committed record


def report(
    rows: Annotated[
        Path | None, typer.Argument(metavar="ROWS", help="store of gst bench, CSV file or folder of them")
    ] = None,
    db: Annotated[Path | None, typer.Option(help="the same, as an option")] = None,
    output: Annotated[Path, place_option("--output", "-o", help="file to write")] = Path("report.html"),
    force: Force = False,
    title: Annotated[str | None, typer.Option(help="heading of the page")] = None,
    show: Annotated[bool, typer.Option("--open", help="open it in the browser")] = False,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML page about the runs of gst bench."""
    optional("jinja2", "gst report")
    from gst.lab.bench.load import load_rows  # noqa: PLC0415
    from gst.lab.report import render  # noqa: PLC0415
    from gst.lab.report.page import TITLE  # noqa: PLC0415
    from gst.storage import files  # noqa: PLC0415 - other commands need none of this

    if rows is not None and db is not None:
        raise InputError("give the rows either as an argument or as --db, not both")
    loaded = load_rows(rows or db or _default())
    check_file(output, force)
    page = render(loaded, title or TITLE).encode()
    files.write_bytes(output, page)
    done = sum(row.status == "done" for row in loaded.rows)
    if as_json:
        facts = {"out": str(output), "runs": len(loaded.rows), "done": done, "bytes": len(page)}
        print_json({**facts, "files": loaded.sources, "skipped": loaded.skipped})
    else:
        for name in loaded.skipped:
            console.say(f"left out {name}: it holds no rows of gst bench", to=console.err)
        console.say(f"wrote {output}: {done} runs, {len(page) / 2**20:.1f} MiB")
    if show:
        webbrowser.open(output.absolute().as_uri())


def _default() -> Path:
    for path in _DEFAULTS:
        if path.exists():
            return path
    paths = " nor ".join(map(str, _DEFAULTS))
    raise InputError(f"no rows: neither {paths} exists here; name a store, a CSV file or a folder")
