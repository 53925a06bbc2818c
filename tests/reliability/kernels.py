"""Caches of compiled kernels that are truncated, emptied or altered: they count as absent and are written anew."""

import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

USE = """
from gst.graph.select import top_k
import torch
print(top_k(torch.arange(100).double().sin(), 10).nonzero().flatten().tolist())
"""


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".nbi", ".nbc"))


def emptied(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def cut(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(1, len(content))])


def flipped(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def rubbish(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(200))


BAD = ("failed", "different", "not_rewritten")
HARM: list[Callable[[Path, random.Random], None]] = [emptied, cut, flipped, rubbish]


def start(cache: Path) -> subprocess.CompletedProcess[str]:
    """A process that uses kernels of gst with their cache in this folder."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=False, env=environment)


def damage_caches(root: Path, seed: int = 0) -> dict[str, int]:
    """Starts after every kind of damage, to all indices and to all code in turn; how many failed, and how."""
    rng, seen = random.Random(seed), Counter({"starts": 0, "failed": 0, "different": 0, "not_rewritten": 0})
    expected = start(root)
    assert expected.returncode == 0 and files(root), expected.stderr
    for harm in HARM:
        for suffix in (".nbi", ".nbc"):
            harmed = [path for path in files(root) if path.suffix == suffix]
            for path in harmed:
                harm(path, rng)
            left = {path: path.read_bytes() for path in harmed}
            again = start(root)
            seen["starts"] += 1
            seen["failed"] += again.returncode != 0
            seen["different"] += again.stdout != expected.stdout
            seen["not_rewritten"] += any(path.read_bytes() == content for path, content in left.items())
    return dict(seen)
