"""Data sets by name, and the user's own graphs."""

from gst.data.files import from_files
from gst.data.info import DatasetInfo
from gst.data.loading import load
from gst.data.registry import datasets

__all__ = ["DatasetInfo", "datasets", "from_files", "load"]
