"""Every run as compact JSON for the page's own script: words once, drawings once."""

import json
import math
from collections.abc import Sequence
from typing import Any

from gst.lab.bench.rows import COLUMNS, Row
from gst.lab.report.names import BACKBONES, series_of

_SHOWN = [name for name in COLUMNS if name != "facts"]
_DRAWINGS = 3 * 2**20  # bytes of drawings at most: a page must open at once
_DRAWN = 64  # nodes, and four times as many edges, that a drawing may have


def runs_json(rows: Sequence[Row]) -> dict[str, Any]:
    """``columns``, ``rows`` (texts as places in ``strings``), ``facts`` by row, ``drawings``; plain JSON throughout."""
    strings: dict[str, int] = {}
    drawings: dict[Any, int] = {}
    facts: dict[str, Any] = {}
    lines, size, left_out = [], 0, 0
    for n, row in enumerate(rows):
        line: list[Any] = []
        for name in ("series", *_SHOWN):
            value = series_of(row) if name == "series" else getattr(row, name)
            line.append(strings.setdefault(value, len(strings)) if isinstance(value, str) else _short(value))
        lines.append(line)
        found = pruned_facts(row.facts)
        if found is None:
            continue
        drawing = found.pop("drawing", None)
        if drawing is not None:
            more = 0 if drawing in drawings else len(json.dumps(drawing, separators=(",", ":")))
            if size + more > _DRAWINGS:
                left_out += 1
                found.pop("kept")
            else:
                size += more
                found["drawing"] = drawings.setdefault(drawing, len(drawings))
        facts[str(n)] = found
    texts = [name for name in _SHOWN if rows and isinstance(getattr(rows[0], name), str)]
    return {
        "columns": ["series", *_SHOWN],
        "texts": ["series", *texts],
        "strings": list(strings),
        "backbones": list(BACKBONES.items()),
        "rows": lines,
        "facts": facts,
        "drawings": list(drawings),
        "left_out": left_out,
    }


def pruned_facts(facts: Any) -> dict[str, Any] | None:
    """What :func:`gst.after.structure.facts_of` wrote, if it is whole; the drawing apart from which edges it keeps."""
    try:
        degree, homophily, nodes, around = (facts[n] for n in ("degree", "homophily", "nodes", "neighbourhood"))
        points = [(int(i), float(x), float(y), None if c is None else int(c)) for i, x, y, c in around["nodes"]]
        pairs = [(int(i), int(j), bool(k)) for i, j, k in around["edges"]]
        found: dict[str, Any] = {
            "degree": [[int(v) for v in degree[name]] for name in ("from", "kept", "removed")],
            "homophily": [
                [int(homophily[part][w]) for w in ("same", "different", "unknown")] for part in ("kept", "removed")
            ],
            "nodes": [int(nodes["all"]), *(int(v) for name in ("isolated", "components") for v in nodes[name])],
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    ends = {end for i, j, _ in pairs for end in (i, j)}
    finite = all(math.isfinite(c) for _, x, y, _ in points for c in (x, y))
    small = len(points) <= _DRAWN and len(pairs) <= 4 * _DRAWN and all(0 <= end < len(points) for end in ends)
    if len(found["nodes"]) != 5 or len({len(part) for part in found["degree"]}) != 1 or len(found["degree"][0]) > 64:
        return None
    if points and finite and small:
        found["drawing"] = tuple(points), tuple((i, j) for i, j, _ in pairs)
        found["kept"] = "".join("1" if kept else "0" for _, _, kept in pairs)
    return found


def _short(value: float | int | None) -> float | int | None:
    """Six digits are more than anyone reads."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
