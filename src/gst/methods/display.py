"""How a result looks to people: one line, a table for notebooks, a figure."""

import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from gst.base.optional import optional
from gst.base.text import shown
from gst.graph.edgeset import EdgeSet
from gst.methods.reads import Served, reads_of
from gst.train.trainer import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = {  # of the scores in metrics, by prefix
    "dense_": "dense graph, plain training",
    "": "sparse graph, returned model",
    "retrain_": "sparse graph, fresh model",
    "distilled_": "sparse graph, fresh model, distilled",
    "edgeless_": "no edges, distilled: the control",
}
WIDTH, HEIGHT = 420, 90  # of the drawn curve, in pixels
COLOURS = ("#4477aa", "#ee6677", "#228833", "#aa7700", "#aa3377", "#4499bb", "#777777")


def unit(metrics: Mapping[str, Any]) -> str:
    """What a score is."""
    return {"rocauc": "ROC-AUC", "f1": "micro-F1"}.get(metrics["metric"], metrics["metric"])


def counted(metrics: Mapping[str, Any]) -> str:
    """What the edges of a run are."""
    return "arcs" if metrics["directed"] or metrics.get("by") == "arcs" else "pairs"


def score_rows(metrics: Mapping[str, Any]) -> list[tuple[str, int, float | None, float | None]]:
    """Which model, number of edges, validation and test score: every model that was measured."""
    counts = {"dense_": metrics["edges_total"], "edgeless_": 0}
    rows = []
    for prefix, label in LABELS.items():
        val, test = (metrics.get(f"{prefix}{part}") for part in ("val", "test"))
        if val is not None or test is not None:
            rows.append((label, counts.get(prefix, metrics["edges_kept"]), val, test))
    return rows


def line(metrics: Mapping[str, Any]) -> str:
    """The outcome in one line."""
    kind = counted(metrics)
    edges = f"{metrics['edges_kept']:,} of {metrics['edges_total']:,} {kind} kept"
    test = metrics.get("test")
    score = "" if test is None else f", test {unit(metrics)} {test:.1f}"
    dense = "" if metrics.get("dense_test") is None else f" (dense {metrics['dense_test']:.1f})"
    name = f"{shown(metrics['method'])}, {shown(metrics['backbone'])} on {shown(metrics['dataset'])}"
    return f"Result({name}: {edges}{score}{dense})"


class Measured(Served, Protocol):
    """What is shown of a :class:`gst.Result`."""

    graph: Any
    edge_mask: Any
    scores: Any
    metrics: dict[str, Any]
    history: tuple[Progress, ...]


def html(result: Measured) -> str:
    """Table, curve and what was removed, for notebooks; all text from outside is escaped."""
    m = result.metrics
    scores = [
        [label, f"{edges:,}", *("–" if score is None else f"{score:.1f}" for score in pair)]
        for label, edges, *pair in score_rows(m)
    ]
    caption = f"{m['method']} · {m['backbone']} · {m['dataset']} · seed {m['seed']}"
    parts = [
        _table(caption, ["", "edges", f"val {unit(m)}", f"test {unit(m)}"], scores),
        curve(result.history),
        _table("what was removed", ["", ""], [[name, text] for name, text in removed(result).items()]),
    ]
    return "<div>" + "".join(parts) + "</div>"


def removed(result: Measured) -> dict[str, str]:
    """Facts about the removed edges, as text."""
    m = result.metrics
    kind = counted(m)
    total, num_kept = m["edges_total"], m["edges_kept"]
    facts = {f"{kind} removed": f"{total - num_kept:,} of {total:,} ({m['sparsity']:.1%})"}
    if isinstance(result.graph, Data):
        degree = EdgeSet.from_edge_index(result.graph.edge_index, int(result.graph.num_nodes)).degree
        facts["nodes left without an edge"] = f"{int((degree == 0).sum()):,} of {degree.numel():,}"
    if m.get("agreement") is not None:
        facts["answers as on all edges"] = f"{m['agreement']:.1%}"
    if reads := reads_of(result):
        facts["nodes that one answer reads, mean"] = f"{reads['sparse']['mean']:,.1f}"
        if "dense" in reads:
            facts["nodes that one answer reads, mean"] += f" (on all edges {reads['dense']['mean']:,.1f})"
    return facts


