"""Files: written whole or not at all, read without running code. Tensors as safetensors, the rest as JSON."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as parse_tensors
from safetensors.torch import save as pack_tensors
from torch import Tensor

from gst.errors import InputError


def write_bytes(path: Path, content: bytes) -> None:
    """Atomic: a temporary file beside the target, fsync, rename. One clear line where the folder cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_tensors(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any] | None = None) -> None:
    packed = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_bytes(path, pack_tensors(packed, {"json": json.dumps(dict(meta or {}))}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and the JSON beside them; a missing, truncated or foreign file gets one clear line."""
    content = read_bytes(path)
    try:
        tensors = parse_tensors(content)
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        meta = json.loads(header.get("__metadata__", {}).get("json", "{}"))
    except (SafetensorError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is not a whole safetensors file: {error}") from None
    return tensors, meta


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_bytes(path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a whole JSON file: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} holds a JSON {type(content).__name__}: an object is needed")
    return content


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


def flatten(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Names below a prefix, ``{"a": t} -> {"prefix/a": t}``."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def unflatten(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse: all names below a prefix."""
    start = f"{prefix}/"
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
