"""The page: rows of experiments in, one HTML file out."""

from gst.report.load import Loaded, load_rows
from gst.report.page import render

__all__ = ["Loaded", "load_rows", "render"]
