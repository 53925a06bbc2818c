"""The command line starts quickly: what needs no graph loads no library for graphs."""

import subprocess
import sys

import pytest

import gst
from gst.cli import main as cli

HEAVY = ("torch", "torch_geometric", "numpy", "scipy", "numba", "pandas")
PROGRAM = f"""
import sys
from gst.__main__ import main
try:
    main()
except SystemExit as stopped:
    print(stopped.code, [name for name in {HEAVY} if name in sys.modules], file=sys.stderr)
"""


def started(*words):
    return subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_help_and_version_load_no_library_for_graphs(words):
    done = started(*words)
    assert done.stderr == "0 []\n"
    assert done.stdout.startswith(f"gst {gst.__version__}\n" if words == ["--version"] else "Usage: ")


def test_an_unknown_command_loads_none_either():
    done = started("serch")
    assert done.stderr.splitlines()[-1] == "2 []" and "unknown command 'serch': choose from run, " in done.stderr


def test_importing_gst_loads_no_library_for_graphs():
    program = f"import gst, sys; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name, call):
    _, text = cli.COMMANDS[name]
    assert cli.load_command(name).help == text
    assert f"  {name} " in call("--help")[1] and " ".join(text.split()) in " ".join(call("--help")[1].split())