def estimator_html(name: str, params: Mapping[str, Any], defaults: Mapping[str, Any], result: "Measured | None") -> str:
    """The arguments that were given; once it is fitted, also the result."""
    given = {k: v for k, v in params.items() if not _same(v, defaults.get(k))}
    rows = [[argument, shown(repr(value))] for argument, value in given.items()]
    note = "" if result is not None else "<p>not fitted: call <code>fit(data)</code></p>"
    return f"<div>{_table(name, ['argument', 'value'], rows)}{note}{'' if result is None else html(result)}</div>"


def _same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, int | float | str | tuple) and value == default)


def _table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def cells(row: Sequence[str], tag: str) -> str:
        aligned = ("left", *["right"] * (len(row) - 1))
        return "".join(
            f'<{tag} style="text-align:{side}">{escape(shown(text))}</{tag}>'
            for side, text in zip(aligned, row, strict=True)
        )

    head = f"<thead><tr>{cells(header, 'th')}</tr></thead>" if any(header) else ""
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<table><caption><b>{escape(shown(caption))}</b></caption>{head}<tbody>{body}</tbody></table>"


def phases(history: Iterable[Progress]) -> dict[str, list[float]]:
    """The validation scores of every phase, epoch by epoch."""
    out: dict[str, list[float]] = {}
    for step in history:
        out.setdefault(step.phase, []).append(step.val)
    return out


def curve(history: Sequence[Progress]) -> str:
    """Validation over epochs as a small SVG, one line per phase; nothing where there is no history."""
    values = phases(history)
    longest = max(map(len, values.values()), default=0)
    if longest < 2:
        return ""
    every = torch.tensor([v for line in values.values() for v in line])
    low, high = float(every.min()), float(every.max())
    across, up = WIDTH / (longest - 1), (HEIGHT - 4) / (high - low or 1)
    lines, names = [], []
    for (phase, scores), colour in zip(values.items(), COLOURS * len(values), strict=False):
        points = " ".join(f"{i * across:.1f},{HEIGHT - 2 - (v - low) * up:.1f}" for i, v in enumerate(scores))
        lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        names.append(f'<span style="color:{colour}">{escape(shown(phase))}</span>')
    title = f"validation by epoch, {low:.1f} to {high:.1f}: {' · '.join(names)}"
    svg = f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="validation by epoch">{"".join(lines)}</svg>'
    return f"<p>{title}<br>{svg}</p>"


def plot(result: Measured) -> "Figure":
    """Three panels: validation by epoch, test scores of every model, scores of kept and removed edges."""
    figure: Any = optional("matplotlib.figure", "result.plot()").Figure(figsize=(12, 3.6), layout="constrained")
    figure._repr_png_ = lambda: _png(figure)  # notebooks that have not loaded pyplot know no other way to show it
    epochs, bars, edges = figure.subplots(1, 3)
    m = result.metrics
    for phase, scores in phases(result.history).items():
        epochs.plot(range(1, len(scores) + 1), scores, label=phase, linewidth=1)
    epochs.set(title="validation by epoch", xlabel="epoch", ylabel=unit(m))
    if result.history:
        epochs.legend(fontsize=8)
    else:
        epochs.text(0.5, 0.5, "no history:\nread from disk", ha="center", va="center", transform=epochs.transAxes)
    measured = [(label.replace(", ", "\n"), test) for label, _, _, test in score_rows(m) if test is not None]
    drawn = bars.barh([label for label, _ in measured][::-1], [test for _, test in measured][::-1], color="tab:blue")
    bars.bar_label(drawn, fmt="%.1f", padding=3)
    bars.margins(x=0.15)
    bars.set(title="test", xlabel=unit(m))
    flat, mask = _flat(result.scores), _flat(result.edge_mask)
    kept, removed = _finite(flat, mask), _finite(flat, ~mask)
    edges.hist([kept, removed], bins=40, stacked=True, label=["kept", "removed"], color=["tab:blue", "lightgrey"])
    edges.set(title=f"{m['sparsity']:.1%} of the edges removed", xlabel="score of an edge", ylabel="columns")
    edges.legend(fontsize=8)
    figure.suptitle(f"{m['method']} · {m['backbone']} · {m['dataset']}")
    return figure


def _png(figure: Any) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=80)
    return stream.getvalue()


def _flat(values: Any) -> Tensor:
    """One value per column; those of a typed graph are a dict of relations."""
    return torch.cat(list(values.values())) if isinstance(values, Mapping) else values


def _finite(scores: Tensor, mask: Tensor) -> Any:
    chosen = scores[mask]
    return chosen[torch.isfinite(chosen)].numpy()
