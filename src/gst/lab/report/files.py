"""The page's style sheets, scripts and markers."""

from importlib import resources


def read_template(name: str) -> str:
    return (resources.files("gst.lab.report") / "templates" / name).read_text(encoding="utf-8")
