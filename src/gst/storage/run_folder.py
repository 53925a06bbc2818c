"""Run folders: which files belong to gst, and how one result replaces another atomically.

The tensors of a result are in files named by their hash. ``run.json`` names the current ones and is replaced by one
rename: readers see either the old result or the new one, and so does everybody after a kill at any moment. Outdated
files are removed afterwards.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from gst.base.errors import DamagedError, InputError, MissingError
from gst.base.user_paths import non_empty_path
from gst.storage import files as storage_files
from gst.storage import lock

FORMAT = 3
READABLE = (1, 2, 3)  # 1 has no hashes; in 1 and 2 file names do not contain the hash
RUN = "run.json"
_OLD_NAMES = {"graph": "graph.safetensors", "model": "model.safetensors"}  # in formats 1 and 2
STATES, UNFINISHED, CLEARED = "checkpoint", "checkpoint/run.json", "checkpoint/cleared.json"
SEARCH, SHARED = "runs.json", "shared"
_ATTEMPTS = 100  # to read a result that is being replaced: each fails only if a whole save happens meanwhile
_PART = re.compile(r"(graph|model)-([0-9a-f]{32})\.safetensors")
_STATE = re.compile(r"[\w -]+(\.[ab]|-[0-9a-f]{32})\.safetensors")
_GST_FILE = re.compile(rf"\.gst-.*|{_PART.pattern}")
_MARKERS = {  # files that identify a run of gst, and the objects they must contain
    RUN: {"metrics", "settings"},
    UNFINISHED: {"identity", "words"},
    CLEARED: {"identity", "words"},
    SEARCH: {"identity", "runs"},
}


def claim(folder: str | PathLike[str]) -> Path:
    """The folder, if gst may write to it: it is missing, empty, or a run of gst. Changes nothing."""
    run = non_empty_path(folder)
    try:
        _check(run)
    except OSError as error:
        raise InputError(f"cannot write to {run}: {error.strerror or error}") from None
    return run


def is_state_name(name: str) -> bool:
    """Whether a file in ``checkpoint`` may be a state or a cached value; no other file there is ever deleted."""
    return _STATE.fullmatch(name) is not None


def _check(run: Path) -> None:
    for folder in (run, run / STATES):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"cannot write to {folder}: it is a file, a folder is needed")
    if not run.is_dir():
        return
    markers = [name for name in _MARKERS if (run / name).exists()]
    for name in markers:
        _check_marker(run, name)
    if UNFINISHED not in markers and CLEARED not in markers:
        for path in _inside(run / STATES):
            if is_state_name(path.name):
                raise InputError(f"{path} does not belong to a run of gst: move it away or choose another folder")
    if not markers:
        foreign = [path.name for path in _inside(run) if not _is_leftover(path)]
        if foreign:
            raise InputError(
                f"{run} is neither empty nor a run of gst (it holds {min(foreign)!r}): choose another folder"
            )


def _check_marker(run: Path, name: str) -> None:
    try:
        content = storage_files.read_json(run / name, unsealed=(1,) if name == RUN else ())
    except DamagedError as error:
        raise InputError(f"{error}: move it away or choose another folder") from None
    if not all(isinstance(content.get(key), dict) for key in _MARKERS[name]):
        raise InputError(f"{run / name} does not belong to a run of gst: move it away or choose another folder")


def _is_leftover(path: Path) -> bool:
    """Whether this may be a leftover of a run killed before it had written its first marker."""
    if path.name == STATES and path.is_dir():
        return all(_GST_FILE.fullmatch(inner.name) for inner in _inside(path))
    if path.name == SHARED and path.is_dir():
        return all(_GST_FILE.fullmatch(inner.name) or is_state_name(inner.name) for inner in _inside(path))
    return _GST_FILE.fullmatch(path.name) is not None and not path.is_dir()


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def write(folder: str | PathLike[str], metadata: Mapping[str, Any], parts: Mapping[str, bytes]) -> Path:
    """Writes a result to its folder atomically; until then the one that it replaces stays valid."""
    run = claim(folder)
    hashes = {part: storage_files.digest(content) for part, content in parts.items()}
    with lock.Lock(run, lock.SAVE, wait=True):  # otherwise two writers would remove each other's files
        _remove_outdated(run)
        files = {"files": hashes, "replaced": _unhashed(run)}
        try:
            for part, content in parts.items():
                storage_files.write_bytes(run / _name(part, hashes[part]), content)
            storage_files.write_json(run / RUN, {"format": FORMAT, **metadata, **files})
        finally:
            _remove_outdated(run)
            storage_files.sweep(run)
    return run


def read(folder: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, tuple[Path, bytes]]]:
    """The metadata of a result and the content of its files, all of one save, even while another process saves."""
    run = Path(folder)
    for attempt in range(1, _ATTEMPTS + 1):
        metadata = _read_metadata(run)
        try:
            files = _files(metadata, run)
            return metadata, {part: _content(run / name, digest) for part, (name, digest) in files.items()}
        except MissingError:  # replaced since run.json was read, or simply missing
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError


def _content(path: Path, digest: str | None) -> tuple[Path, bytes]:
    content = storage_files.read_bytes(path)
    if digest is not None and storage_files.digest(content) != digest:
        raise DamagedError(f"{path} is damaged or of another run: its content does not have the recorded hash")
    return path, content


def _read_metadata(run: Path) -> dict[str, Any]:
    if not (run / RUN).is_file():
        raise InputError(f"{run} is not a run folder: it has no {RUN}")
    metadata = storage_files.read_json(run / RUN, unsealed=(1,))
    if metadata.get("format") not in READABLE:
        raise InputError(f"{run / RUN} has format {metadata.get('format')!r}: this gst reads formats 1 to {FORMAT}")
    return metadata


def _files(metadata: Mapping[str, Any], run: Path) -> dict[str, tuple[str, str | None]]:
    """Name and hash of each part. A name is built from its hash, or fixed in old formats, but never read from disk."""
    hashes = metadata.get("files", {})
    if isinstance(hashes, dict) and metadata["format"] < 3:
        return {part: (name, hashes.get(name)) for part, name in _OLD_NAMES.items()}
    if not isinstance(hashes, dict) or not all(_PART.fullmatch(_name(part, hashes.get(part))) for part in _OLD_NAMES):
        raise DamagedError(f"{run / RUN} does not say which files hold its graph and its model")
    return {part: (_name(part, hashes[part]), hashes[part]) for part in _OLD_NAMES}


def _name(part: str, digest: object) -> str:
    return f"{part}-{digest}.safetensors"


def _unhashed(run: Path) -> dict[str, str]:
    """Hashes of the files of a result in an old format: the only evidence later that they are safe to remove."""
    if not (run / RUN).exists() or (metadata := _read_metadata(run))["format"] >= 3:
        return {}
    paths = [run / name for name, _ in _files(metadata, run).values()]
    return {path.name: storage_files.digest(storage_files.read_bytes(path)) for path in paths if path.is_file()}


def _remove_outdated(run: Path) -> None:
    """Removes files that are not part of the current result, if their content has the hash it was written with."""
    with suppress(InputError, OSError):
        metadata: dict[str, Any] = _read_metadata(run) if (run / RUN).exists() else {}
        current = {name for name, _ in _files(metadata, run).values()} if metadata else set()
        replaced = metadata.get("replaced")
        unhashed = {name: replaced.get(name) for name in _OLD_NAMES.values()} if isinstance(replaced, dict) else {}
        for path in run.iterdir():
            match = _PART.fullmatch(path.name)
            digest = match[2] if match else unhashed.get(path.name)
            if digest and path.name not in current and storage_files.digest(storage_files.read_bytes(path)) == digest:
                path.unlink()
