"""Processes that add rows to one record at the same time."""

import os
from pathlib import Path

from gst.lab.bench.record import write_record
from gst.lab.bench.rows import Row, read_csv


def record_together(folder: Path, processes: int, rounds: int) -> dict[str, int]:
    """Each adds one row per round; how many rows are missing from the record in the end."""
    children = []
    for process in range(processes):
        child = os.fork()
        if child == 0:
            try:
                for number in range(rounds):
                    key = f"{process}-{number}"
                    write_record(folder, [Row("rq1", "quick", "Cora", "gcn", "scan", 0.1, number, key=key)])
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    failed = sum(os.waitpid(child, 0)[1] != 0 for child in children)
    recorded = {row.key for row in read_csv(folder / "rq1.csv")}
    leftovers = sum(path.name != "rq1.csv" for path in folder.iterdir())
    return {"rows": processes * rounds, "lost": processes * rounds - len(recorded), "failed": failed, "left": leftovers}
