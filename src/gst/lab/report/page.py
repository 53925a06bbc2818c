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
from gst.lab.bench.load import Loaded, apart
from gst.lab.bench.rows import Row
from gst.lab.report import figures, tables, varied, words
from gst.lab.report.files import read
from gst.lab.report.latex import latex
from gst.lab.report.names import BACKBONES, MEASURES, series_name, style_of
from gst.lab.report.runs import runs_json
from gst.lab.report.summary import Study

TITLE = "Fewer edges, same answers"
_SCRIPTS = ("base.js", "charts.js", "downloads.js", "runs.js", "run.js")  # one scope, in this order


def render(loaded: Loaded, title: str = TITLE) -> str:
    """The page. It loads nothing, and its policy forbids it to: only the script whose hash it names may run."""
    study = Study(apart(loaded.rows))
    scores = [tables.scores(study, panel) for panel in study.panels]
    singles, extremes, paper = tables.singles(study), tables.extremes(study), tables.paper(study)
    script = '"use strict";(() => {\n' + "".join(map(read, _SCRIPTS)) + "})();"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _environment().get_template("report.html.j2").render(
        title=title,
        version=__version__,
        style=Markup(read("charts.css") + read("report.css")),
        markers=Markup(read("markers.svg")),
        script=Markup(script),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:",
        tiles=words.tiles(study),
        sentences=words.sentences(study),
        details=words.details(study),
        caveats=words.caveats(study),
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
        extremes=extremes,
        paper=paper,
        failed=failures(study.failed),
        origin=origin(study, loaded),
        runs=island(runs_json(study.rows)),
        latex=island({table.name: latex(table) for table in (*scores, singles, extremes, paper) if table.lines}),
    )  # fmt: skip


def filters(study: Study) -> dict[str, Any]:
    """What can be chosen: value and name, of methods also the number of the style."""
    shown = {row.dataset: None for row in study.rows}, {row.backbone: None for row in study.rows}
    profiles = sorted({row.profile for row in study.rows})
    measures = {m: name for m, name in MEASURES.items() if any(getattr(r, f"{m}test") is not None for r in study.done)}
    return {
        "dataset": [(name, name) for name in shown[0]],
        "backbone": [(name, BACKBONES.get(name, name)) for name in shown[1]],
        "profile": [(name, name or "none") for name in profiles],
        "series": [(series, series_name(series), style_of(series)) for series in study.series],
        "measure": list(measures.items()),
    }


def failures(rows: Iterable[Row]) -> list[tuple[int, str, str]]:
    """How often each reason stopped a run, and one run that it stopped."""
    counted = Counter(row.reason or "no reason given" for row in rows)
    example = {
        row.reason or "no reason given": f"{row.dataset} · {row.backbone} · {row.method} at {row.sparsity:g}"
        for row in rows
    }
    return [(count, reason, example[reason]) for reason, count in counted.most_common()]


def origin(study: Study, loaded: Loaded) -> dict[str, list[str]]:
    """Where the rows come from: files, commands, machines, versions."""
    names = ("command", "environment", "code")
    found = {
        name: [word for word, _ in Counter(getattr(row, name) for row in study.rows).most_common(9) if word]
        for name in names
    }
    finished = sorted(row.finished for row in study.rows if row.finished)
    found["finished"] = [finished[0], finished[-1]] if finished else []
    return {"files": loaded.sources, "skipped": loaded.skipped, **found}


def island(content: Mapping[str, Any]) -> Markup:
    """JSON inside a script element: no text in it can end the element, whatever a row holds."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _environment() -> Environment:
    template = read("report.html.j2")
    return Environment(
        loader=DictLoader({"report.html.j2": template}),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
