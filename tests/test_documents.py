"""The documents say what the record says: tables and pictures are made from it, by ``make figures``."""

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Documents and pictures made anew, elsewhere."""
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import reproduction  # noqa: PLC0415
    finally:
        sys.path.pop(0)
    folder = tmp_path_factory.mktemp("docs")
    copies = [shutil.copy(ROOT / name, folder) for name in reproduction.DOCUMENTS]
    reproduction.main(str(ROOT / "results"), *map(str, copies))
    return folder


def test_tables_are_those_of_the_record(made):
    for path in sorted(made.glob("*.md")):
        assert path.read_text() == (ROOT / "docs" / path.name).read_text(), f"{path.name}: make figures"


def test_every_picture_is_there_and_shown(made):
    drawn = {path.name for path in (made / "figures").iterdir()}
    assert drawn == {path.name for path in (ROOT / "docs" / "figures").iterdir()}
    text = (ROOT / "docs" / "reproduction.md").read_text()
    assert all(f"(figures/{name})" in text for name in drawn)


def test_the_readmes_table_is_that_of_its_runs():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import headline  # noqa: PLC0415
    finally:
        sys.path.pop(0)
    wanted = headline.table(ROOT / "results" / "headline.csv")
    assert wanted.count("\n") > 2 and wanted in (ROOT / "README.md").read_text()
