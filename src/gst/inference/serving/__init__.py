"""Answers by node: only what an answer depends on is read and computed, from a graph that may change."""

from gst.inference.serving.engine import Engine, Reads
from gst.inference.serving.make import Decisions, load_engine, make_engine

__all__ = ["Decisions", "Engine", "Reads", "load_engine", "make_engine"]
