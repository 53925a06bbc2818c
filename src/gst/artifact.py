"""Files: written whole or not at all, read without running code. Tensors as safetensors, the rest as JSON.

Every file carries the hash of its own content, so that what was cut or changed is never taken for the real thing.
"""

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as pack_tensors
from torch import Tensor

from gst.errors import DamagedError, InputError

MOST_JSON = 64 * 2**20  # bytes; no file of words comes near
_SUFFIX = ".tmp"
_SEAL = re.compile(rb'"blake2b": ?"([0-9a-f]{32})"')  # never inside a JSON string: its quotes would be escaped
_BLANK = "0" * 32


def write_bytes(path: Path, content: bytes) -> None:
    """Atomic: a temporary file beside the target, fsync, rename, fsync of the folder."""
    with _one_line(path):
        temporary = _stage(path, content)
        try:
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync(path.parent)


def write_together(files: Mapping[Path, bytes]) -> None:
    """All of these files of one folder or none; the last is the one that makes the others count.

    All are on the disk under temporary names before the first gets its own. Where one cannot get it, those before it
    go back to what they were.
    """
    staged: dict[Path, Path] = {}
    aside: dict[Path, Path] = {}
    placed: list[Path] = []
    try:
        for path, content in files.items():
            with _one_line(path):
                staged[path] = _stage(path, content)
        for path in reversed(list(files)):  # the last first: what is being exchanged does not count
            with _one_line(path):
                if path.exists():
                    path.replace(spare := staged[path].with_suffix(f".old{_SUFFIX}"))
                    aside[path] = spare
        for path in files:
            with _one_line(path):
                staged[path].replace(path)
                placed.append(path)
    except BaseException:
        with suppress(OSError):
            for path in placed:
                path.unlink()
            for path, spare in reversed(aside.items()):
                spare.replace(path)
        raise
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
    for spare in aside.values():
        spare.unlink(missing_ok=True)
    with _one_line(path):
        _sync(path.parent)


def sweep(folder: Path, seconds: float = 0.0) -> None:
    """Removes temporaries that a killed process left, if they are older than this."""
    for path in folder.glob(f".*{_SUFFIX}"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime >= seconds:
                path.unlink()


@contextmanager
def _one_line(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def _stage(path: Path, content: bytes) -> Path:
    """A temporary file with this content beside ``path``, safe on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_SUFFIX)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
        Path(name).chmod(0o644)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    return Path(name)


def _sync(folder: Path) -> None:
    """A rename is only safe from a power cut when the folder is."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def pack(tensors: Mapping[str, Tensor], meta: Mapping[str, Any] | None = None) -> bytes:
    """A safetensors file with words as JSON beside the tensors."""
    packed: dict[str, Tensor] = {}
    storages = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        shared = plain.data_ptr() in storages  # safetensors refuses tensors that share memory, as tied weights do
        packed[name] = plain.clone() if shared else plain
        storages.add(plain.data_ptr())
    return _seal(pack_tensors(packed, {"json": json.dumps(dict(meta or {})), "blake2b": _BLANK}))


def pack_json(content: Mapping[str, Any]) -> bytes:
    text = json.dumps({"blake2b": _BLANK, **content}, indent=2, ensure_ascii=False) + "\n"
    return _seal(text.encode())


def write_tensors(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any] | None = None) -> None:
    write_bytes(path, pack(tensors, meta))


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_bytes(path, pack_json(content))


def read_tensors(
    path: Path, *, sealed: bool = True, known: str | None = None
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and the JSON beside them; a missing, damaged or foreign file gets one clear line.

    ``sealed``: whether the file must carry its hash; ``known``: a hash that the whole file must have.
    """
    content = read_bytes(path)
    if known is not None and digest(content) != known:
        raise DamagedError(f"{path} is damaged or of another run: it does not have the hash that was noted for it")
    try:
        size = int.from_bytes(content[:8], "little")
        # checks sizes and shapes against the file before anything is allocated; gives them in any order
        tensors = dict(sorted(parse_tensors(content).items()))
        words = json.loads(content[8 : 8 + size]).get("__metadata__", {})
        meta = json.loads(words.get("json", "{}"))
    except (SafetensorError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{path} is not a whole safetensors file: {str(error)[:160]}") from None
    if not isinstance(meta, dict):
        raise DamagedError(f"{path} holds a JSON {type(meta).__name__} beside its tensors: an object is needed")
    if sealed:
        _check_seal(path, content)
    return tensors, meta


def read_json(path: Path, unsealed: Container[Any] = ()) -> dict[str, Any]:
    """The object in a JSON file that carries its hash; ``unsealed``: the formats that were written without one."""
    with suppress(OSError):
        if path.stat().st_size > MOST_JSON:
            raise InputError(f"{path} is larger than {MOST_JSON // 2**20} MiB: no JSON file of gst is")
    raw = read_bytes(path)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is not a whole JSON file: {error}") from None
    if not isinstance(content, dict):
        raise DamagedError(f"{path} holds a JSON {type(content).__name__}: an object is needed")
    if content.pop("blake2b", None) is not None or content.get("format") not in unsealed:
        _check_seal(path, raw)
    return content


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _seal(content: bytes) -> bytes:
    """The content with its hash in the place of the blank one."""
    place = _SEAL.search(content)
    assert place is not None
    start, end = place.span(1)
    return content[:start] + digest(content).encode() + content[end:]


def _check_seal(path: Path, content: bytes) -> None:
    place = _SEAL.search(content)
    if place is not None:
        start, end = place.span(1)
        if digest(content[:start] + _BLANK.encode() + content[end:]).encode() == place.group(1):
            return
    raise DamagedError(f"{path} is damaged: its content does not have the hash it was written with")


def flatten(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Names below a prefix, ``{"a": t} -> {"prefix/a": t}``."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def unflatten(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse: all names below a prefix."""
    start = f"{prefix}/"
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
