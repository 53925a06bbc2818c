"""``gst export``: the sparse graph for another tool, or graph and model for inference."""

from pathlib import Path
from typing import Annotated

import typer

from gst.base.errors import InputError
from gst.base.user_paths import check_file
from gst.cli import console
from gst.cli.latency import Precision, export_compiled
from gst.cli.options import Force, Json, RunFolder, place_option, print_json
from gst.inference.compiled.orders import ORDERS
from gst.inference.compiled.stored import NAME as COMPILED
from gst.methods import Result
from gst.storage.export import FORMATS, default_name
from gst.storage.export import export as write_export

READ = {"pyg": ": Data.from_dict(torch.load(path)) opens it"}  # what is not plain from the name


def export(
    run: RunFolder,
    to: Annotated[str | None, typer.Option(help=", ".join(FORMATS) + " [pyg]")] = None,
    layout: Annotated[
        str | None, typer.Option(help="write graph and model for inference: fast (the best), " + ", ".join(ORDERS))
    ] = None,
    precision: Precision = "float32",
    output: Annotated[Path | None, place_option("--output", "-o", help="file to write, else one in RUN")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the sparse graph for another tool, or with its model for fast inference."""
    if layout is not None:
        if to is not None:
            raise InputError("give either --to or --layout, not both")
        target = output or run / COMPILED
        check_file(target, force)
        export_compiled(run, layout, precision, target, as_json)
        return
    if precision != "float32":
        raise InputError("--precision needs --layout: other formats have the numbers as they are")
    to = to or "pyg"
    target = output or run / default_name(to)
    check_file(target, force)
    graph = Result.load(run).graph
    write_export(graph, to, target)
    if as_json:
        print_json({"out": str(target), "to": to, "columns": graph.num_edges})
    else:
        console.say(f"wrote {target}{READ.get(to, '')}")
