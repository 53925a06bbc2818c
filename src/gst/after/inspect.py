from gst.after.structure import homophily, inspect_run

__all__ = ["homophily", "inspect_run"]
