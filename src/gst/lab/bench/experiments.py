"""The paper's experiments as data: grids of cells in three profiles."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from gst.base.names import resolve_name
from gst.lab.bench.cells import Cell
from gst.methods import METHODS

TENTHS = tuple(n / 10 for n in range(1, 9))
ROUNDS = (1, 3, 5, 7, 9, 11, 13)  # of lottery tickets, as in the paper's table

EDGE_VALUES = ("ugs", "wd-glt", "mgspar")  # learn one value per edge, …
WHOLE = {"batch": "full", "inductive": False}  # … for which they need the whole graph at once

Variations = tuple[dict[str, Any], ...]
UNVARIED: Variations = ({},)


@dataclass(frozen=True)
class Profile:
    """The size of an experiment. ``small`` and ``large`` name the data sets of the paper's two halves."""

    seeds: int
    small: tuple[str, ...]
    large: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)  # of training; {}: the presets of the data set
    widths: dict[str, int] = field(default_factory=dict)  # hidden, for single data sets
    options: dict[str, dict[str, Any]] = field(default_factory=dict)  # by method, or by "method dataset"
    large_settings: dict[str, Any] | None = None  # instead of ``settings`` on large graphs; {}: the presets
    thin: bool = False  # only the first and the last value of every scale


PROFILES = {
    "smoke": Profile(
        seeds=1,
        small=("digits:nodes=900",),
        large=("digits:nodes=900",),
        settings={"hidden": 16, "lr": 0.01, "anchor_epochs": 4, "sparse_epochs": 4},
        options={
            **{method: {"interval": 2} for method in ("gst", "snip", "set", "snfs", "rigl", "mest")},
            "retrain": {"turns": 1},
            "ugs": {"prune_ratio": 0.3, "round_epochs": 2},
            "wd-glt": {"prune_ratio": 0.3, "round_epochs": 2, "sample_size": 16},
            "mgspar": {"prune_ratio": 0.3, "inner_steps": 2, "meta_epochs": 1},
        },
        thin=True,
    ),
    "quick": Profile(
        seeds=3,
        small=("Cora", "CiteSeer", "PubMed"),
        large=("Computers", "Physics"),
        settings={"hidden": 64, "lr": 0.01, "anchor_epochs": 100, "sparse_epochs": 100},
        widths={"PubMed": 32},
        large_settings={},
        # half as many rounds: an epoch of WD-GLT passes over all nodes twice, and epochs on large graphs take long
        options={
            "wd-glt PubMed": {"prune_ratio": 0.1},
            "ugs Computers": {"prune_ratio": 0.1, "round_epochs": 30},
            "ugs Physics": {"prune_ratio": 0.1, "round_epochs": 30},
        },
    ),
    "paper": Profile(
        seeds=5,
        small=("Cora", "CiteSeer", "PubMed"),
        large=("Computers", "Physics", "ogbn-arxiv", "ogbn-proteins", "ogbn-products"),
    ),
}


