import io

import pytest
from rich.console import Console

from gst.cli import console
from gst.cli.bench_summary import show
from gst.lab.bench.rows import Row

ROWS = [
    Row("rq1", "quick", "Cora", "gcn", "random", n / 10, seed, test=80.0 + n + shift, dense_test=82.0)
    for n in range(1, 9)
    for seed, shift in enumerate((-0.5, 0.0, 0.5))
]


@pytest.mark.parametrize(("width", "spread"), [(80, False), (140, True)])
def test_no_number_is_truncated_in_a_narrow_window(monkeypatch, width, spread):
    text = io.StringIO()
    monkeypatch.setattr(console, "out", Console(file=text, width=width, force_terminal=True, color_system=None))
    show("rq1", ROWS)
    row = next(line for line in text.getvalue().splitlines() if line.startswith("random"))
    expected = [f"{80 + n}.0" + (" ± 0.5" if spread else "") for n in range(1, 9)]
    assert row.split("  ")[-8:] == expected
    assert ("wider window" in " ".join(text.getvalue().split())) == (not spread)
