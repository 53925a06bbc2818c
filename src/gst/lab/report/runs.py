"""Every run as compact JSON for the page's script; each text and each drawing is stored once."""

import json
import math
from collections.abc import Sequence
from typing import Any

from gst.lab.bench.rows import COLUMNS, Row
from gst.lab.report.names import BACKBONES

_SHOWN = [name for name in COLUMNS if name != "facts"]
_MAX_DRAWINGS = 3 * 2**20  # bytes in total, so that the page opens at once
_MAX_NODES = 64  # of a drawing; and four times as many edges


def runs_json(rows: Sequence[Row]) -> dict[str, Any]:
    """``columns``, ``rows`` (texts as indices into ``strings``), ``facts`` by row, ``drawings``; all plain JSON."""
    strings: dict[str, int] = {}
    drawings: dict[Any, int] = {}
    facts: dict[str, Any] = {}
    lines, size, left_out = [], 0, 0
    for n, row in enumerate(rows):
        line: list[Any] = []
        for name in _SHOWN:
            value = getattr(row, name)
            line.append(strings.setdefault(value, len(strings)) if isinstance(value, str) else _rounded(value))
        lines.append(line)
        shown = compact_facts(row.facts)
        if shown is None:
            continue
        drawing = shown.pop("drawing", None)
        if drawing is not None:
            added = 0 if drawing in drawings else len(json.dumps(drawing, separators=(",", ":")))
            if size + added > _MAX_DRAWINGS:
                left_out += 1
                shown.pop("kept")
            else:
                size += added
                shown["drawing"] = drawings.setdefault(drawing, len(drawings))
        facts[str(n)] = shown
    return {
        "columns": _SHOWN,
        "texts": [name for name in _SHOWN if rows and isinstance(getattr(rows[0], name), str)],
        "strings": list(strings),
        "backbones": list(BACKBONES.items()),
        "rows": lines,
        "facts": facts,
        "drawings": list(drawings),
        "left_out": left_out,
    }


def compact_facts(facts: Any) -> dict[str, Any] | None:
    """The output of :func:`gst.after.structure.facts_of`, None unless complete; which edges are kept is separate from
    the drawing, which many runs share."""
    try:
        degree, homophily, nodes, around = (facts[n] for n in ("degree", "homophily", "nodes", "neighbourhood"))
        points = [(int(i), float(x), float(y), None if c is None else int(c)) for i, x, y, c in around["nodes"]]
        pairs = [(int(i), int(j), bool(k)) for i, j, k in around["edges"]]
        compact: dict[str, Any] = {
            "degree": [[int(v) for v in degree[name]] for name in ("from", "kept", "removed")],
            "homophily": [
                [int(homophily[part][kind]) for kind in ("same", "different", "unknown")]
                for part in ("kept", "removed")
            ],
            "nodes": [int(nodes["all"]), *(int(v) for name in ("isolated", "components") for v in nodes[name])],
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    ends = {end for i, j, _ in pairs for end in (i, j)}
    finite = all(math.isfinite(c) for _, x, y, _ in points for c in (x, y))
    small = len(points) <= _MAX_NODES and len(pairs) <= 4 * _MAX_NODES and all(0 <= end < len(points) for end in ends)
    lengths = {len(part) for part in compact["degree"]}
    if len(compact["nodes"]) != 5 or len(lengths) != 1 or max(lengths) > 64:
        return None
    if points and finite and small:
        compact["drawing"] = tuple(points), tuple((i, j) for i, j, _ in pairs)
        compact["kept"] = "".join("1" if kept else "0" for _, _, kept in pairs)
    return compact


def _rounded(value: float | int | None) -> float | int | None:
    """Six digits are enough to read."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
