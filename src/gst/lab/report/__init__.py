"""Turns rows of experiments into one HTML page."""

from gst.lab.report.page import render

__all__ = ["render"]
