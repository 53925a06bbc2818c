"""Data sets by name, and the user's own graphs. Importing a loader registers its data sets, in this order."""

# isort: off
from gst.data import digits, planetoid, amazon_coauthor, heterophilous, wikipedia, folders, ogb, synthetic, ogb_twins  # noqa: F401
from gst.data import hgb, debian_typed, papers, fraud  # noqa: F401

# isort: on
from gst.data.files import from_files
from gst.data.links import link_split
from gst.data.loading import load
from gst.data.registry import DatasetInfo, datasets

__all__ = ["DatasetInfo", "datasets", "from_files", "link_split", "load"]
