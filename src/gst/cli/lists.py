"""``gst datasets`` and ``gst methods``: what has a name."""

from gst.cli import console
from gst.cli.options import Json, print_json
from gst.data import datasets as list_datasets
from gst.methods import METHODS
from gst.methods.base import own_arguments

LEFT_OUT = ("metric", "directed", "split")  # 80 columns have no room for them; --json has them


def datasets(as_json: Json = False) -> None:
    """List the data sets that have a name."""
    rows = [vars(info) for info in list_datasets()]
    if as_json:
        print_json({"datasets": rows})
    else:
        shown = [name for name in rows[0] if name not in LEFT_OUT]
        console.table("data sets", shown, [[row[name] for name in shown] for row in rows])
        console.say("", "metric, direction and splits: gst datasets --json, docs/guide/data-sets.md")


def methods(as_json: Json = False) -> None:
    """List the sparsifiers."""
    rows = [
        {
            "name": name,
            "kind": method.kind,
            "needs_labels": method.kind == "learned",
            "needs_model": method.kind == "learned",
            "complexity": method.complexity,
            "reference": method.reference,
        }
        for name, method in METHODS.items()
    ]
    if as_json:
        options = {name: {o: getattr(m, o, None) for o in own_arguments(m)} for name, m in METHODS.items()}
        print_json({"methods": [{**row, "options": options[row["name"]]} for row in rows]})
        return
    cells = []
    for row in rows:
        needs = [need for need in ("labels", "model") if row[f"needs_{need}"]]
        cells.append([row["name"], row["kind"], ", ".join(needs) or "–", row["complexity"], row["reference"]])
    console.table("methods", ["name", "kind", "needs", "complexity", "reference"], cells)
    console.say("", "one epoch is O(|E|·h + N·F·h); what each takes: gst methods --json, docs/guide/methods.md")
