"""The paper's numbers, table by table (Zhang et al., *Two Heads Are Better Than One*, ICML 2024)."""

from collections.abc import Iterator
from dataclasses import dataclass

_PLANETOID = ("Cora", "CiteSeer", "PubMed")


@dataclass(frozen=True)
class Claim:
    """One number of the paper."""

    table: str
    dataset: str
    backbone: str
    method: str
    quantity: str  # "extreme sparsity", "MACs saved", "speed-up" or "score"
    value: float  # per cent, a factor for "speed-up"
    sd: float | None = None
    sparsity: float | None = None
    variation: str = ""


# Table 3: extreme sparsity in %, MACs in millions, latency in ms, for Cora, CiteSeer and PubMed
_EFFICIENCY = {
    "gcn": {
        "dense": ((0, 1996.55, 4.27), (0, 6318.00, 6.08), (0, 5077.84, 6.25)),
        "scan": ((11.93, 1758.37, 4.13), (6.52, 5526.99, 5.88), (23.68, 3875.41, 5.52)),
        "local-similarity": ((11.58, 1765.35, 3.99), (21.83, 4938.78, 5.35), (11.84, 4476.62, 5.67)),
        "dspar": ((9.78, 1882.44, 4.20), (8.22, 5943.22, 5.97), (18.60, 4266.18, 5.49)),
        "ugs": ((19.10, 1758.37, 4.13), (27.20, 4599.50, 5.22), (24.91, 3905.67, 5.12)),
        "wd-glt": ((19.46, 1702.34, 4.24), (19.46, 4989.16, 5.37), (11.24, 4455.10, 5.67)),
        "mgspar": ((31.00, 1568.21, 3.92), (30.00, 4318.75, 5.03), (27.00, 3758.53, 5.11)),
        "gst": ((40.00, 1397.59, 3.36), (43.00, 3890.80, 4.48), (35.00, 3092.81, 4.82)),
    },
    "gin": {
        "dense": ((0, 2006.26, 2.53), (0, 6328.22, 5.02), (0, 5108.12, 6.12)),
        "scan": ((11.93, 1766.91, 2.24), (12.52, 5535.93, 3.84), (11.82, 4504.34, 5.81)),
        "local-similarity": ((11.58, 1773.93, 2.34), (10.43, 5668.19, 4.11), (11.84, 4503.32, 5.74)),
        "dspar": ((21.11, 1533.29, 2.02), (14.77, 5372.09, 3.71), (16.18, 4157.10, 5.16)),
        "ugs": ((19.4, 1617.05, 2.18), (27.5, 4587.96, 3.60), (27.6, 3698.28, 5.02)),
        "wd-glt": ((19.7, 1590.33, 2.16), (16.4, 5198.11, 3.73), (32.4, 3450.59, 4.89)),
        "mgspar": ((10.00, 1784.52, 2.39), (5.00, 6087.18, 4.90), (7.00, 4885.16, 5.94)),
        "gst": ((31.00, 1304.27, 1.85), (26.43, 4633.97, 3.52), (53.00, 3109.47, 4.57)),
    },
    "gat": {
        "dense": ((0, 8029.60, 13.2), (0, 25309.91, 13.5), (0, 20675.00, 15.3)),
        "scan": ((24.16, 6089.65, 9.9), (24.87, 19015.33, 11.8), (23.68, 15779.16, 12.6)),
        "local-similarity": ((23.22, 6165.13, 10.2), (21.83, 19784.75, 11.8), (11.84, 18227.08, 14.9)),
        "dspar": ((17.34, 6788.29, 11.33), (22.85, 19655.05, 11.7), (11.58, 18106.99, 14.8)),
        "ugs": ((18.22, 6584.27, 11.15), (25.54, 18850.75, 12.36), (18.22, 16953.50, 13.92)),
        "wd-glt": ((19.71, 6504.33, 10.91), (28.54, 18223.13, 11.57), (13.54, 17784.61, 14.50)),
        "mgspar": ((19.00, 6400.25, 11.08), (32.00, 17114.76, 11.19), (20.00, 16309.54, 12.8)),
        "gst": ((35.00, 5216.28, 7.90), (41.00, 14920.45, 10.30), (39.00, 13438.75, 11.23)),
    },
}

