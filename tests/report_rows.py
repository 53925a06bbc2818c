"""Made-up rows of every experiment, with known effects."""

from dataclasses import replace

import torch

from graphs import random_graph
from gst.after.structure import facts_of
from gst.base.versions import versions
from gst.graph.edgeset import EdgeSet
from gst.lab.bench.rows import Row

DENSE = {0: 81.0, 1: 82.0, 2: 83.0}
LOSS = {"gst": 4.0, "random": 15.0, "dspar": 11.0, "ugs": 8.0, "local-similarity": 10.0}  # points at 100 %
SPARSITIES = (0.2, 0.4, 0.6)


def row(dataset="Cora", backbone="gcn", method="gst", sparsity=0.4, seed=0, loss=None, variation="", **more) -> Row:
    """A run that loses ``loss`` points at 100 % sparsity, less at less; validation scores one point higher."""
    test = DENSE[seed] - (LOSS.get(method, 12.0) if loss is None else loss) * sparsity
    measured = {
        "edges_total": 1000,
        "edges_kept": 1000 - round(1000 * sparsity),
        "metric": "accuracy",
        "val": test + 1,
        "test": test,
        "retrain_val": test,
        "retrain_test": test - 1,
        "warm_val": test + 0.5,
        "warm_test": test - 0.5,
        "dense_val": DENSE[seed] + 1,
        "dense_test": DENSE[seed],
        "seconds": 3.5,
        "macs_dense": 2e9,
        "macs_sparse": 2e9 - 1e8 * sparsity,
        "macs_paper": 2e9 * (1 - sparsity),
        "dense_ms": 2.0,
        "sparse_ms": 2.0 - sparsity - (0.05 if method == "gst" else 0),
        "code": "0.1.0",
        "command": "gst bench rq1 --profile quick",
        "environment": "Python 3.11",
        "finished": "2026-01-02T03:04:05",
    }
    names = (dataset, backbone, method, sparsity, seed, variation)
    key = more.pop("key", "-".join(map(str, (more.get("experiment", "rq1"), *names))))
    experiment, profile = more.pop("experiment", "rq1"), more.pop("profile", "quick")
    measured["versions"] = versions(dataset, backbone, "full", method)
    return Row(experiment, profile, *names, key=key, **{**measured, **more})


def spectrum(loss: float) -> dict:
    before = [1.0 + n / 10 for n in range(40)]
    after = [value * (1 - loss) for value in before]
    return {"matrix": "laplacian", "top": before, "top_sparse": after, "bottom": before, "bottom_sparse": after}


def study_rows() -> list[Row]:
    """Every kind of row that the page shows."""
    data = random_graph(nodes=120, edges=400)
    edges = EdgeSet.from_data(data)
    facts = {s: facts_of(data, edges, torch.arange(edges.num_edges) >= s * edges.num_edges) for s in SPARSITIES}
    shape = {(m, s): facts[s] | {"spectrum": spectrum(s * LOSS[m] / 20)} for m in LOSS for s in SPARSITIES}
    rows = [
        row(dataset, backbone, method, s, seed, facts=shape[method, s], spectrum_top=s / 4, spectrum_bottom=s / 2)
        for dataset, backbone in (("Cora", "gcn"), ("CiteSeer", "gin"))
        for method in LOSS
        for s in SPARSITIES
        for seed in DENSE
    ]
    rows += [row(method="deploy", sparsity=s, seed=seed, loss=1.0) for s in SPARSITIES for seed in DENSE]
    rows += [
        row("CiteSeer", "gin", sparsity=s, seed=seed, variation=v, loss=loss, experiment="rq5-ablation")
        for v, loss in (("tune=False", 9.0), ("semantic=False", 7.0), ("topology=False", 6.0))
        for s in SPARSITIES
        for seed in DENSE
    ]
    rows += [
        row("CiteSeer", "gcn", sparsity=0.2, seed=seed, variation=v, experiment="rq5")
        for seed in DENSE
        for v in (
            *(f"interval={n}" for n in (3, 5, 20, 50)),
            *(f"swap_ratio={t};decay={k}" for t in (0.1, 0.2, 0.3) for k in (1.0, 2.0, 3.0)),
        )
    ]
    rows += [
        row(
            sparsity=s, seed=seed, variation=f"relocated={m}", dense_test=DENSE[seed] - 30 * m, experiment="rq4-defense"
        )
        for s in (0.1, 0.2)
        for m in (0.0, 0.1, 0.2, 0.4)
        for seed in DENSE
    ]
    rows += [
        row(method=method, sparsity=round(1 - 0.95**n, 4), seed=seed, variation=f"rounds={n}", experiment="rq4-tickets")
        for method in ("ugs", "ugs+gst")
        for n in (1, 3, 5)
        for seed in DENSE
    ]
    rows.append(row("PubMed", "gat", profile="paper", key="single"))
    failed = dict.fromkeys(("val", "test", "retrain_val", "retrain_test", "warm_val", "warm_test"))
    rows.append(row(method="wd-glt", status="failed", reason="MemoryError: 9 GiB are needed", key="failed", **failed))
    return rows


def many_rows(count: int) -> list[Row]:
    """``count`` runs with facts, on nine graphs at nine sparsities."""
    base = study_rows()[0]
    base = replace(base, facts={name: fact for name, fact in base.facts.items() if name != "spectrum"})
    return [
        replace(
            base, dataset=f"data {n % 9}", sparsity=(n // 9 % 9 + 1) / 10, seed=n // 81, key=str(n), command=f"r {n}"
        )
        for n in range(count)
    ]
