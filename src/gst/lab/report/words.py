"""The page in words: what was measured, what it says, what it does not."""

from collections import Counter
from collections.abc import Iterable

from gst.lab.report.names import BACKBONES, MEASURES, percent, series_name
from gst.lab.report.summary import EPSILON, Extreme, Panel, Stat, Study, certain

Told = tuple[str, str]  # what it is about, and what there is to say
_MIDDLE = 0.5


def tiles(study: Study) -> list[tuple[str, str]]:
    """A few large numbers: figure and what it counts."""
    seeds = {row.seed for row in study.done}
    found = [
        (f"{len(study.done):,}", "runs" if not study.failed else f"runs done, {len(study.failed):,} failed"),
        (str(len({row.dataset for row in study.done})), "data sets"),
        (str(len(study.series)), "methods"),
        (str(len(seeds)), "seeds" if len(seeds) > 1 else "seed"),
    ]
    best = max((e for e in study.extremes if e.by_both), key=lambda e: e.by_both or 0, default=None)
    if best is not None and best.by_both:
        seeds = {row.seed for row in study.curve(best.panel, best.series)[best.by_both]}
        alone = ", one seed" if len(seeds) == 1 else ""
        where = f"of {best.panel.dataset}’s edges gone, within {EPSILON:g} point of dense"
        found.append((percent(best.by_both), f"{where} ({series_name(best.series)}{alone})"))
    return found


def sentences(study: Study) -> list[Told]:
    """What a reader with half a minute should know."""
    return [*_of_losses(study), *_of_ranks(study), *_of_limits(study)]


def details(study: Study) -> list[Told]:
    """Panel by panel; methods are chosen by validation, the test score is told."""
    return _of_panels(study)


def _middle(study: Study, panels: Iterable[Panel]) -> float | None:
    """The sparsity that most methods have; among equals the one nearest to one half."""
    counted = Counter(s for panel in panels for series in study.series_in(panel) for s in study.curve(panel, series))
    return max(counted, key=lambda s: (counted[s], -abs(s - _MIDDLE)), default=None)


def _of_losses(study: Study) -> list[Told]:
    told: list[Told] = []
    s = _middle(study, study.panels)
    for measure, words in MEASURES.items():
        losses, panels = study.losses(s, measure) if s is not None else ({}, 0)
        if len(losses) < 2:
            continue
        each = [f"{_points(loss)} with {series_name(series)}" for series, loss in losses.items()]
        listed = ", ".join(each if len(each) < 6 else [*each[:4], "…", each[-1]])
        where = "on one graph" if panels == 1 else f"mean of {panels} graphs and backbones"
        told.append((f"{words.capitalize()}, {percent(s or 0)} removed", f"points against dense, {where}: {listed}"))
    return told


def _points(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def _of_limits(study: Study) -> list[Told]:
    """How far the best goes, where validation and test agree that nothing is lost."""
    far: dict[Panel, Extreme] = {}
    for e in study.extremes:
        if e.by_both and (e.panel not in far or e.by_both > (far[e.panel].by_both or 0)):
            far[e.panel] = e
    if not far:
        return [
            (
                f"Within {EPSILON:g} point of dense",
                "no method stays there, on validation and test, at any sparsity measured",
            )
        ]
    best = sorted(far.items(), key=lambda pair: -(pair[1].by_both or 0))
    each = [
        f"{p.title} {percent(e.by_both or 0)} ({series_name(e.series)}, {MEASURES[e.measure]})" for p, e in best[:4]
    ]
    lead = f"Furthest within {EPSILON:g} point of dense, on validation and test"
    return [(lead, f"{'; '.join(each)}. Possible on {len(far)} of {len(study.panels)} graphs and backbones")]


def _of_panels(study: Study) -> list[Told]:
    told: list[Told] = []
    for panel in study.panels:
        dense = Stat.of(study.dense(panel).values())
        if dense is None:
            continue
        s = _middle(study, [panel]) or 0.0
        fresh, own = _best(study, panel, s, "retrain_"), _best(study, panel, s, "")
        name = f"{panel.dataset} with {BACKBONES.get(panel.backbone, panel.backbone)} ({panel.profile})"
        text = f"the full graph gives {dense}"
        if own is not None:
            text += f". With {percent(s)} of the edges removed, {_told(study, panel, own, s, '')}"
            if fresh is not None and fresh != own:
                text += f"; for a model trained afresh, {_told(study, panel, fresh, s, 'retrain_')}"
        told.append((name, text))
    return told


def _best(study: Study, panel: Panel, sparsity: float, measure: str) -> str | None:
    """The method with the best mean validation score."""
    found = {s: study.score(panel, s, sparsity, f"{measure}val") for s in study.series_in(panel)}
    scores = {series: stat.mean for series, stat in found.items() if stat is not None}
    return max(scores, key=lambda series: scores[series], default=None)


def _told(study: Study, panel: Panel, series: str, sparsity: float, measure: str) -> str:
    score = study.score(panel, series, sparsity, f"{measure}test")
    loss = study.loss(panel, series, sparsity, measure)
    text = f"{series_name(series)} is best by validation and reaches {score} on test"
    if loss is None:
        return text
    sure = "" if certain(loss) else ", within noise" if loss.sd is not None else ", one seed"
    return f"{text} ({loss.text(sign=True)}{sure})"


def _of_ranks(study: Study) -> list[Told]:
    each = []
    for measure, words in MEASURES.items():
        ranks = study.ranks(measure)
        if len(ranks) > 2:
            tables = next(iter(ranks.values())).n
            first = ", ".join(f"{series_name(s)} {rank.mean:.1f}" for s, rank in list(ranks.items())[:3])
            each.append(f"{words} {first} (of {len(ranks)}, {tables} comparison{'s' if tables > 1 else ''})")
    return [("Mean rank, 1 is best", "; ".join(each))] if each else []


def caveats(study: Study) -> list[str]:
    """How to read it."""
    seeds = sorted({len({row.seed for row in rows}) for curve in study.curves.values() for rows in curve.values()})
    several = f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else str(seeds[0]) if seeds else "no"
    told = [
        "Sparsity is the share of edges removed. Scores are per cent on the test nodes at the best validation epoch, "
        f"mean ± sample standard deviation over seeds ({several} a point). Differences from dense are paired by seed.",
        "Returned model: what the method hands over; GST’s has trained on while its graph changed. Fresh model: new "
        "weights, trained on the sparse graph alone. Warm start: weights trained on the full graph, then on the sparse "
        "one. Compare methods within one of the three.",
    ]
    if any(row.sparse_ms for row in study.done):
        told.append("Latencies of sweeps that shared their machine with other work are noise: time them alone.")
    profiles = sorted({row.profile for row in study.done})
    if len(profiles) > 1:
        told.append(f"Profiles are never mixed: {', '.join(profiles)} differ in size and training.")
    if "smoke" in profiles:
        told.append("The smoke profile trains for a few epochs only: it shows that everything runs, not how well.")
    return told
