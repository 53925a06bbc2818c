"""Files, written atomically and read without executing code: tensors as safetensors, everything else as JSON.

Every file carries the hash of its content, so that a truncated or altered one is always recognised.
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

MAX_JSON = 16 * 2**20  # bytes; gst's JSON files are far smaller, and parsing takes twenty times the memory
_PREFIX, _SUFFIX = ".gst-", ".tmp"  # of temporary files
_SEAL = re.compile(rb'"blake2b": ?"([0-9a-f]{32})"')  # cannot match inside a JSON string, where quotes are escaped
_BLANK = "0" * 32


def write_bytes(path: Path, content: bytes) -> None:
    """Atomic: a temporary file beside the target, fsync, rename, fsync of the folder."""
    check_file(path)
    with write_errors(path):
        with _staged(path.parent, content) as temporary:
            temporary.replace(path)
        _sync(path.parent)


def sweep(folder: Path) -> None:
    """Removes temporary files whose writers are dead."""
    for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError), path.open("rb+") as file:
            if is_left_behind(file.fileno()):
                path.unlink()


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turns an ``OSError`` into an :class:`InputError` of one line."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


@contextmanager
def _staged(folder: Path, content: bytes) -> Iterator[Path]:
    """A temporary file with this content, synced to disk; removed at the end, with folders created in vain."""
    created = make_folders(folder)
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
        remove_folders(created)


def _temporary(folder: Path) -> tuple[int, Path]:
    while True:
        handle, name = tempfile.mkstemp(dir=folder, prefix=_PREFIX, suffix=_SUFFIX)
        mark_alive(handle)
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)  # another process swept it before it was marked


def _sync(folder: Path) -> None:
    """Syncs a folder: a rename survives a power cut only after that."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def pack(tensors: Mapping[str, Tensor], meta: Mapping[str, Any] | None = None) -> bytes:
    """The bytes of a safetensors file, with metadata as JSON beside the tensors."""
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
    """Tensors and metadata; a missing, damaged or foreign file is refused with one clear line."""
    return parse(read_bytes(path), path, sealed=sealed)


def parse(content: bytes, path: Path, *, sealed: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The same for content already in memory; ``sealed``: whether it must carry its hash."""
    check_memory(len(content), str(path), "a machine with more memory would help")  # the tensors are copies
    try:
        size = int.from_bytes(content[:8], "little")
        if size > MAX_JSON:
            raise ValueError(f"its header claims {size} bytes")
        # safetensors checks sizes and shapes before it allocates; the order of its tensors is undefined
        tensors = dict(sorted(parse_tensors(content).items()))
        header = json.loads(content[8 : 8 + size]).get("__metadata__", {})
        meta = json.loads(header.get("json", "{}"))
    except (SafetensorError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{path} is not a whole safetensors file: {str(error)[:160]}") from None
    if not isinstance(meta, dict):
        raise DamagedError(f"{path} holds a JSON {type(meta).__name__} beside its tensors: an object is needed")
    if sealed:
        _check_seal(path, content)
    return tensors, meta


def read_json(path: Path, unsealed: Container[Any] = ()) -> dict[str, Any]:
    """The object in a JSON file that carries its hash; ``unsealed``: format versions written without one."""
    raw = read_bytes(path, MAX_JSON)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is not a whole JSON file: {error}") from None
    if not isinstance(content, dict):
        raise DamagedError(f"{path} holds a JSON {type(content).__name__}: an object is needed")
    if content.pop("blake2b", None) is not None or content.get("format") not in unsealed:
        _check_seal(path, raw)
    return content


def read_bytes(path: Path, max_bytes: int | None = None) -> bytes:
    """The content of a regular file, if it fits and has at most ``max_bytes``; no more than its initial size."""
    size = check_size(path, max_bytes)
    try:
        with open_regular(path) as file:
            return file.read(size)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _seal(content: bytes) -> bytes:
    """The content with its hash in place of the blank one."""
    match = _SEAL.search(content)
    assert match is not None
    start, end = match.span(1)
    return content[:start] + digest(content).encode() + content[end:]


def _check_seal(path: Path, content: bytes) -> None:
    match = _SEAL.search(content)
    if match is not None:
        start, end = match.span(1)
        if digest(content[:start] + _BLANK.encode() + content[end:]).encode() == match.group(1):
            return
    raise DamagedError(f"{path} is damaged: its content does not have the hash it was written with")


def flatten(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Prefixes all names: ``{"a": t} -> {"prefix/a": t}``."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def unflatten(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of :func:`flatten`; other names are left out."""
    start = f"{prefix}/"
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
