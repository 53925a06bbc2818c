import io

import pytest
from rich.console import Console

from gst.cli import console
from gst.cli.bench_summary import show

LINE = {"dataset": "Cora", "backbone": "gcn", "method": "random", "recipe": "", "variation": "", "dense_test": 82.0}
LINES = [{**LINE, "sparsity": n / 10, "test": 80.0 + n, "test_sd": 0.5} for n in range(1, 9)]


@pytest.mark.parametrize(("width", "spread"), [(80, False), (140, True)])
def test_no_number_is_cut_where_a_window_is_narrow(monkeypatch, width, spread):
    text = io.StringIO()
    monkeypatch.setattr(console, "out", Console(file=text, width=width, force_terminal=True, color_system=None))
    show("rq1", LINES)
    row = next(line for line in text.getvalue().splitlines() if line.startswith("random"))
    expected = [f"{80 + n}.0" + (" ± 0.5" if spread else "") for n in range(1, 9)]
    assert row.split("  ")[-8:] == expected
    assert ("wider window" in " ".join(text.getvalue().split())) == (not spread)
