"""Every setting of GST by its name, its symbol in the paper, and its default."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gst.base.errors import InputError
from gst.base.text import choices, shown
from gst.train.presets import preset

MOST_EPOCHS = 1_000_000


class Settings(BaseModel):
    """Settings of GST. The defaults are for a graph of one's own; :mod:`gst.train.presets` has those of published ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    recipe: Literal["deploy", "retrain", "paper"] = Field(
        "deploy", description="what the sparse graph is for: deploy (a trained model), retrain (fresh ones), or paper"
    )
    anchor_epochs: int = Field(200, ge=1, le=MOST_EPOCHS, description="E: epochs on the full graph")
    sparse_epochs: int = Field(400, ge=1, le=MOST_EPOCHS, description="D: epochs on the sparse graph")
    interval: int = Field(20, ge=1, le=MOST_EPOCHS, description="ΔT: epochs between two updates")
    swap_ratio: float = Field(0.3, ge=0, le=1, description="τ: share of edges the first update exchanges")
    decay: float = Field(1.0, ge=0, le=100, description="κ: how fast that share decreases")
    turns: int = Field(8, ge=0, le=8, description="exchanges of recipe retrain, each with fresh networks")
    matrix: Literal["adjacency", "laplacian", "normalised"] = Field(
        "laplacian", description="whose eigenvalues the topology criterion watches"
    )
    eigenpairs: int | Literal["all"] = Field("all", description='K at both ends of the spectrum, or "all"')
    semantic_weight: float = Field(1.0, ge=0, le=1e6, description="β_s: weight of the semantic criterion")
    topology_weight: float = Field(1.0, ge=0, le=1e6, description="β_t: weight of the topology criterion")
    tune: bool = Field(True, description="ablation: off = one-shot mask, never updated")
    semantic: bool = Field(True, description="ablation: off = topology criterion alone")
    topology: bool = Field(True, description="ablation: off = semantic criterion alone")
    hidden: int = Field(512, ge=1, le=10**9, description="width of the hidden layers")
    layers: int = Field(2, ge=1, le=256, description="number of graph convolutions")
    residual: bool = Field(
        False, description="a learnable skip connection around each layer; sage and cluster-gcn always have it"
    )
    norm: Literal["none", "layer"] = Field("none", description="layer: LayerNorm of what a layer gives to the next one")
    heads: int = Field(8, ge=1, le=2**20, description="attention heads of GAT, which share the width")
    dropout: float = Field(0.5, ge=0, lt=1, description="share of features dropped before each layer")
    lr: float = Field(0.001, gt=0, le=1e3, description="learning rate of Adam")
    weight_decay: float = Field(5e-4, ge=0, le=1e3, description="ℓ2 penalty")
    masker_hidden: int = Field(64, ge=1, le=2**20, description="width of the masker's hidden layer")
    mask_deviation: float = Field(0.01, ge=0, le=0.1, description="standard deviation of the mask around 1")
    setting: Literal["transductive", "inductive"] = Field(
        "transductive", description="inductive: validation and test nodes and their edges are hidden from training"
    )
    batch: Literal["full", "clusters", "neighbors"] = Field(
        "full", description="what a training step sees: all, some clusters, or sampled neighbourhoods"
    )
    loader: Literal["gst", "pyg"] = Field(
        "gst", description="who draws mini-batches: gst, or PyG's ClusterData and NeighborLoader, which need pyg-lib"
    )
    clusters: int = Field(0, ge=0, lt=2**31, description="number of clusters, 0: one every 500 nodes")
    clusters_per_batch: int = Field(16, ge=1, lt=2**31, description="clusters that a step sees")
    batch_nodes: int = Field(1024, ge=1, lt=2**31, description="training nodes of a step with sampled neighbourhoods")
    fanout: int = Field(10, ge=1, lt=2**31, description="neighbours that are drawn of every node and layer")
    seed: int = Field(0, ge=0, lt=2**31, description="seed of all random numbers")
    device: str = Field("cpu", description="torch device")


# settings of the paper's sparse phase: whoever gives one of them wants recipe="paper"
CRITERIA = {"matrix", "eigenpairs", "semantic_weight", "topology_weight", "semantic", "topology"}
UPDATES = {"interval", "swap_ratio", "decay", "tune"}
PAPER_ONLY = UPDATES | CRITERIA


def _fitting(table: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What of a table goes with the recipe that is asked for: unseen nodes are not for all of them."""
    return {k: v for k, v in table.items() if not (k == "setting" and given.get("recipe") == "retrain")}


def make_settings(dataset: str | None, backbone: str, overrides: dict[str, Any]) -> Settings:
    """The settings that go with a data set, the user's own on top; one clear line for a bad one.

    >>> make_settings("Cora", "gcn", {}).recipe, make_settings("Cora", "gcn", {"interval": 5}).recipe
    ('deploy', 'paper')
    """
    given = {key: value for key, value in overrides.items() if value is not None}
    if PAPER_ONLY & given.keys():
        given.setdefault("recipe", "paper")
    if given.get("matrix", "laplacian") != "laplacian":
        given.setdefault("eigenpairs", 20)
    try:
        settings = Settings(**{**_fitting(preset(dataset, backbone), given), **given})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][:1])
        if first["type"] == "extra_forbidden":
            known = choices(Settings.model_fields, name)
            raise InputError(f"unknown setting '{shown(name)}': choose from {known}") from None
        raise InputError(f"setting {name} = {shown(repr(first['input']))}: {first['msg'].lower()}") from None
    if isinstance(settings.eigenpairs, int) and not 1 <= settings.eigenpairs < 2**31:
        raise InputError(f'setting eigenpairs = {settings.eigenpairs}: a positive number or "all" is needed')
    if settings.eigenpairs == "all" and settings.matrix != "laplacian":
        raise InputError(
            f'setting matrix = {settings.matrix!r} needs a number of eigenpairs (say 20): "all" is for laplacian'
        )
    if settings.tune and not (settings.semantic or settings.topology):
        raise InputError("settings semantic and topology are both off: an update needs one of them (or tune off)")
    if settings.setting == "inductive" and settings.recipe == "retrain":
        raise InputError("setting inductive: recipe retrain trains on edges of all nodes; take paper or deploy")
    return settings


# settings that the training on the full graph does not see
_SPARSE_ONLY = {"recipe", "sparse_epochs", "turns", *PAPER_ONLY}


def anchor_settings(settings: Settings) -> dict[str, Any]:
    """The settings an anchor depends on."""
    return {key: value for key, value in settings.model_dump().items() if key not in _SPARSE_ONLY}
