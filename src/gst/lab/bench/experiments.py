"""The paper's experiments as data: grids of cells in three profiles."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from gst.base.names import normalise_name, resolve_name
from gst.lab.bench.cells import MODELS, Cell
from gst.lab.bench.profiles import PROFILES
from gst.methods import METHODS
from gst.train.presets import INDUCTIVE
from gst.train.settings import Value

TENTHS = tuple(n / 10 for n in range(1, 9))
ROUNDS = (1, 3, 5, 7, 9, 11, 13)  # of lottery tickets, as in the paper's table

NEED_ALL = ("ugs", "wd-glt", "mgspar", "neural-sparse")  # give every edge a value, …
WHOLE: dict[str, Value] = {"batch": "full", "inductive": False}  # … for which they need the whole graph at once

# rows that are not of a method, see gst.lab.bench.references, and what stands in their column of sparsities
REFERENCES: dict[str, tuple[float, ...]] = {"edge-free": (1.0,), "ensemble": (0.0,), "drop-edge": (0.2, 0.5)}

Variations = tuple[dict[str, Value], ...]
UNVARIED: Variations = ({},)


@dataclass(frozen=True)
class Grid:
    """All combinations of these values. ``datasets`` selects from the profile's; ``()`` means all of them."""

    size: str  # of which of the profile's data sets: "small", "large", "dense" or "real"
    backbones: tuple[str, ...]
    methods: tuple[str, ...]
    sparsities: tuple[float, ...]
    datasets: tuple[str, ...] = ()
    variations: Variations = UNVARIED
    models: tuple[str, ...] = MODELS
    inductive: bool = False
    spectrum: bool = False


@dataclass(frozen=True)
class Experiment:
    """A figure or table of the paper, and the grids it needs."""

    title: str
    grids: tuple[Grid, ...]


def _grid_of(**scales: tuple[Any, ...]) -> Variations:
    return tuple(dict(zip(scales, values, strict=True)) for values in product(*scales.values()))


# GAT before GIN: it shares no kernels with GCN, so that two workers do not start by compiling the same ones
_STACKS = ("gcn", "gat", "gin")
_ACCURACY = (
    Grid("small", _STACKS, tuple(METHODS), TENTHS),
    *(Grid("small", _STACKS, (reference,), share) for reference, share in REFERENCES.items()),
)
_EXPLAINERS = _grid_of(explainer=("saliency", "integrated-gradients", "shapley"))


def _frozen(size: str, backbones: tuple[str, ...]) -> tuple[Grid, ...]:
    """The dense model on the graphs of all methods; nothing is trained on them."""
    methods = tuple(method for method in METHODS if method != "attribution")
    attentive = tuple(backbone for backbone in backbones if backbone == "gat")
    return (
        Grid(size, backbones, methods, (0.6, 0.8), models=()),
        Grid(size, backbones, ("deploy",), (0.6, 0.8), variations=({"by": "pairs"},), models=()),
        Grid(size, backbones, ("attribution",), (0.6, 0.8), variations=_EXPLAINERS, models=()),
        Grid(size, attentive, ("attribution",), (0.6, 0.8), variations=({"explainer": "attention"},), models=()),
        Grid(size, backbones, ("edge-free",), REFERENCES["edge-free"], models=()),
    )


_DEEPER: Variations = ({}, {"layers": 3, "residual": True, "norm": "layer"})
_SERVED = ("deploy", "retrain", "gst", "local-similarity", "dspar", "random", "k-neighbor")
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
            *_ACCURACY,
            Grid(
                "large",
                ("sage", "cluster-gcn"),
                ("local-similarity", "dspar", "ugs", "gst", "deploy", "retrain"),
                TENTHS[:6],
            ),
        ),
    ),
    "frozen": Experiment(
        "a trained model on the graphs of all methods, its weights as they are",
        (*_frozen("small", _STACKS), *_frozen("dense", ("gcn",)), *_frozen("real", ("gcn",))),
    ),
    "dense": Experiment(
        "dense graphs and unlike neighbours, with dense models of the published level and deeper ones",
        (
            Grid("dense", ("gcn",), ("deploy",), (0.6, 0.8), variations=({"by": "pairs"},)),
            Grid("dense", ("gcn",), _SERVED, (0.6, 0.8), variations=_DEEPER),
            *(Grid("dense", ("gcn",), (name,), REFERENCES[name], (), _DEEPER) for name in ("edge-free", "ensemble")),
        ),
    ),
    "real": Experiment(
        "large real graphs, nodes unseen in training",
        (
            Grid("real", ("sage", "cluster-gcn"), (*_SERVED, "ugs"), TENTHS[:6], inductive=True),
            Grid("real", ("sage", "cluster-gcn"), ("edge-free",), REFERENCES["edge-free"], inductive=True),
        ),
    ),
    "wd-glt": Experiment(
        "WD-GLT as printed, and with the mask descending as in public code",
        (Grid("small", _STACKS, ("wd-glt",), TENTHS, variations=({}, {"ascent": False})),),
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
    "rq3": Experiment("extreme sparsity, multiplications and latency", _ACCURACY),
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
    available: tuple[str, ...] = getattr(profile, grid.size)
    datasets = available if profile.thin else [d for d in available if not grid.datasets or d in grid.datasets]
    scale = _thin if profile.thin else tuple
    for dataset, backbone, seed, method in product(
        datasets, grid.backbones, range(seeds or profile.seeds), grid.methods
    ):
        large = None if grid.size == "small" else profile.large_settings
        settings = dict(profile.settings if large is None else large)
        if dataset in profile.widths:
            settings["hidden"] = profile.widths[dataset]
        parts = method.split("+")
        if grid.inductive:
            settings |= {"inductive": method != "retrain", "batch": INDUCTIVE[normalise_name(backbone)]}
        if parts[0] in NEED_ALL and (dataset.startswith("ogbn") or grid.inductive):
            settings |= WHOLE
        options: dict[str, Value] = {}
        for part in parts:
            of_method = profile.options.get(part, {}) if grid.size == "small" or profile.thin else {}
            options |= of_method | profile.options.get(f"{part} {dataset}", {})
        for variation in scale(grid.variations):
            if "rounds" in variation:  # each round prunes 5 % of the edges and 20 % of the weights
                sparsities: tuple[float, ...] = (round(1 - 0.95 ** int(variation["rounds"]), 4),)
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
                    f"{profile.split}:{seed}" if profile.split and grid.size == "small" else "",
                    grid.models,
                    grid.spectrum,
                )


def _thin(scale: tuple[Any, ...]) -> tuple[Any, ...]:
    return scale if len(scale) < 5 else (scale[0], scale[-1])
