"""One name, colour and marker per method, everywhere on the page."""

METHODS = {  # in the order of legends and tables: learned, from the graph alone, dynamic sparse training
    "gst": "GST",
    "deploy": "Deploy",
    "retrain": "Retrain",
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
    "k-neighbor": "K-Neighbor",
}
WITHOUT_COLOUR = {  # of their own; figures show them in the spare ones
    "attribution": "Attribution",
    "neural-sparse": "NeuralSparse",
    "k-neighbor": "K-Neighbor",
}
REFERENCES = {"edge-free": "No edges", "ensemble": "Dense ensemble", "drop-edge": "DropEdge, all edges"}
VARIED = {  # rows with names of their own
    ("wd-glt", ""): "WD-GLT as printed",
    ("wd-glt", "ascent=False"): "WD-GLT, descent",
    ("deploy", ""): "Deploy, arcs",
    ("deploy", "by=pairs"): "Deploy, pairs",
    ("attribution", "explainer=saliency"): "Saliency",
    ("attribution", "explainer=integrated-gradients"): "Integrated gradients",
    ("attribution", "explainer=shapley"): "Shapley values",
    ("attribution", "explainer=attention"): "Attention",
}
EMPHASISED = ("gst", "deploy", "retrain")  # drawn with thicker lines
STYLES = 21  # colours of the style sheet; the first ones belong to the methods above, unknown methods share the rest
MARKERS = 8
BACKBONES = {"gcn": "GCN", "gin": "GIN", "gat": "GAT", "sage": "GraphSAGE", "cluster-gcn": "ClusterGCN"}
MEASURES = {  # prefix of the columns: which model is scored
    "": "returned model",
    "retrain_": "fresh model",
    "warm_": "warm start",
    "frozen_": "frozen dense model",
}
ABLATIONS = {
    "": "GST",
    "tune=False": "w/o tuning",
    "semantic=False": "w/o sema",
    "topology=False": "w/o topo",
}


def method_name(method: str) -> str:
    return (METHODS | WITHOUT_COLOUR | REFERENCES).get(method, method)


def row_name(method: str, variation: str) -> str:
    """Of a method with what is varied.

    >>> row_name("wd-glt", "ascent=False"), row_name("gst", "tune=False"), row_name("random", "")
    ('WD-GLT, descent', 'GST tune=False', 'Random')
    """
    return VARIED.get((method, variation)) or " ".join(filter(None, (method_name(method), variation)))


def method_order(method: str) -> tuple[int, str]:
    known = [*METHODS, *WITHOUT_COLOUR, *REFERENCES]
    return (known.index(method) if method in known else len(known), method)


def method_style(method: str) -> int:
    """Number of its colour; that of an unknown method depends on its name alone."""
    known = list(METHODS)
    spare = STYLES - len(known)
    return known.index(method) if method in known else len(known) + sum(method.encode()) % spare


def metric_name(metric: str) -> str:
    return {"rocauc": "ROC-AUC", "hits50": "Hits@50"}.get(metric, "accuracy")


def percent(share: float) -> str:
    """0.4 → 40 %; 0.1426 → 14.3 %."""
    return f"{round(100 * share, 1):g} %"


def parse_variation(text: str) -> dict[str, str]:
    """``a=1;b=2`` by name; parts without ``=`` are ignored."""
    return dict(part.split("=", 1) for part in text.split(";") if "=" in part)
