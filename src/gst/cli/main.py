"""The command line. A command is imported when it is called: help and version load neither torch nor a method."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gst.base.errors import InputError
from gst.base.memory import reuse_memory
from gst.base.text import choices, shown
from gst.base.version import __version__
from gst.cli.exits import run_and_exit, warnings_in_one_line

COMMANDS = {  # name: (file of this folder, first sentence of the function of that name)
    "run": ("run", "Make a graph sparse and train a model on it."),
    "demo": (
        "demo",
        "Handwritten digits as a graph: Deploy and GST against random edges, in under a minute, with no network.",
    ),
    "datasets": ("lists", "List the data sets that have a name."),
    "methods": ("lists", "List the sparsifiers."),
    "inspect": ("inspect", "Show what a run kept, what it removed and how it scored."),
    "export": ("export", "Write the sparse graph for another tool, or with its model for fast inference."),
    "bench": ("bench", "Run an experiment of the paper; finished runs are not repeated."),
    "report": ("report", "Write one self-contained HTML page about the runs of gst bench."),
    "search": (
        "search",
        "Find the largest sparsity that is as good as the dense graph; the same command goes on with what --out holds.",
    ),
    "why": ("why", "Say why an edge is kept or removed, and what would change with it."),
    "serve": ("serve", "Answer by node over HTTP: POST /predict and /update, GET /healthz and /metrics."),
    "drift": ("drift", "Change features or weights after sparsification: do both graphs still give the same answers?"),
    "warmup": ("warmup", "Compile all kernels now, once for this machine; later versions reuse what did not change."),
    "latency": ("latency", "Time inference: dense, sparse, sparse and reordered, with MACs and the Amdahl limit."),
}


class _Commands(TyperGroup):
    """The commands of the table above, in its order, each of its own file."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            raise InputError(f"unknown command '{shown(cmd_name)}': choose from {choices(COMMANDS, cmd_name)}")
        return load_command(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def load_commands() -> dict[str, Any]:
    """The parsers of all commands, by name."""
    return {name: load_command(name) for name in COMMANDS}


def load_command(name: str) -> Any:
    """The parser of one command, whose file is imported."""
    file, _ = COMMANDS[name]
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name)(getattr(import_module(f"gst.cli.{file}"), name))
    return typer.main.get_command(single)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"gst {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    rich_markup_mode=None,
    help="Fewer edges, same answers: graph sparse training and its peers.",
)


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="show the version and exit")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Entry point: one line for a person's mistake and exit code 2; 130 when interrupted."""
    reuse_memory()
    with warnings_in_one_line():
        run_and_exit(app)
