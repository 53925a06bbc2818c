"""Answers by node: only what an answer depends on is read and computed, from a graph that may change."""

from gst.inference.serving.engine import Engine, Reads
from gst.inference.serving.make import load_engine, make_engine

__all__ = ["Engine", "Reads", "load_engine", "make_engine"]
