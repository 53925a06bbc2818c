"""What training, batches and the masker need to know: each a frozen config, with bounds and defaults."""

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gst.base.errors import InputError
from gst.base.text import choices, shown

MOST_EPOCHS = 1_000_000
Value = bool | int | float | str  # of one setting by its name, before a config checks it


class Config(BaseModel):
    """Settings that belong together: validated, complete and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


C = TypeVar("C", bound=Config)


class Training(Config):
    """How networks are built and trained. :mod:`gst.train.presets` has the values that go with published data sets."""

    anchor_epochs: int = Field(default=200, ge=1, le=MOST_EPOCHS, description="E: epochs on the full graph")
    sparse_epochs: int = Field(default=400, ge=1, le=MOST_EPOCHS, description="D: epochs on the sparse graph")
    hidden: int = Field(default=512, ge=1, le=10**9, description="width of the hidden layers")
    layers: int = Field(default=2, ge=1, le=256, description="number of graph convolutions")
    residual: bool = Field(
        default=False, description="a learnable skip connection around each layer; sage and cluster-gcn always have one"
    )
    norm: Literal["none", "layer"] = Field(default="none", description="layer: LayerNorm between two layers")
    heads: int = Field(default=8, ge=1, le=2**20, description="attention heads of GAT, which share the width")
    dropout: float = Field(default=0.5, ge=0, lt=1, description="share of features dropped before each layer")
    lr: float = Field(default=0.001, gt=0, le=1e3, description="learning rate of Adam")
    weight_decay: float = Field(default=5e-4, ge=0, le=1e3, description="ℓ2 penalty")
    inductive: bool = Field(default=False, description="hide validation and test nodes and their edges from training")
    decoder: Literal["dot", "mlp"] = Field(
        default="dot", description="how links are scored: the dot product of both ends' embeddings, or a perceptron"
    )
    seed: int = Field(default=0, ge=0, lt=2**31, description="seed of all random numbers")
    device: str = Field(default="cpu", description="torch device")


class Batching(Config):
    """What one training step sees."""

    batch: Literal["full", "clusters", "neighbors"] = Field(
        default="full",
        description="what a training step sees: the whole graph, some clusters, or sampled neighbourhoods",
    )
    loader: Literal["gst", "pyg"] = Field(
        default="gst",
        description="who draws mini-batches: gst, or PyG's ClusterData and NeighborLoader, which need pyg-lib",
    )
    clusters: int = Field(default=0, ge=0, lt=2**31, description="number of clusters, 0: one per 500 nodes")
    clusters_per_batch: int = Field(default=16, ge=1, lt=2**31, description="clusters in a step")
    batch_nodes: int = Field(
        default=1024, ge=1, lt=2**31, description="training nodes in a step with sampled neighbourhoods"
    )
    fanout: int = Field(default=10, ge=1, lt=2**31, description="neighbours drawn per node and layer")


class Masking(Config):
    """The masker Ψ, which scores edges while the anchor trains."""

    masker_hidden: int = Field(default=64, ge=1, le=2**20, description="width of the masker's hidden layer")
    mask_deviation: float = Field(default=0.01, ge=0, le=0.1, description="standard deviation of the mask around 1")


class Updates(Config):
    """When and how many edges dynamic sparse training exchanges."""

    interval: int = Field(default=20, ge=1, le=MOST_EPOCHS, description="ΔT: epochs between two updates")
    swap_ratio: float = Field(default=0.3, ge=0, le=1, description="τ: share of edges the first update exchanges")
    decay: float = Field(default=1.0, ge=0, le=100, description="κ: how fast that share decreases")
    output: Literal["last", "best"] = Field(
        default="last", description="which graph is returned: after the last update, or of the best validation epoch"
    )
    tune: bool = Field(default=True, description="ablation: off = the one-shot mask, never updated")


def make_config(config: type[C], *layers: Mapping[str, Any]) -> C:
    """A config from layers of values, the later ones winning; None stands for "not given".

    Names that the config does not have are ignored: a layer may hold the values of several configs.

    >>> make_config(Updates, {"interval": 5, "lr": 0.01}, {"decay": None, "swap_ratio": 0.5}).interval
    5
    """
    values: dict[str, Any] = {}
    for layer in layers:
        values |= {key: layer[key] for key in config.model_fields if layer.get(key) is not None}
    try:
        return config(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][:1])
        raise InputError(f"{name} = {shown(repr(first['input']))}: {first['msg'].lower()}") from None


def check_names(kind: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """One line for the first argument that nobody knows."""
    for name in given:
        if name not in known:
            raise InputError(f"unknown argument '{shown(name)}' of {kind}: choose from {choices(known, name)}")
