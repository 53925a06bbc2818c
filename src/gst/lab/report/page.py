"""One self-contained HTML file from the rows of experiments."""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from gst.base.version import __version__
from gst.lab.bench.load import Loaded, separate_versions
from gst.lab.bench.rows import Row
from gst.lab.report import figures, prose, tables, varied
from gst.lab.report.files import read_template
from gst.lab.report.latex import latex
from gst.lab.report.names import BACKBONES, EMPHASISED, MEASURES, method_name, method_style
from gst.lab.report.runs import runs_json
from gst.lab.report.summary import Study

TITLE = "Fewer edges, same answers"
_SCRIPTS = ("base.js", "charts.js", "downloads.js", "runs.js", "run.js")  # one scope, in this order


def render(loaded: Loaded, title: str = TITLE) -> str:
    """The page. Its policy forbids loading anything and running any script but the one whose hash it names."""
    study = Study(separate_versions(loaded.rows))
    scores = [tables.scores(study, panel) for panel in study.panels]
    singles, safe, paper = tables.single_sparsities(study), tables.safe_sparsities(study), tables.paper(study)
    script = '"use strict";(() => {\n' + "".join(map(read_template, _SCRIPTS)) + "})();"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _environment().get_template("report.html.j2").render(
        title=title,
        version=__version__,
        style=Markup(read_template("charts.css") + read_template("report.css")),
        markers=Markup(read_template("markers.svg")),
        script=Markup(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:",
        tiles=prose.tiles(study),
        sentences=prose.sentences(study),
        details=prose.details(study),
        caveats=prose.caveats(study),
        filters=filters(study),
        sections={
            "accuracy": figures.accuracy(study),
            "pareto": figures.pareto(study),
            "spectra": figures.spectra(study),
            "spectral_errors": figures.spectral_errors(study),
            "ablations": varied.ablations(study),
            "settings": varied.settings(study),
            "perturbed": varied.perturbed(study),
            "tickets": varied.tickets(study),
        },
        scores=scores,
        singles=singles,
        safe=safe,
        paper=paper,
        failed=failures(study.failed),
        origin=origin(study, loaded),
        runs=island(runs_json(study.rows)),
        latex=island({table.name: latex(table) for table in (*scores, singles, safe, paper) if table.lines}),
    )  # fmt: skip


def filters(study: Study) -> dict[str, Any]:
    """The choices of each filter: value and name; of methods also the style and whether they are emphasised."""
    datasets, backbones = (dict.fromkeys(getattr(row, name) for row in study.rows) for name in ("dataset", "backbone"))
    profiles = sorted({row.profile for row in study.rows})
    measures = {m: name for m, name in MEASURES.items() if any(getattr(r, f"{m}test") is not None for r in study.done)}
    return {
        "dataset": [(name, name) for name in datasets],
        "backbone": [(name, BACKBONES.get(name, name)) for name in backbones],
        "profile": [(name, name or "none") for name in profiles],
        "method": [(m, method_name(m), method_style(m), m in EMPHASISED) for m in study.methods],
        "measure": list(measures.items()),
    }


def failures(rows: Iterable[Row]) -> list[tuple[int, str, str]]:
    """How many runs failed for each reason, and one of them as an example."""
    counts: Counter[str] = Counter()
    example: dict[str, str] = {}
    for row in rows:
        reason = row.reason or "no reason given"
        counts[reason] += 1
        example[reason] = f"{row.dataset} · {row.backbone} · {row.method} at {row.sparsity:g}"
    return [(count, reason, example[reason]) for reason, count in counts.most_common()]


def origin(study: Study, loaded: Loaded) -> dict[str, list[str]]:
    """Where the rows come from: files, commands, machines, versions."""
    names = ("command", "environment", "code")
    common = {
        name: [text for text, _ in Counter(getattr(row, name) for row in study.rows).most_common(9) if text]
        for name in names
    }
    finished = sorted(row.finished for row in study.rows if row.finished)
    common["finished"] = [finished[0], finished[-1]] if finished else []
    return {"files": loaded.sources, "skipped": loaded.skipped, **common}


def island(content: Mapping[str, Any]) -> Markup:
    """JSON for a script element, escaped so that no text of a row can end the element."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _environment() -> Environment:
    return Environment(
        loader=DictLoader({"report.html.j2": read_template("report.html.j2")}),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
