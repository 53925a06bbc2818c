"""The page: rows of experiments in, one HTML file out."""

from gst.lab.report.page import render

__all__ = ["render"]
