"""Safetensors files mapped into memory: checked against their hash in one pass, then read only where needed."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from gst.base.errors import DamagedError
from gst.base.regular_files import open_regular, require_regular
from gst.storage.files import MAX_JSON

_SEAL = re.compile(rb'"blake2b": ?"([0-9a-f]{32})"')
_CHUNK = 2**22
_DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32, "U8": np.uint8, "BOOL": np.bool_}


def map_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a file written by gst, mapped copy-on-write, and its metadata; the file itself never changes."""
    header = _checked_header(path)
    content = np.memmap(path, np.uint8, "c")
    arrays: dict[str, np.ndarray] = {}
    try:
        described = json.loads(header[8:])
        meta = json.loads(described.pop("__metadata__", {}).get("json", "{}"))
        for name, entry in sorted(described.items()):
            begin, end = (len(header) + int(offset) for offset in entry["data_offsets"])
            dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), [int(size) for size in entry["shape"]]
            whole = min([begin, *shape]) >= 0 and end <= content.size and end - begin == dtype.itemsize * np.prod(shape)
            if not whole:
                raise ValueError(f"{name} does not lie in it")
            arrays[name] = np.asarray(content[begin:end]).view(dtype).reshape(shape)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DamagedError(f"{path} is not a whole safetensors file: {str(error)[:160]}") from None
    if not isinstance(meta, dict):
        raise DamagedError(f"{path} holds a JSON {type(meta).__name__} beside its tensors: an object is needed")
    return arrays, meta


def _checked_header(path: Path) -> bytes:
    """Length and JSON at the start of a file whose content has the hash that it was written with."""
    size = require_regular(path).st_size
    with open_regular(path) as file:
        length = file.read(8)
        claimed = int.from_bytes(length, "little")
        if claimed > min(MAX_JSON, size - 8):
            raise DamagedError(f"{path} is not a whole safetensors file: its header claims {claimed} bytes")
        header = length + file.read(claimed)
        seal = _SEAL.search(header)
        if seal is not None:
            start, end = seal.span(1)
            digest = hashlib.blake2b(header[:start] + b"0" * 32 + header[end:], digest_size=16)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
            if digest.hexdigest().encode() == seal.group(1):
                return header
    raise DamagedError(f"{path} is damaged: its content does not have the hash it was written with")
