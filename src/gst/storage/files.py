"""Files: written whole or not at all, read without running code. Tensors as safetensors, the rest as JSON.

Every file carries the hash of its own content, so that what was cut or changed is never taken for the real thing.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as pack_tensors
from torch import Tensor

from gst.base.errors import DamagedError, InputError
from gst.base.memory import check_memory, check_size
from gst.base.regular_files import open_regular
from gst.base.user_paths import check_file, make_folders, remove_folders
from gst.storage.lock import is_left_behind, mark_alive

MOST_JSON = 16 * 2**20  # bytes; no file of words comes near, and a parsed one takes twenty times as many
_PREFIX, _SUFFIX = ".gst-", ".tmp"  # of temporaries
_SEAL = re.compile(rb'"blake2b": ?"([0-9a-f]{32})"')  # never inside a JSON string: its quotes would be escaped
_BLANK = "0" * 32


def write_bytes(path: Path, content: bytes) -> None:
    """Atomic: a temporary file beside the target, fsync, rename, fsync of the folder."""
    check_file(path)
    with one_line(path):
        with _staged(path.parent, content) as temporary:
            temporary.replace(path)
        _sync(path.parent)


def sweep(folder: Path) -> None:
    """Removes temporaries whose writers are dead."""
    for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError), path.open("rb+") as file:
            if is_left_behind(file.fileno()):
                path.unlink()


@contextmanager
def one_line(path: Path) -> Iterator[None]:
    """What the disk refuses, as one line."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


@contextmanager
def _staged(folder: Path, content: bytes) -> Iterator[Path]:
    """A temporary file with this content, safe on the disk; goes at the end, with a folder made for it in vain."""
    made = make_folders(folder)
    handle, temporary = _temporary(folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
        temporary.chmod(0o644)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
        os.close(handle)
        remove_folders(made)


def _temporary(folder: Path) -> tuple[int, Path]:
    while True:
        handle, name = tempfile.mkstemp(dir=folder, prefix=_PREFIX, suffix=_SUFFIX)
        mark_alive(handle)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # swept before it was marked


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


def read_tensors(path: Path, *, sealed: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and the JSON beside them; a missing, damaged or foreign file gets one clear line."""
    return parse(read_bytes(path), path, sealed=sealed)


def parse(content: bytes, path: Path, *, sealed: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The same for what was read already; ``sealed``: whether it must carry its hash."""
    check_memory(len(content), str(path), "a machine with more memory would help")  # the tensors are copies
    try:
        size = int.from_bytes(content[:8], "little")
        if size > MOST_JSON:
            raise ValueError(f"its header claims {size} bytes")
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
    raw = read_bytes(path, MOST_JSON)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is not a whole JSON file: {error}") from None
    if not isinstance(content, dict):
        raise DamagedError(f"{path} holds a JSON {type(content).__name__}: an object is needed")
    if content.pop("blake2b", None) is not None or content.get("format") not in unsealed:
        _check_seal(path, raw)
    return content


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """A regular file whole, if it has at most ``most`` bytes and fits; never more than the size it has at first."""
    size = check_size(path, most)
    try:
        with open_regular(path) as file:
            return file.read(size)
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
