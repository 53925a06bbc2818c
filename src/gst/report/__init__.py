"""The page: rows of experiments in, one HTML file out."""

from gst.report.page import render

__all__ = ["render"]
