"""The same digits on every processor: all libraries are limited to instructions of any x86-64 of the last decade.

By default torch, MKL, oneDNN, OpenBLAS, numpy and numba choose code for the processor they run on. Each variant sums
in a different order, training amplifies the last bit, and one seed gives 80.8 on one machine and 79.8 on another.
The ``gst`` command calls :func:`portable` before it loads any of them; a script can do so as its first step.
"""

import os
import platform
import sys
from pathlib import Path

from gst.base.errors import InputError

FEATURES = ("avx2", "fma")  # required of the processor
PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_CBWR": "AVX2,STRICT",  # strict: independent of array alignment and thread count, too
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+sse4.2,+popcnt,+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe",
}


def portable() -> None:
    """Limits every library loaded from now on to common instructions; variables that the user has set stay.

    Must be called before torch is imported. On a processor without these instructions nothing happens.

    >>> import gst
    >>> import torch
    >>> try:
    ...     gst.portable()
    ... except gst.InputError as error:
    ...     print(error)
    gst.portable() comes too late: torch is loaded already; call it before import torch
    """
    if "torch" in sys.modules:
        raise InputError("gst.portable() comes too late: torch is loaded already; call it before import torch")
    if has_features(Path("/proc/cpuinfo")):
        for name, value in PORTABLE.items():
            os.environ.setdefault(name, value)


def has_features(cpuinfo: Path) -> bool:
    """Whether this processor has the common instructions, according to ``/proc/cpuinfo``."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        flags = next(line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")).split()
    except (OSError, StopIteration):
        return False
    return all(feature in flags for feature in FEATURES)
