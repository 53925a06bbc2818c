"""``gst inspect``: what a run kept, what it removed and how it scored."""

from gst.after.structure import inspect_run
from gst.cli import console
from gst.cli.options import Json, RunFolder, print_json
from gst.methods import Result


def inspect(run: RunFolder, as_json: Json = False) -> None:
    """Show what a run kept, what it removed and how it scored."""
    result = Result.load(run)
    facts = inspect_run(result)
    if as_json:
        print_json({**result.metrics, "structure": facts, "settings": result.settings})
        return
    console.result(result.metrics)
    console.say("")
    console.table("structure", ["", "dense", "sparse"], [[name, *pair] for name, pair in facts.items()])
