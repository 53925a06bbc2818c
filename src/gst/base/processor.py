"""The same digits on every processor: all libraries use the instructions that any x86-64 of the last decade has.

Left alone, torch, MKL, oneDNN, OpenBLAS, numpy and numba choose code for the processor at hand. Each kind adds in an
order of its own, training amplifies the last bit, and a seed gives 80.8 on one machine and 79.8 on the next.
``gst`` on the command line calls :func:`portable` before it loads any of them; so may a script, as its first step.
"""

import os
import platform
import sys
from pathlib import Path

from gst.base.errors import InputError

FEATURES = ("avx2", "fma")  # what a processor must have
PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_CBWR": "AVX2,STRICT",  # also whatever the alignment of arrays and the number of threads
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe",
}


def portable() -> None:
    """Has every library that is loaded from now on use common instructions only; what the user has set stays.

    To be called before torch is imported. On other processors than these nothing happens: their digits are their own.
    """
    if "torch" in sys.modules:
        raise InputError("gst.portable() comes too late: torch is loaded already; call it before import torch")
    if common(Path("/proc/cpuinfo")):
        for name, value in PORTABLE.items():
            os.environ.setdefault(name, value)


def common(facts: Path) -> bool:
    """Whether this processor has the common instructions."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        words = next(line for line in facts.read_text().splitlines() if line.startswith("flags")).split()
    except (OSError, StopIteration):
        return False
    return all(feature in words for feature in FEATURES)


def is_portable() -> bool:
    """Whether the libraries have been told so."""
    return all(os.environ.get(name) == value for name, value in PORTABLE.items())
