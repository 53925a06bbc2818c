"""Executes the tutorials and writes them as notebooks with outputs: python tools/tutorials.py [NAME…]

The sources are ``tutorials/*.py`` (jupytext, percent format). A notebook holds no execution times and no numbers of
this machine's making beyond those that its cells print, and its pictures are small PNGs.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent.parent / "tutorials"
LIMIT = 600  # seconds for a cell
LARGEST = 400_000  # bytes of a notebook
SETUP = "%config InlineBackend.figure_formats = ['png']\n%config InlineBackend.rc = {'figure.dpi': 70}"


def source(name: str) -> nbformat.NotebookNode:
    """The notebook without outputs; cells have the same names every time."""
    notebook = jupytext.read(FOLDER / f"{name}.py")
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell["metadata"] = {}
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def execute(name: str) -> nbformat.NotebookNode:
    """The notebook with its outputs; an error in a cell is an error here."""
    notebook = source(name)
    hidden = nbformat.v4.new_code_cell(SETUP, id="setup")
    notebook.cells.insert(0, hidden)
    NotebookClient(notebook, timeout=LIMIT, kernel_name="python3", record_timing=False).execute()
    del notebook.cells[0]
    count = 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                if "execution_count" in output:
                    output["execution_count"] = count
    notebook.metadata = source(name).metadata
    return notebook


def names() -> list[str]:
    """All tutorials."""
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="which, else all")
    parser.add_argument("--check", action="store_true", help="execute, write nothing")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in arguments.name or names():
        start = time.perf_counter()
        notebook = execute(name)
        text = nbformat.writes(notebook) + "\n"
        if len(text) > LARGEST:
            raise SystemExit(
                f"{name}: {len(text):,} bytes are too many for a notebook: print less, or smaller pictures"
            )
        if not arguments.check:
            (FOLDER / f"{name}.ipynb").write_text(text, encoding="utf-8")
        print(f"{name}: {time.perf_counter() - start:.0f} s, {len(text):,} bytes", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
