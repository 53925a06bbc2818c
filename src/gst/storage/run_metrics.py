"""Validation of the metrics in ``run.json``: their types and ranges."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gst.base.errors import InputError
from gst.base.text import shown

SCORES = [
    f"{model}{split}" for model in ("", "dense_", "retrain_", "distilled_", "edgeless_") for split in ("val", "test")
]
_CHECKED = ConfigDict(strict=True, allow_inf_nan=False, extra="allow")

Share = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Positive = Annotated[float, Field(ge=0, le=1e15)]
Text = Annotated[str, Field(max_length=4096)]


class _Inference(BaseModel):
    model_config = _CHECKED

    dense_ms: Positive
    sparse_ms: Positive
    speedup: Positive
    repeats: Count


class _Metrics(BaseModel):
    model_config = _CHECKED

    dataset: Text
    method: Text
    options: dict[str, Any] = Field(default_factory=dict)
    backbone: Text
    seed: Count
    sparsity: Share
    edges_total: Count
    edges_kept: Count
    directed: bool
    by: Literal["pairs", "arcs"] | None = None
    updates: Count | None = None
    metric: Literal["accuracy", "rocauc", "f1"] | None
    scores: dict[str, Score]
    seconds: dict[str, Positive] = Field(default_factory=dict)
    inference: _Inference | None = None
    out: Text | None = None


def check_metrics(metrics: dict[str, Any], path: Path) -> None:
    """Refuses the first value that is missing, of the wrong type or out of range, with one line."""
    try:
        checked = _Metrics(
            **{**metrics, "scores": {name: metrics[name] for name in SCORES if metrics.get(name) is not None}}
        )
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(shown(part, 40) for part in first["loc"] if part != "scores")
        value = "" if first["type"] == "missing" else f" = {shown(first['input'])}"
        raise InputError(f"{path}: metrics.{name}{value}: {first['msg'].lower()}") from None
    if checked.edges_kept > checked.edges_total:
        raise InputError(
            f"{path}: metrics.edges_kept = {checked.edges_kept}: more than the {checked.edges_total} edges in all"
        )
