"""Models compiled for inference on a sparse graph."""

from gst.inference.compiled.compile import compile_model
from gst.inference.compiled.model import Compiled, load_compiled

__all__ = ["Compiled", "compile_model", "load_compiled"]
