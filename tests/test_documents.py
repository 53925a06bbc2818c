"""The documents show what the record holds: tables and pictures are generated from it, by ``make figures``."""

import shutil
import sys
from pathlib import Path

import pytest

from gst.lab import reproduction

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """A copy of the documents with all tables and pictures generated again."""
    folder = tmp_path_factory.mktemp("copy") / "docs"
    shutil.copytree(DOCS, folder)
    shutil.rmtree(folder / "figures")
    reproduction.main(str(ROOT / "results"), str(folder))
    return folder


def test_tables_are_those_of_the_record(generated):
    for path in sorted(generated.rglob("*.md")):
        name = path.relative_to(generated)
        assert path.read_text() == (DOCS / name).read_text(), f"{name}: make figures"


def test_every_picture_is_there_and_shown(generated):
    drawn = {path.name for path in (generated / "figures").iterdir()}
    assert drawn == {path.name for path in (DOCS / "figures").iterdir()}
    text = "".join(path.read_text() for path in DOCS.rglob("*.md"))
    assert all(f"figures/{name})" in text for name in drawn)


def test_the_readmes_table_is_that_of_its_runs():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import headline  # noqa: PLC0415
    finally:
        sys.path.pop(0)
    table = headline.table(ROOT / "results" / "headline.csv")
    assert table.count("\n") > 2 and table in (ROOT / "README.md").read_text()
