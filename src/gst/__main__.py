"""``python -m gst`` is the same as ``gst``."""

from gst.cli import main

main()