# Tables 2, 9 and 10: score ± sd at 10, 20, … 60 %
_LARGE: dict[tuple[str, str, str], dict[str, tuple[tuple[float, ...], tuple[float, ...] | None]]] = {
    ("Table 2", "ogbn-arxiv", "sage"): {
        "local-similarity": ((69.22, 68.40, 66.15, 64.66, 61.07, 58.21), (0.11, 0.18, 0.22, 0.31, 0.23, 0.09)),
        "dspar": ((71.23, 71.03, 68.50, 64.57, 62.79, 60.49), (0.24, 0.28, 0.33, 0.26, 0.66, 0.58)),
        "ugs": ((68.77, 67.92, 66.30, 66.57, 65.72, 63.40), (0.21, 0.53, 0.27, 0.18, 0.14, 0.36)),
        "gst": ((71.12, 71.14, 71.46, 70.57, 68.02, 66.55), (0.23, 0.18, 0.37, 0.34, 0.58, 0.53)),
    },
    ("Table 2", "ogbn-arxiv", "cluster-gcn"): {
        "local-similarity": ((67.27, 67.80, 65.49, 64.97, 63.56, 62.18), (0.54, 0.46, 0.45, 0.52, 0.39, 0.39)),
        "dspar": ((68.75, 68.40, 66.72, 66.09, 65.45, 63.72), (0.75, 0.69, 0.56, 0.71, 0.51, 0.50)),
        "gst": ((69.44, 69.21, 68.17, 68.02, 67.33, 65.98), (0.14, 0.24, 0.63, 0.49, 0.37, 0.50)),
    },
    ("Table 9", "ogbn-proteins", "sage"): {
        "local-similarity": ((76.92, 75.03, 73.20, 73.69, 72.14, 70.09), (0.58, 1.17, 0.79, 0.52, 0.48, 0.59)),
        "dspar": ((76.04, 75.86, 74.46, 73.45, 70.22, 69.23), (0.25, 0.27, 0.39, 0.26, 0.54, 0.40)),
        "ugs": ((77.47, 76.38, 74.58, 72.12, 72.38, 71.45), (0.27, 0.63, 0.49, 0.38, 0.33, 0.75)),
        "gst": ((77.59, 77.56, 76.45, 76.02, 75.45, 73.55), (0.52, 0.79, 0.66, 0.68, 0.77, 0.50)),
    },
    ("Table 9", "ogbn-proteins", "cluster-gcn"): {
        "local-similarity": ((75.44, 74.18, 74.27, 72.15, 69.42, 66.46), (0.57, 0.60, 0.89, 0.64, 0.91, 0.85)),
        "dspar": ((76.38, 76.22, 75.28, 74.66, 72.89, 71.39), (0.79, 1.13, 0.85, 1.05, 0.74, 0.92)),
        "gst": ((76.29, 76.11, 76.16, 75.83, 73.03, 73.80), (0.56, 0.57, 0.44, 0.69, 0.65, 0.77)),
    },
    ("Table 10", "ogbn-products", "sage"): {
        "local-similarity": ((77.96, 76.60, 74.98, 72.23, 72.67, 72.49), None),
        "dspar": ((78.25, 77.41, 75.19, 74.20, 74.57, 74.08), None),
        "gst": ((78.79, 78.52, 77.15, 77.03, 75.86, 75.77), None),
    },
    ("Table 10", "ogbn-products", "cluster-gcn"): {
        "local-similarity": ((77.04, 74.34, 72.50, 70.24, 69.92, 65.10), None),
        "dspar": ((78.25, 76.11, 74.39, 72.06, 69.74, 69.56), None),
        "gst": ((78.38, 78.45, 77.83, 77.19, 75.71, 73.05), None),
    },
}

# Table 4: extreme sparsity of GST and of its ablations
_ABLATION = {
    ("CiteSeer", "gcn"): ((43.43, 1.46), (30.41, 0.75), (39.82, 1.49), (42.08, 0.56)),
    ("CiteSeer", "gin"): ((26.43, 1.07), (10.39, 1.78), (25.09, 1.32), (25.93, 1.26)),
    ("ogbn-arxiv", "sage"): ((35.18, 0.72), (18.32, 1.14), (29.78, 1.42), (32.21, 0.49)),
    ("ogbn-arxiv", "cluster-gcn"): ((21.44, 0.95), (12.57, 0.56), (19.24, 0.85), (19.67, 0.79)),
}
_ABLATED = ("", "tune=False", "semantic=False", "topology=False")

