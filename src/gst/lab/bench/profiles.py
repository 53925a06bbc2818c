"""How large the experiments are: three profiles, each with its data sets, settings and seeds."""

from dataclasses import dataclass, field

from gst.train.settings import Value

DENSE = ("Computers", "Physics", "Chameleon", "Squirrel", "Tolokers")
REAL = ("debian", "arxiv-citations")
EXCHANGING = ("gst", "set", "snfs", "rigl", "mest")


@dataclass(frozen=True)
class Profile:
    """The size of an experiment, and its data sets by kind.

    ``small`` and ``large`` are those of the paper's two halves; ``dense`` have many edges or unlike neighbours,
    ``real`` are large graphs of folders.
    """

    seeds: int
    small: tuple[str, ...]
    large: tuple[str, ...]
    dense: tuple[str, ...]
    real: tuple[str, ...]
    split: str = ""  # of small graphs, drawn anew for every seed; "": as shipped
    settings: dict[str, Value] = field(default_factory=dict)  # of training; {}: the presets of the data set
    widths: dict[str, int] = field(default_factory=dict)  # hidden, for single data sets
    options: dict[str, dict[str, Value]] = field(default_factory=dict)  # by method, or by "method dataset"
    large_settings: dict[str, Value] | None = None  # instead of ``settings`` on all but small graphs; {}: the presets
    thin: bool = False  # only the first and the last value of every scale


PROFILES = {
    "smoke": Profile(
        seeds=1,
        small=("digits:nodes=900",),
        large=("digits:nodes=900",),
        dense=("digits:nodes=700",),
        real=("digits:nodes=800",),
        settings={"hidden": 16, "lr": 0.01, "anchor_epochs": 4, "sparse_epochs": 4},
        options={
            **{method: {"interval": 2} for method in EXCHANGING},
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
        dense=DENSE,
        real=REAL,
        settings={"hidden": 64, "lr": 0.01, "anchor_epochs": 100, "sparse_epochs": 100},
        widths={"PubMed": 32},
        large_settings={},
        # 19 exchanges, as the paper has on Cora, in a quarter of its epochs
        # half as many rounds: an epoch of WD-GLT passes over all nodes twice, and epochs on large graphs take long
        options={
            **{method: {"interval": 5} for method in EXCHANGING},
            "wd-glt PubMed": {"prune_ratio": 0.1},
            "ugs Computers": {"prune_ratio": 0.1, "round_epochs": 30},
            "ugs Physics": {"prune_ratio": 0.1, "round_epochs": 30},
        },
    ),
    # hidden 512 and the presets of the data set: the paper's E, D, ΔT and learning rate; its split sizes, five draws
    "paper": Profile(
        seeds=5,
        split="paper",
        small=("Cora", "CiteSeer", "PubMed"),
        large=("Computers", "Physics", "ogbn-arxiv", "ogbn-proteins", "ogbn-products"),
        dense=DENSE,
        real=REAL,
    ),
}
