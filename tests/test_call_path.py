"""The way from the command line to the files, as CONTRIBUTING lists it: every function of gst that is on the call stack
when a file of the run folder is written."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST = 40
PROGRAM = """
import json, os, sys
folder = sys.argv.pop(1)
from gst.__main__ import main
import gst
source, passed = os.path.dirname(gst.__file__) + os.sep, {}

def note(event, arguments):
    writes = event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if not writes or not isinstance(arguments[0], str | os.PathLike):
        return
    if folder in os.fspath(arguments[0]):
        frame, stack = sys._getframe(1), []
        while frame is not None:
            code, frame = frame.f_code, frame.f_back
            if code.co_filename.startswith(source):
                stack.append(f"{code.co_filename.removeprefix(source)}: {code.co_qualname.partition('.<locals>')[0]}")
        passed.update(dict.fromkeys(reversed(stack)))

sys.addaudithook(note)
try:
    main()
except SystemExit as stopped:
    print(json.dumps([stopped.code, *passed]), file=sys.stderr)
"""


def test_the_list_in_contributing_is_the_path_of_a_run(tmp_path):
    words = ["run", "--dataset", "synthetic:nodes=60,degree=4", "--method", "gst", "--sparsity", "0.5", "--hidden", "4"]
    words += ["--anchor-epochs", "2", "--sparse-epochs", "2", "--no-cache", "--retrain", "--quiet", "--json"]
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "run"), *words, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    code, *passed = json.loads(done.stderr.splitlines()[-1])
    assert code in (0, None), done.stderr
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition("<!-- call path -->")[2].partition("<!-- end -->")[0]
    assert re.findall(r"`([\w/]+\.py: [\w.]+)`", section) == passed
    assert len(passed) <= MOST
