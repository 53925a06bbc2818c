"""The page's own style sheets, scripts and markers."""

from importlib import resources


def read(name: str) -> str:
    return (resources.files("gst.lab.report") / "templates" / name).read_text(encoding="utf-8")
