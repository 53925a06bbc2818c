"""A run folder: which of its files are gst's, and how one result takes the place of another in a single step.

The tensors of a result are in files named by their hash. ``run.json`` says which ones count, and one rename replaces
it: whoever reads, and whoever is killed, has the old result or the new one. Files that no longer count go afterwards.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from gst.base.errors import DamagedError, InputError, MissingError
from gst.base.user_paths import named
from gst.storage import files as storage_files
from gst.storage import lock

FORMAT = 3
READABLE = (1, 2, 3)  # 1 has no hashes; 1 and 2 have files without one in their name
RUN = "run.json"
_OLD = {"graph": "graph.safetensors", "model": "model.safetensors"}  # names in formats 1 and 2
STATES, UNFINISHED, CLEARED = "checkpoint", "checkpoint/run.json", "checkpoint/cleared.json"
SEARCH, SHARED = "runs.json", "shared"
_ATTEMPTS = 100  # to read a result that is being replaced: each fails only if a whole save falls into it
_PART = re.compile(r"(graph|model)-([0-9a-f]{32})\.safetensors")
_STATE = re.compile(r"[\w -]+(\.[ab]|-[0-9a-f]{32})\.safetensors")
_OWN = re.compile(rf"\.gst-.*|{_PART.pattern}")
_MARKS = {  # files that tell a run of gst, and what they hold
    RUN: {"metrics", "settings"},
    UNFINISHED: {"identity", "words"},
    CLEARED: {"identity", "words"},
    SEARCH: {"identity", "runs"},
}


def claim(folder: str | PathLike[str]) -> Path:
    """The folder, if gst may write to it: it is not there, empty, or a run of gst. Touches nothing."""
    place = named(folder)
    try:
        _check(place)
    except OSError as error:
        raise InputError(f"cannot write to {place}: {error.strerror or error}") from None
    return place


def is_state_name(name: str) -> bool:
    """Whether a file in ``checkpoint`` may be a state or a cached value: what is deleted by a list is looked at."""
    return _STATE.fullmatch(name) is not None


def _check(place: Path) -> None:
    for folder in (place, place / STATES):
        if folder.exists() and not folder.is_dir():
            raise InputError(f"cannot write to {folder}: it is a file, a folder is needed")
    if not place.is_dir():
        return
    marks = [name for name in _MARKS if (place / name).exists()]
    for name in marks:
        _check_mark(place, name)
    if UNFINISHED not in marks and CLEARED not in marks:
        for path in _inside(place / STATES):
            if is_state_name(path.name):
                raise InputError(f"{path} is not of a run of gst: move it away or choose another folder")
    if not marks:
        foreign = [path.name for path in _inside(place) if not _is_leftover(path)]
        if foreign:
            raise InputError(
                f"{place} is neither empty nor a run of gst (it holds {min(foreign)!r}): choose another folder"
            )


def _check_mark(place: Path, name: str) -> None:
    try:
        content = storage_files.read_json(place / name, unsealed=(1,) if name == RUN else ())
    except DamagedError as error:
        raise InputError(f"{error}: move it away or choose another folder") from None
    if not all(isinstance(content.get(key), dict) for key in _MARKS[name]):
        raise InputError(f"{place / name} is not of a run of gst: move it away or choose another folder")


def _is_leftover(path: Path) -> bool:
    """Whether this may have been left by a run that was killed before it had said what it is."""
    if path.name == STATES and path.is_dir():
        return all(_OWN.fullmatch(inner.name) for inner in _inside(path))
    if path.name == SHARED and path.is_dir():
        return all(_OWN.fullmatch(inner.name) or is_state_name(inner.name) for inner in _inside(path))
    return _OWN.fullmatch(path.name) is not None and not path.is_dir()


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def write(folder: str | PathLike[str], words: Mapping[str, Any], parts: Mapping[str, bytes]) -> Path:
    """Puts a result into its folder in one step; what it replaces counts until then."""
    place = claim(folder)
    hashes = {part: storage_files.digest(content) for part, content in parts.items()}
    with lock.Lock(place, lock.SAVE, wait=True):  # else one writer's files would be leftovers to another
        _remove_others(place)
        files = {"files": hashes, "replaced": _unhashed(place)}
        try:
            for part, content in parts.items():
                storage_files.write_bytes(place / _name(part, hashes[part]), content)
            storage_files.write_json(place / RUN, {"format": FORMAT, **words, **files})
        finally:
            _remove_others(place)
            storage_files.sweep(place)
    return place


def read(folder: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, tuple[Path, bytes]]]:
    """The words of a result and the content of its files, all of one save, also while another process saves."""
    place = Path(folder)
    for attempt in range(1, _ATTEMPTS + 1):
        words = _words(place)
        try:
            return words, {part: _content(place / name, known) for part, (name, known) in _files(words, place).items()}
        except MissingError:  # replaced since run.json was read, if it ever was there
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError


def _content(path: Path, known: str | None) -> tuple[Path, bytes]:
    content = storage_files.read_bytes(path)
    if known is not None and storage_files.digest(content) != known:
        raise DamagedError(f"{path} is damaged or of another run: it does not have the hash that was noted for it")
    return path, content


def _words(place: Path) -> dict[str, Any]:
    if not (place / RUN).is_file():
        raise InputError(f"{place} is not a run folder: it has no {RUN}")
    words = storage_files.read_json(place / RUN, unsealed=(1,))
    if words.get("format") not in READABLE:
        raise InputError(f"{place / RUN} has format {words.get('format')!r}: this gst reads formats 1 to {FORMAT}")
    return words


def _files(words: Mapping[str, Any], place: Path) -> dict[str, tuple[str, str | None]]:
    """Name and hash of each part. A name follows from its hash, or is that of old formats: never from a file."""
    hashes = words.get("files", {})
    if isinstance(hashes, dict) and words["format"] < 3:
        return {part: (name, hashes.get(name)) for part, name in _OLD.items()}
    if not isinstance(hashes, dict) or not all(_PART.fullmatch(_name(part, hashes.get(part))) for part in _OLD):
        raise DamagedError(f"{place / RUN} does not say which files hold its graph and its model")
    return {part: (_name(part, hashes[part]), hashes[part]) for part in _OLD}


def _name(part: str, digest: object) -> str:
    return f"{part}-{digest}.safetensors"


def _unhashed(place: Path) -> dict[str, str]:
    """The files of a result of an old format, with their hashes: the only proof that they are no others."""
    if not (place / RUN).exists() or (words := _words(place))["format"] >= 3:
        return {}
    paths = [place / name for name, _ in _files(words, place).values()]
    return {path.name: storage_files.digest(storage_files.read_bytes(path)) for path in paths if path.is_file()}


def _remove_others(place: Path) -> None:
    """Removes parts of results that count no longer, or never did: what has the hash that it was written with."""
    with suppress(InputError, OSError):
        words: dict[str, Any] = _words(place) if (place / RUN).exists() else {}
        count = {name for name, _ in _files(words, place).values()} if words else set()
        replaced = words.get("replaced")
        unhashed = {name: replaced.get(name) for name in _OLD.values()} if isinstance(replaced, dict) else {}
        for path in place.iterdir():
            match = _PART.fullmatch(path.name)
            known = match[2] if match else unhashed.get(path.name)
            if known and path.name not in count and storage_files.digest(storage_files.read_bytes(path)) == known:
                path.unlink()