@dataclass(frozen=True)
class Grid:
    """All combinations of these values. ``datasets`` selects from the profile's; ``()`` means all of them."""

    size: str  # "small" or "large"
    backbones: tuple[str, ...]
    methods: tuple[str, ...]
    sparsities: tuple[float, ...]
    datasets: tuple[str, ...] = ()
    variations: Variations = UNVARIED
    spectrum: bool = False


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper, and the grids it needs."""

    title: str
    grids: tuple[Grid, ...]


def _grid_of(**scales: tuple[Any, ...]) -> Variations:
    return tuple(dict(zip(scales, values, strict=True)) for values in product(*scales.values()))


# GAT before GIN: it shares no kernels with GCN, so that two workers do not start by compiling the same ones
_ACCURACY = Grid("small", ("gcn", "gat", "gin"), tuple(METHODS), TENTHS)
_PERTURBED = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
_ABLATED: Variations = ({}, {"tune": False}, {"semantic": False}, {"topology": False})

EXPERIMENTS = {
    "fig1": Experiment(
        "UGS against spectral radius: accuracy and spectrum over sparsity",
        (
            Grid(
                "small", ("sage",), ("ugs", "spectral-radius"), TENTHS[:6], datasets=("Cora", "CiteSeer"), spectrum=True
            ),
            Grid(
                "large",
                ("sage",),
                ("ugs", "spectral-radius"),
                TENTHS[:6],
                ("ogbn-proteins",),
                variations=({"layers": 3},),
                spectrum=True,
            ),
        ),
    ),
    "rq1": Experiment(
        "accuracy over sparsity",
        (
            _ACCURACY,
            Grid(
                "large",
                ("sage", "cluster-gcn"),
                ("local-similarity", "dspar", "ugs", "gst", "deploy", "retrain"),
                TENTHS[:6],
            ),
        ),
    ),
    "rq2": Experiment(
        "relative error of the largest and smallest eigenvalues",
        (
            Grid(
                "small",
                ("gcn", "gin"),
                ("gst", "deploy", "retrain", "ugs", "local-similarity"),
                (0.2, 0.5),
                spectrum=True,
            ),
        ),
    ),
    "rq3": Experiment("extreme sparsity, multiplications and latency", (_ACCURACY,)),
    "rq4-defense": Experiment(
        "edges with relocated ends",
        (Grid("small", ("gcn", "gat"), ("gst",), (0.1, 0.2, 0.3), variations=_grid_of(relocated=_PERTURBED)),),
    ),
    "rq4-tickets": Experiment(
        "lottery tickets of UGS, on its graph and on the graph of GST",
        (Grid("small", ("gcn",), ("ugs", "ugs+gst"), (), variations=_grid_of(rounds=ROUNDS)),),
    ),
    "rq5-ablation": Experiment(
        "GST without tuning, without semantics, without topology",
        (Grid("small", ("gcn", "gin"), ("gst",), TENTHS, datasets=("CiteSeer", "Cora"), variations=_ABLATED),),
    ),
    "rq5-interval": Experiment(
        "ΔT, the epochs between two updates",
        (
            Grid(
                "small",
                ("gcn", "gin"),
                ("gst",),
                (0.2, 0.5),
                datasets=("CiteSeer", "Cora"),
                variations=_grid_of(interval=(3, 5, 20, 50)),
            ),
        ),
    ),
    "rq5-schedule": Experiment(
        "τ and κ, how many edges an update exchanges",
        (
            Grid(
                "small",
                ("gcn", "gin", "gat"),
                ("gst",),
                (0.2,),
                datasets=("CiteSeer", "Cora"),
                variations=_grid_of(swap_ratio=(0.1, 0.2, 0.3), decay=(1.0, 2.0, 3.0)),
            ),
        ),
    ),
}


def cells_of(experiment: str, profile: str = "quick", seeds: int | None = None) -> list[Cell]:
    """Every cell of an experiment, data set by data set and seed by seed."""
    name = resolve_name("experiment", experiment, EXPERIMENTS)
    size = resolve_name("profile", profile, PROFILES)
    return [cell for grid in EXPERIMENTS[name].grids for cell in _cells(name, size, grid, seeds)]


def _cells(experiment: str, size: str, grid: Grid, seeds: int | None) -> Iterator[Cell]:
    profile = PROFILES[size]
    available = profile.small if grid.size == "small" else profile.large
    datasets = available if profile.thin else [d for d in available if not grid.datasets or d in grid.datasets]
    scale = _thin if profile.thin else tuple
    for dataset, backbone, seed, method in product(
        datasets, grid.backbones, range(seeds or profile.seeds), grid.methods
    ):
        large = profile.large_settings if grid.size == "large" else None
        settings = dict(profile.settings if large is None else large)
        if dataset in profile.widths:
            settings["hidden"] = profile.widths[dataset]
        parts = method.split("+")
        if parts[0] in EDGE_VALUES and dataset.startswith("ogbn"):
            settings |= WHOLE
        options: dict[str, Any] = {}
        for part in parts:
            options |= profile.options.get(part, {}) | profile.options.get(f"{part} {dataset}", {})
        for variation in scale(grid.variations):
            if "rounds" in variation:  # each round prunes 5 % of the edges and 20 % of the weights
                sparsities: tuple[float, ...] = (round(1 - 0.95 ** variation["rounds"], 4),)
                options = {**options, "prune_ratio": 0.05, "weight_prune_ratio": 0.2}
            else:
                sparsities = scale(grid.sparsities)
            for sparsity in sparsities:
                yield Cell(
                    experiment,
                    size,
                    dataset,
                    backbone,
                    method,
                    sparsity,
                    seed,
                    variation,
                    settings,
                    options,
                    grid.spectrum,
                )


def _thin(scale: tuple[Any, ...]) -> tuple[Any, ...]:
    return scale if len(scale) < 5 else (scale[0], scale[-1])