# Table 11: lottery tickets after 1, 3, … 13 rounds, GCN
_TICKETS = {
    "Cora": (
        (79.38, 78.08, 77.36, 78.05, 76.22, 75.35, 74.83),
        (80.25, 79.21, 78.83, 77.66, 77.24, 76.38, 75.62),
    ),
    "CiteSeer": (
        (70.30, 69.77, 68.14, 69.02, 68.53, 67.59, 66.84),
        (70.08, 69.54, 69.48, 69.27, 68.79, 68.16, 67.34),
    ),
    "PubMed": (
        (78.51, 77.21, 75.60, 75.17, 74.85, 75.21, 74.96),
        (78.60, 78.05, 77.18, 77.03, 75.92, 75.69, 75.30),
    ),
}

# Table 12: score at 20 and 50 % for ΔT = 3, 5, 20, 50
_INTERVALS = {
    ("CiteSeer", "gcn"): ((69.16, 68.01), (70.62, 68.73), (70.89, 68.46), (69.75, 67.59)),
    ("CiteSeer", "gin"): ((69.15, 66.02), (69.52, 66.05), (69.71, 66.16), (68.48, 65.43)),
    ("ogbn-arxiv", "sage"): ((71.80, 68.02), (71.18, 67.95), (68.04, 67.77), (68.06, 66.08)),
    ("ogbn-arxiv", "cluster-gcn"): ((69.21, 67.33), (69.10, 67.84), (69.40, 66.25), (69.23, 66.90)),
}

# Table 13: score on CiteSeer at 20 %, rows for κ = 1, 2, 3, columns for τ = 0.1, 0.2, 0.3
_SCHEDULES = {
    "gcn": ((69.32, 70.86, 70.89), (69.14, 70.84, 69.85), (68.26, 68.30, 69.20)),
    "gin": ((67.64, 68.98, 69.35), (67.25, 70.86, 70.89), (67.48, 69.11, 69.20)),
    "gat": ((68.03, 68.42, 68.55), (67.66, 68.12, 68.33), (67.50, 67.17, 67.95)),
}


def claims() -> list[Claim]:
    """Every number that our rows can be compared with."""
    return [*_of_efficiency(), *_of_large(), *_of_ablation(), *_of_tickets(), *_of_settings()]


def _of_efficiency() -> Iterator[Claim]:
    for backbone, methods in _EFFICIENCY.items():
        for method, numbers in methods.items():
            if method == "dense":
                continue
            for dataset, full, (s, macs, ms) in zip(_PLANETOID, methods["dense"], numbers, strict=True):
                names = ("Table 3", dataset, backbone, method)
                yield Claim(*names, "extreme sparsity", s)
                yield Claim(*names, "MACs saved", 100 * (1 - macs / full[1]))
                yield Claim(*names, "speed-up", full[2] / ms)


def _of_large() -> Iterator[Claim]:
    for (table, dataset, backbone), methods in _LARGE.items():
        for method, (means, sds) in methods.items():
            for n, mean in enumerate(means):
                numbers = (mean, None if sds is None else sds[n])
                yield Claim(table, dataset, backbone, method, "score", *numbers, sparsity=(n + 1) / 10)


def _of_ablation() -> Iterator[Claim]:
    for (dataset, backbone), numbers in _ABLATION.items():
        for variation, (mean, sd) in zip(_ABLATED, numbers, strict=True):
            yield Claim("Table 4", dataset, backbone, "gst", "extreme sparsity", mean, sd, variation=variation)


def _of_tickets() -> Iterator[Claim]:
    for dataset, both in _TICKETS.items():
        for method, scores in zip(("ugs", "ugs+gst"), both, strict=True):
            for n, score in enumerate(scores):
                rounds = 2 * n + 1
                s = round(1 - 0.95**rounds, 4)
                yield Claim("Table 11", dataset, "gcn", method, "score", score, None, s, f"rounds={rounds}")


def _of_settings() -> Iterator[Claim]:
    for (dataset, backbone), rows in _INTERVALS.items():
        for interval, scores in zip((3, 5, 20, 50), rows, strict=True):
            for s, score in zip((0.2, 0.5), scores, strict=True):
                names = ("Table 12", dataset, backbone, "gst", "score")
                yield Claim(*names, score, None, s, f"interval={interval}")
    for backbone, grid in _SCHEDULES.items():
        for decay, line in zip((1.0, 2.0, 3.0), grid, strict=True):
            for swap, score in zip((0.1, 0.2, 0.3), line, strict=True):
                names = ("Table 13", "CiteSeer", backbone, "gst", "score")
                yield Claim(*names, score, None, 0.2, f"swap_ratio={swap};decay={decay}")
