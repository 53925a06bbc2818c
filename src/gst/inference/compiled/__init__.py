"""Inference at the speed of the kept edges: compiled models."""

from gst.inference.compiled.model import Compiled, compile_model
from gst.inference.compiled.stored import load_compiled, save_compiled

__all__ = ["Compiled", "compile_model", "load_compiled", "save_compiled"]
