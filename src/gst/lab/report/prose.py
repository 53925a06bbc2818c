"""The page's summary in sentences: what was measured, what it shows, how to read it."""

from collections import Counter
from collections.abc import Iterable

from gst.base.stats import TOLERANCE, Stat, difference
from gst.lab.report.names import BACKBONES, MEASURES, method_name, percent
from gst.lab.report.summary import Panel, SafeSparsity, Study

Sentence = tuple[str, str]  # subject and statement
_MIDDLE = 0.5


def tiles(study: Study) -> list[tuple[str, str]]:
    """A few large numbers, each with what it counts."""
    seeds = {row.seed for row in study.done}
    counts = [
        (f"{len(study.done):,}", "runs" if not study.failed else f"runs done, {len(study.failed):,} failed"),
        (str(len({row.dataset for row in study.done})), "data sets"),
        (str(len(study.methods)), "methods"),
        (str(len(seeds)), "seeds" if len(seeds) > 1 else "seed"),
    ]
    best = max(_safe_on_test(study), key=lambda safe: safe.sparsity or 0, default=None)
    if best is not None and best.sparsity:
        one_seed = ", one seed" if len({row.seed for row in best.rows}) == 1 else ""
        where = f"of {best.panel.dataset}’s edges removed, within {TOLERANCE:g} points of dense"
        counts.append((percent(best.sparsity), f"{where} ({method_name(best.method)}{one_seed})"))
    return counts


def sentences(study: Study) -> list[Sentence]:
    """What a reader with half a minute should know."""
    return [*_mean_losses(study), *_mean_ranks(study), *_largest_safe(study)]


def details(study: Study) -> list[Sentence]:
    """Panel by panel: methods are selected by validation, the test score is reported."""
    statements: list[Sentence] = []
    for panel in study.panels:
        dense = Stat.of(study.dense(panel).values())
        if dense is None:
            continue
        s = _common_sparsity(study, [panel]) or 0.0
        returned, fresh = _best_method(study, panel, s, ""), _best_method(study, panel, s, "retrain_")
        name = f"{panel.dataset} with {BACKBONES.get(panel.backbone, panel.backbone)} ({panel.profile})"
        text = f"the full graph gives {dense}"
        if returned is not None:
            text += f". With {percent(s)} of the edges removed, {_report(study, panel, returned, s, '')}"
            if fresh is not None and fresh != returned:
                text += f"; for a model trained afresh, {_report(study, panel, fresh, s, 'retrain_')}"
        statements.append((name, text))
    return statements


def _safe_on_test(study: Study) -> list[SafeSparsity]:
    return [safe for safe in study.safe_sparsities if safe.sparsity and safe.holds_on_test]


def _common_sparsity(study: Study, panels: Iterable[Panel]) -> float | None:
    """The sparsity that most methods have; of several, the one nearest to one half."""
    counts = Counter(s for panel in panels for method in study.methods_in(panel) for s in study.curve(panel, method))
    return max(counts, key=lambda s: (counts[s], -abs(s - _MIDDLE)), default=None)


def _mean_losses(study: Study) -> list[Sentence]:
    statements: list[Sentence] = []
    s = _common_sparsity(study, study.panels)
    for measure, model in MEASURES.items():
        losses, panels = study.mean_losses(s, measure) if s is not None else ({}, 0)
        if len(losses) < 2:
            continue
        each = [f"{_points(loss)} with {method_name(method)}" for method, loss in losses.items()]
        listed = ", ".join(each if len(each) < 6 else [*each[:4], "…", each[-1]])
        where = "on one graph" if panels == 1 else f"mean of {panels} graphs and backbones"
        subject = f"{model.capitalize()}, {percent(s or 0)} removed"
        statements.append((subject, f"points against dense, {where}: {listed}"))
    return statements


def _points(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _largest_safe(study: Study) -> list[Sentence]:
    """The largest safe sparsity of each panel that holds on test, too."""
    largest: dict[Panel, SafeSparsity] = {}
    for safe in _safe_on_test(study):
        if safe.panel not in largest or (safe.sparsity or 0) > (largest[safe.panel].sparsity or 0):
            largest[safe.panel] = safe
    if not largest:
        return [
            (
                f"Within {TOLERANCE:g} points of dense",
                "no method stays there, on validation and test, at any sparsity measured",
            )
        ]
    best = sorted(largest.values(), key=lambda safe: -(safe.sparsity or 0))
    each = [
        f"{safe.panel.title} {percent(safe.sparsity or 0)} ({method_name(safe.method)}, {MEASURES[safe.measure]})"
        for safe in best[:4]
    ]
    subject = f"Furthest within {TOLERANCE:g} points of dense, on validation and test"
    return [(subject, f"{'; '.join(each)}. Possible on {len(largest)} of {len(study.panels)} graphs and backbones")]


def _best_method(study: Study, panel: Panel, sparsity: float, measure: str) -> str | None:
    """The method with the best mean validation score."""
    stats = {method: study.score(panel, method, sparsity, f"{measure}val") for method in study.methods_in(panel)}
    scores = {method: stat.mean for method, stat in stats.items() if stat is not None}
    return max(scores, key=lambda method: scores[method], default=None)


def _report(study: Study, panel: Panel, method: str, sparsity: float, measure: str) -> str:
    score = study.score(panel, method, sparsity, f"{measure}test")
    losses = study.losses(panel, method, sparsity, measure)
    loss = Stat.of(losses)
    text = f"{method_name(method)} is best by validation and reaches {score} on test"
    if loss is None:
        return text
    noise = ", one seed" if loss.n == 1 else "" if difference(losses).certain else ", within noise"
    return f"{text} ({loss.text(sign=True)}{noise})"


def _mean_ranks(study: Study) -> list[Sentence]:
    each = []
    for measure, model in MEASURES.items():
        ranks = study.ranks(measure)
        if len(ranks) > 2:
            comparisons = next(iter(ranks.values())).n
            first = ", ".join(f"{method_name(method)} {rank.mean:.1f}" for method, rank in list(ranks.items())[:3])
            plural = "s" if comparisons > 1 else ""
            each.append(f"{model} {first} (of {len(ranks)}, {comparisons} comparison{plural})")
    return [("Mean rank, 1 is best", "; ".join(each))] if each else []


def caveats(study: Study) -> list[str]:
    """How to read the page."""
    seeds = sorted({len({row.seed for row in rows}) for curve in study.curves.values() for rows in curve.values()})
    several = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0]) if seeds else "no"
    notes = [
        "Sparsity is the share of edges removed. Scores are per cent on the test nodes at the best validation epoch, "
        f"mean ± sample standard deviation over seeds ({several} per point). Differences to dense are paired by seed.",
        "Returned model: the one that the method returns; that of GST was trained while its graph changed. Fresh "
        "model: new weights, trained on the sparse graph alone. Warm start: weights trained on the full graph, then on "
        "the sparse one. Compare methods within one of the three.",
    ]
    if any(row.sparse_ms for row in study.done):
        notes.append("Latencies of sweeps that shared their machine with other work are noise: time them alone.")
    profiles = sorted({row.profile for row in study.done})
    if len(profiles) > 1:
        notes.append(f"Profiles are never mixed: {', '.join(profiles)} differ in size and training.")
    if "smoke" in profiles:
        notes.append("The smoke profile trains for a few epochs only: it shows that everything runs, not how well.")
    return notes
