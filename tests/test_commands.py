"""The commands and the Python of README, documents and tutorials: all that the parsers can tell without running hours.

Command lines go through the real parser of their command, so that an option that is gone or of another type fails
here; scripts and targets of make have to be there; every ``gst.name`` has to exist. ``make tutorials`` and the tests of
the examples run what is short.
"""

import ast
import re
import shlex
import textwrap
from pathlib import Path

import pytest
from typer.exceptions import TyperException

import gst
from gst.cli.main import COMMANDS, load_command

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [*DOCUMENTS, *sorted(ROOT.glob("tutorials/*.py"))]
BLOCK = re.compile(r"^[ #]*```(\w*)[^\n]*\n(.*?)^[ #]*```", re.MULTILINE | re.DOTALL)
LAUNCHER = re.compile(r"^torchrun [^g]*-m (?=gst)|^(python|python3) -m (?=gst)")


def blocks(language):
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if match[1] in language:
                lines = textwrap.dedent(match[2]).splitlines()
                if path.suffix == ".py":
                    lines = [re.sub(r"^#( |$)", "", line) for line in lines]
                yield path.relative_to(ROOT).as_posix(), "\n".join(lines)


def commands():
    """Every line that a reader may type, without settings of the environment before it."""
    for name, text in blocks(("bash", "", "sh")):
        for line in text.replace("\\\n", " ").splitlines():
            for part in line.split(" # ")[0].split(";"):
                command = re.sub(r"^([A-Z_]+=\S+ +)+", "", part.strip())
                if re.match(r"(gst|make|python3?|torchrun|pip) ", command) and "…" not in command:
                    yield name, LAUNCHER.sub("", command).rstrip()


ALL = sorted(set(commands()))


def test_there_are_commands_to_check():
    assert len([c for _, c in ALL if c.startswith("gst ")]) > 20


@pytest.mark.parametrize(("page", "command"), [c for c in ALL if c[1].startswith("gst ")])
def test_a_command_line_is_one_that_gst_takes(page, command):
    words = shlex.split(re.sub(r"\[|\]", "", command), comments=True)[1:]
    words = [word for word in words if word not in ("&", "|", ">")]
    if words in (["--version"], ["--help"]):
        return
    assert words[0] in COMMANDS, f"{page}: {command}"
    try:
        load_command(words[0]).make_context(words[0], words[1:])
    except TyperException as error:
        pytest.fail(f"{page}: {command}: {error}")


@pytest.mark.parametrize(("page", "command"), [c for c in ALL if c[1].startswith(("make ", "python "))])
def test_targets_and_scripts_are_there(page, command):
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text()
        for target in words[1:]:
            assert "=" in target or re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), f"{page}: {command}"
    elif words[1] == "-m":
        path = ROOT / "src" / words[2].replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").exists() or words[2] == "reliability", f"{page}: {command}"
    elif words[1].startswith(("benchmarks/", "examples/", "tools/")):
        assert (ROOT / words[1]).exists(), f"{page}: {command}"


def test_python_in_documents_can_be_read_and_names_what_exists():
    seen = 0
    for page, text in blocks(("python",)):
        tree = ast.parse(text)  # raises a SyntaxError with the line
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "gst":
                assert hasattr(gst, node.attr), f"{page}: gst.{node.attr}"
                seen += 1
    assert seen > 30
