"""A sample of the record is run again, to the last digit: whoever changes bits must raise a version (gst.base.versions).

After a change that is meant, and the versions that go with it:

    gst bench rq1 --profile smoke --only backbone=gcn,sparsity=0.8 --db runs/again.db --record tests/fixtures/record
"""

import csv
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gst.base.processor import PORTABLE, common
from gst.base.versions import is_current
from gst.lab.bench.load import load_rows
from gst.lab.bench.rows import Row, read_csv
from gst.lab.bench.runner import environment

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "tests" / "fixtures" / "record" / "rq1.csv"
UNTIMED = {"seconds": None, "dense_ms": None, "sparse_ms": None, "finished": "", "code": "", "environment": ""}
EASY = [row for row in read_csv(RECORD) if is_current(row.versions)]


def libraries(words: str) -> list[str]:
    """The versions of libraries that an environment names."""
    return re.findall(r"(?:torch|torch_geometric|numpy|scipy) [\d.]+", words)


def untimed(row: Row) -> Row:
    return replace(row, **UNTIMED)


def fitting(words: str) -> None:
    if not common(Path("/proc/cpuinfo")):
        pytest.skip("this processor does not have the instructions that the record was made with")
    if libraries(words) != libraries(environment()):
        pytest.skip(f"the record was made with {', '.join(libraries(words))}")


def test_the_sample_has_every_method_of_today():
    assert len({(row.method, row.recipe) for row in EASY}) == 17


def test_a_sweep_again_gives_the_digits_of_the_record(tmp_path):
    """All methods on the embedded digits, by the command line, which asks for the instructions all processors have."""
    fitting(EASY[0].environment)
    words = ["bench", "rq1", "--profile", "smoke", "--only", "backbone=gcn,sparsity=0.8", "--quiet", "--workers", "2"]
    surroundings = {name: value for name, value in os.environ.items() if name not in PORTABLE}
    subprocess.run(
        [
            sys.executable,
            "-m",
            "gst",
            *words,
            "--db",
            str(tmp_path / "again.db"),
            "--data-root",
            str(tmp_path / "data"),
        ],
        env={**surroundings, "GST_DATA": str(tmp_path / "data")},
        check=True,
        capture_output=True,
    )
    found = {row.key: untimed(row) for row in load_rows(tmp_path / "again.db").rows}
    for row in EASY:
        assert found[row.key] == untimed(row), (
            f"{row.method} {row.recipe}: raise its version, or mend what changed its bits"
        )


@pytest.mark.slow
@pytest.mark.real
def test_the_readmes_commands_give_its_digits(tmp_path):
    """Cora and seed 0: the same commands, the same scores."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import headline  # noqa: PLC0415
    finally:
        sys.path.pop(0)
    with (ROOT / "results" / "headline.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["dataset"], row["seed"]) == ("Cora", "0")]
    assert rows and all(is_current(row["versions"]) for row in rows)
    for row in rows:
        found = headline.run(row["command"])
        for name in headline.SCORES:
            if row[name]:
                assert round(float(found[name]), 2) == float(row[name]), row["command"]
