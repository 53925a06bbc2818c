"""Runs a sample of the record again, to the last digit: a change of bits requires a new version (gst.base.versions).

After an intended change and the new versions:

    MKL_CBWR=COMPATIBLE gst bench rq1 --profile smoke --only backbone=gcn,sparsity=0.8 --db runs/again.db \
        --record tests/fixtures/record

MKL honours the instructions that gst asks for on Intel processors only; with ``COMPATIBLE`` it gives the same bits on
those of other vendors, more slowly.
"""

import csv
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gst.base.processor import PORTABLE, has_features
from gst.base.versions import is_current
from gst.lab.bench.load import load_rows
from gst.lab.bench.rows import Row, read_csv
from gst.lab.bench.runner import environment
from gst.methods import METHODS

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "tests" / "fixtures" / "record" / "rq1.csv"
UNTIMED = {"seconds": None, "dense_ms": None, "sparse_ms": None, "finished": "", "code": "", "environment": ""}
SAMPLE = [row for row in read_csv(RECORD) if is_current(row.versions)]


def libraries(machine: str) -> list[str]:
    """The libraries of an environment, with their versions."""
    return re.findall(r"(?:torch|torch_geometric|numpy|scipy) [\d.]+", machine)


def untimed(row: Row) -> Row:
    return replace(row, **UNTIMED)


def skip_unless_comparable(recorded: str) -> None:
    if not has_features(Path("/proc/cpuinfo")):
        pytest.skip("this processor does not have the instructions that the record was made with")
    if libraries(recorded) != libraries(environment()):
        pytest.skip(f"the record was made with {', '.join(libraries(recorded))}")


def test_the_sample_has_every_method():
    assert {row.method for row in SAMPLE} == set(METHODS)


def test_a_new_sweep_gives_the_digits_of_the_record(tmp_path):
    """All methods on the embedded digits, by the command line, which uses instructions that all processors have."""
    skip_unless_comparable(SAMPLE[0].environment)
    command = ["bench", "rq1", "--profile", "smoke", "--only", "backbone=gcn,sparsity=0.8", "--quiet", "--workers", "2"]
    inherited = {name: value for name, value in os.environ.items() if name not in PORTABLE}
    subprocess.run(
        [
            sys.executable,
            "-m",
            "gst",
            *command,
            "--db",
            str(tmp_path / "again.db"),
            "--data-root",
            str(tmp_path / "data"),
        ],
        env={**inherited, "GST_DATA": str(tmp_path / "data"), "MKL_CBWR": "COMPATIBLE"},
        check=True,
        capture_output=True,
    )
    rows = {row.key: untimed(row) for row in load_rows(tmp_path / "again.db").rows}
    for row in SAMPLE:
        assert rows[row.key] == untimed(row), f"{row.method}: raise its version, or fix what changed its bits"


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
        measured = headline.run(row["command"])
        for name in headline.SCORES:
            if row[name]:
                assert round(float(measured[name]), 2) == float(row[name]), row["command"]
