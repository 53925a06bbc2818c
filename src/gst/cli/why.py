"""gst why: the case of one edge."""

from typing import Annotated

import typer

from gst.base.errors import InputError
from gst.cli import console
from gst.cli.options import Json, RunFolder, print_json
from gst.methods.result import Result
from gst.methods.why import Why

MOST = 10  # nodes whose turned answers are shown


def why(
    run: RunFolder,
    u: Annotated[int, typer.Argument(metavar="U", help="source of the arc, or one end of the pair")],
    v: Annotated[int, typer.Argument(metavar="V", help="its target, or the other end")],
    as_json: Json = False,
) -> None:
    """Say why an edge is kept or removed, and what would change with it."""
    result = Result.load(run)
    if result.model is None:
        raise InputError(f"{run} has an own model, which is not saved with it: use result.why(u, v) in Python")
    case = result.why(u, v)
    if as_json:
        print_json({"run": str(run), **case.as_dict()})
    else:
        console.say(*lines(case, result.metrics["method"]))


def lines(case: Why, method: str) -> list[str]:
    """The case in words."""
    edge = f"arc {case.u} → {case.v}" if case.by == "arcs" else f"pair {case.u}–{case.v}"
    place = f"place {case.rank:,} of {case.num_edges:,} by the scores of {method}, which kept {case.num_kept:,}"
    if case.tied > 1:
        place += f"; {case.tied:,} edges share that place"
    what = "without it" if case.kept else "with it"
    verb = "turns" if len(case.turns) == 1 else "turn"
    answers = f"{case.affected:,} nodes would have other outputs, {len(case.turns):,} of their answers {verb}"
    found = [
        f"{edge}: {'kept' if case.kept else 'removed'}, score {case.score:g}",
        place,
        f"{what} the divergence from the answers on all edges would go from {case.divergence:.4f} to "
        f"{case.divergence + case.change:.4f} ({case.change:+.4f})",
        answers,
    ]
    found += [f"  node {t.node}: {t.now} → {t.then} (on all edges {t.dense})" for t in case.turns[:MOST]]
    return found + ["  …"] * (len(case.turns) > MOST)
