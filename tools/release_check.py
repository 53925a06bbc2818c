"""Everything before a release, one step after the other, and a summary: python tools/release_check.py [STEP…]"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPS = {  # name: the target of make
    "tests": "test",
    "demo": "demo",
    "documentation": "docs",
    "tutorials": "tutorials",
    "trackers": "trackers",
    "coverage": "coverage",
    "package": "package",
}
LAST = 4  # lines of a step that failed


def run(target: str) -> tuple[bool, float, str]:
    """Whether a target passes, in how many seconds, and its output."""
    start = time.perf_counter()
    done = subprocess.run(["make", "-C", str(ROOT), target], capture_output=True, text=True, check=False)
    return done.returncode == 0, time.perf_counter() - start, done.stdout + done.stderr


def version_problems(root: Path = ROOT) -> list[str]:
    """What does not say the version that the code says.

    A version in the making, ``1.2.0.dev0``, is the changelog's first section as ``1.2.0 – unreleased``; one that goes
    out, ``1.2.0``, has a date there.
    """
    version: dict[str, str] = {}
    exec((root / "src" / "gst" / "base" / "version.py").read_text(encoding="utf-8"), version)
    number, _, making = version["__version__"].partition(".dev")
    found = []
    if f"version: {version['__version__']}\n" not in (root / "CITATION.cff").read_text(encoding="utf-8"):
        found.append(f"CITATION.cff lacks version: {version['__version__']}")
    first = re.search("^## (.*)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    heading = first[1] if first else ""
    name, _, state = heading.partition(" – ")
    if name != number or not (state == "unreleased" if making else re.fullmatch(r"\d{4}-\d\d-\d\d", state)):
        right = f"{number} – {'unreleased' if making else 'YYYY-MM-DD'}"
        found.append(f"CHANGELOG.md begins with '{heading}', not with '{right}'")
    if subprocess.run(["git", "-C", str(root), "status", "--porcelain"], capture_output=True, check=False).stdout:
        found.append("the working tree has changes")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", nargs="*", help=f"some of {', '.join(STEPS)}; else all")
    chosen = parser.parse_args().step or list(STEPS)
    rows = [("version", not version_problems(), 0.0, ", ".join(version_problems()))]
    for name in chosen:
        print(f"{name} …", file=sys.stderr, flush=True)
        passed, seconds, text = run(STEPS[name])
        rows.append((name, passed, seconds, "" if passed else "\n".join(text.strip().splitlines()[-LAST:])))
    for name, passed, seconds, text in rows:
        print(f"{'passed' if passed else 'FAILED':8}{name:15}{seconds:7.0f} s  {text}".rstrip())
    print(json.dumps({name: passed for name, passed, *_ in rows}))
    return 0 if all(passed for _, passed, *_ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
