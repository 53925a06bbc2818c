"""Commands with a room of their own; each is registered in :mod:`gst.cli`."""
