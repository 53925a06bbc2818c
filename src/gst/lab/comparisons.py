"""Like with like: four models on the graph of every method, all as differences to the dense model of the same seed."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from gst.base.stats import Stat, difference, paired
from gst.lab.bench.rows import Row
from gst.lab.bench.summary import by_seed
from gst.lab.markdown import markdown_table
from gst.lab.report.names import BACKBONES, REFERENCES, method_order, row_name
from gst.lab.report.paper import claims

MODELS = {"returned": "test", "warm": "warm_test", "fresh": "retrain_test", "frozen": "frozen_test"}
RIVALS = ("scan", "local-similarity", "dspar", "ugs", "wd-glt", "mgspar")  # the paper's six
Group = dict[tuple[str, str], list[Row]]  # rows by method and variation


def loss(values: Sequence[float]) -> str:
    """Mean ± half of its 95 % interval, and the number of seeds if it is not five."""
    return "–" if not values else f"{difference(values)}{'' if len(values) == 5 else f' ({len(values)})'}"


def losses(rows: Iterable[Row], column: str) -> list[float]:
    """Differences to dense of the same seed."""
    rows = list(rows)
    return paired(by_seed(rows, column), by_seed(rows, "dense_test"))


def groups(rows: Iterable[Row]) -> Group:
    """Finished rows by method and variation, in the order of tables."""
    found: Group = {}
    for row in sorted(rows, key=lambda row: (method_order(row.method), row.variation)):
        if row.status == "done":
            found.setdefault((row.method, row.variation), []).append(row)
    return found


def panels(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Data sets with backbones, in the order of the rows."""
    return list(dict.fromkeys((row.dataset, row.backbone) for row in rows if row.status == "done"))


def settings(rows: Sequence[Row]) -> str:
    """For every panel and sparsity: all methods, four models each, beside what the paper claims of the method."""
    parts = []
    for dataset, backbone in panels(rows):
        part = [row for row in rows if (row.dataset, row.backbone) == (dataset, backbone)]
        for sparsity in sorted({row.sparsity for row in part if row.method not in REFERENCES}):
            here = [row for row in part if row.sparsity == sparsity or row.method in REFERENCES]
            parts.append(_setting(dataset, backbone, sparsity, here))
    return "\n".join(parts)


def _setting(dataset: str, backbone: str, sparsity: float, rows: list[Row]) -> str:
    dense = Stat.of(by_seed(rows, "dense_test").values())
    paper = {
        claim.method: f"{claim.value:.4g} %"
        for claim in claims()
        if (claim.dataset, claim.backbone, claim.quantity, claim.table)
        == (dataset, backbone, "extreme sparsity", "Table 3")
        and not claim.variation
    }
    lines = []
    for (method, variation), part in groups(rows).items():
        name = row_name(method, variation)
        if method == "drop-edge":
            name = f"{name}, {100 * part[0].sparsity:.0f} % an epoch"
        cells = [loss(losses(part, column)) for column in MODELS.values()]
        lines.append([name, *cells, "" if variation else paper.get(method, "")])
    head = f"**{dataset}, {BACKBONES[backbone]}, {100 * sparsity:.0f} % removed**, dense {dense}:\n\n"
    return head + markdown_table(["", *MODELS, "paper: no loss up to"], lines)


def leads(rows: Sequence[Row]) -> str:
    """GST minus each other method, paired by seed, for every panel, sparsity and model."""
    lines = []
    for dataset, backbone in panels(rows):
        part = [row for row in rows if (row.dataset, row.backbone) == (dataset, backbone)]
        for sparsity in sorted({row.sparsity for row in part if row.method == "gst"}):
            here = groups(row for row in part if row.sparsity == sparsity and row.method not in REFERENCES)
            gst = here.pop(("gst", ""), [])
            for (method, variation), others in here.items():
                cells = [loss(paired(by_seed(gst, column), by_seed(others, column))) for column in MODELS.values()]
                names = [dataset, BACKBONES[backbone], f"{100 * sparsity:.0f} %", row_name(method, variation)]
                lines.append([*names, *cells])
    return markdown_table(["data", "backbone", "removed", "GST minus", *MODELS], lines)


def frozen(rows: Sequence[Row], sparsity: float = 0.8) -> str:
    """The dense model on the graphs of all methods: mean differences to all edges by panel, the best mean first."""
    here = [row for row in rows if row.sparsity == sparsity or row.method == "edge-free"]
    every = panels(row for row in here if row.method != "edge-free")
    table: dict[str, dict[tuple[str, str], float]] = {}
    for (method, variation), part in groups(here).items():
        for panel in every:
            values = losses((row for row in part if (row.dataset, row.backbone) == panel), "frozen_test")
            if values:
                table.setdefault(row_name(method, variation), {})[panel] = fmean(values)
    means = {name: fmean(of.values()) for name, of in table.items() if len(of) == len(every)}
    order = sorted(table, key=lambda name: -means.get(name, float("-inf")))
    lines = [[name, *(_signed(table[name].get(panel)) for panel in every), _signed(means.get(name))] for name in order]
    dense = {panel: _dense(here, panel) for panel in every}
    lines.insert(0, ["*dense*", *(f"*{dense[panel]:.1f}*" for panel in every), f"*{fmean(dense.values()):.1f}*"])
    head = [f"{dataset} {BACKBONES[backbone]}" for dataset, backbone in every]
    return markdown_table(["", *head, "mean"], lines)


def _dense(rows: Sequence[Row], panel: tuple[str, str]) -> float:
    return fmean(by_seed((row for row in rows if (row.dataset, row.backbone) == panel), "dense_test").values())


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}".replace("-", "−")
