"""Truncated files and flipped bits: refused with one line, never a wrong result, never a crash."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gst.base.errors import InputError


def damaged(content: bytes, cuts: int, flips: int, rng: random.Random) -> Iterator[bytes]:
    for _ in range(cuts):
        yield content[: rng.randrange(len(content))]
    for _ in range(flips):
        i = rng.randrange(len(content))
        yield content[:i] + bytes([content[i] ^ 1 << rng.randrange(8)]) + content[i + 1 :]


def read_damaged(path: Path, read: Callable[[], Any], cuts: int = 20, flips: int = 200, seed: int = 0) -> Counter[str]:
    """Reads damaged versions of a file: how many were refused with one line, accepted, or crashed."""
    whole, rng = path.read_bytes(), random.Random(seed)
    seen: Counter[str] = Counter()
    for content in damaged(whole, cuts, flips, rng):
        path.write_bytes(content)
        try:
            read()
            seen["accepted"] += 1
        except InputError as error:
            seen["refused" if "\n" not in str(error) else "more than one line"] += 1
        except Exception as error:
            seen[f"crashed with {type(error).__name__}"] += 1
    path.write_bytes(whole)
    read()  # the intact file is still accepted
    return seen
