"""A run folder of the command line: begun, interrupted, taken up again with the options it was begun with."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError

from gst.base import distributed
from gst.base.errors import InputError, InterruptedRunError
from gst.cli.console import err, say
from gst.data.files import is_split_file
from gst.data.loading import is_path
from gst.storage.checkpoint import BaseCheckpoint, Checkpoint, NoCheckpoint, read_run

FREE = {"resume", "checkpoint_every", "quiet", "as_json"}  # options that may stand beside --resume
MOST_THREADS = 4096


@contextmanager
def run_checkpoint(out: Path | None, every: float, options: Mapping[str, Any]) -> Iterator[BaseCheckpoint]:
    """The state of a run with a folder; when it is interrupted, the line says how to go on."""
    if out is None:
        yield NoCheckpoint()
        return
    with Checkpoint(out, every, _absolute(options)) as checkpoint:
        unfinished = read_run(out)
        if unfinished is not None:
            threads = unfinished["identity"].get("threads")
            if type(threads) is int and 0 < threads <= MOST_THREADS:  # the last bits of a sum depend on it
                torch.set_num_threads(threads)
            if distributed.rank() == 0:
                say(f"gst: resuming the unfinished run in {out}", to=err)
        try:
            yield checkpoint
        except InterruptedRunError as error:
            raise InterruptedRunError(error.code - 128, f"{error}; go on with: gst run --resume {out}") from None


def stored_options(folder: Path, kinds: Mapping[str, Any], given: set[str]) -> dict[str, Any] | None:
    """The options of the unfinished run in a folder, each of its type; None if the run is finished."""
    if too_much := given - FREE:
        raise InputError(f"--resume takes everything from {folder}: leave out --{min(too_much).replace('_', '-')}")
    unfinished = read_run(folder)
    if unfinished is None:
        if not (folder / "run.json").is_file():
            raise InputError(f"{folder} holds no run to resume: begin one with gst run --out {folder}")
        return None
    options = unfinished["words"]
    try:
        return {name: TypeAdapter(kind).validate_python(options[name]) for name, kind in kinds.items()}
    except (KeyError, ValidationError):
        raise InputError(f"the state in {folder} was not begun by gst run: resume it where it was") from None


def _absolute(options: Mapping[str, Any]) -> dict[str, Any]:
    """Fit for JSON, with paths that mean the same wherever the run is resumed."""
    paths = {name for name, value in options.items() if isinstance(value, Path)}
    paths |= {"dataset"} if options["dataset"] and is_path(options["dataset"]) else set()
    paths |= {"split"} if options["split"] and is_split_file(options["split"]) else set()
    return {**options, **{name: str(Path(options[name]).absolute()) for name in paths}}
