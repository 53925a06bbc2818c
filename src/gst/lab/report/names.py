"""How things are called and drawn: one name, colour and marker for a method, everywhere on the page."""

from gst.lab.bench.rows import Row

METHODS = {  # in the order of legends and tables: learned ones, those of the graph alone, rules of dynamic training
    "gst/paper": "GST (paper)",
    "gst/deploy": "GST (deploy)",
    "gst/retrain": "GST (retrain)",
    "ugs": "UGS",
    "ugs+gst": "UGS + GST",
    "wd-glt": "WD-GLT",
    "mgspar": "MGSpar",
    "local-similarity": "LSim",
    "scan": "SCAN",
    "dspar": "DSpar",
    "effective-resistance": "Eff. resistance",
    "spectral-radius": "Spectral radius",
    "random": "Random",
    "snip": "SNIP",
    "set": "SET",
    "snfs": "SNFS",
    "rigl": "RigL",
    "mest": "MEST",
}
STYLES = 21  # colours of the style sheet; the first ones belong to the methods above, strangers share the rest
MARKERS = 8
BACKBONES = {"gcn": "GCN", "gin": "GIN", "gat": "GAT", "sage": "GraphSAGE", "cluster-gcn": "ClusterGCN"}
MEASURES = {  # prefix of the columns: what was scored
    "": "returned model",
    "retrain_": "fresh model",
    "warm_": "warm start",
}
ABLATIONS = {
    "": "GST",
    "tune=False": "w/o tuning",
    "semantic=False": "w/o sema",
    "topology=False": "w/o topo",
}


def series_of(row: Row) -> str:
    """The curve that a row belongs to: its method, and of GST the recipe."""
    return f"gst/{row.recipe or 'paper'}" if row.method == "gst" else row.method


def series_name(series: str) -> str:
    return METHODS.get(series, series)


def series_order(series: str) -> tuple[int, str]:
    known = list(METHODS)
    return (known.index(series) if series in known else len(known), series)


def style_of(series: str) -> int:
    """Number of its colour; a method that nobody knows gets one by its name, always the same."""
    known = list(METHODS)
    spare = STYLES - len(known)
    return known.index(series) if series in known else len(known) + sum(series.encode()) % spare


def metric_name(metric: str) -> str:
    return {"rocauc": "ROC-AUC", "hits50": "Hits@50"}.get(metric, "accuracy")


def percent(share: float) -> str:
    """0.4 → 40 %; 0.1426 → 14.3 %."""
    return f"{round(100 * share, 1):g} %"


def variations_of(text: str) -> dict[str, str]:
    """``a=1;b=2`` by name; what is no such pair is not there."""
    return dict(part.split("=", 1) for part in text.split(";") if "=" in part)
