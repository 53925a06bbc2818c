"""The core needs only its own dependencies; what an extra installs is imported where it is used."""

import subprocess
import sys
import tomllib
from pathlib import Path

from gst.base.optional import EXTRAS

ROOT = Path(__file__).parent.parent
BLOCKED = """
import sys
class Absent:
    names = {names}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            frame = sys._getframe(1)
            while "importlib" in frame.f_code.co_filename:
                frame = frame.f_back
            if frame.f_globals.get("__name__", "").partition(".")[0] == "gst":
                raise ModuleNotFoundError(name, name=name.partition(".")[0])
sys.meta_path.insert(0, Absent())
"""


def run_without_extras(code: str) -> str:
    """The last line that a script prints where gst can import none of the extras."""
    names = set(EXTRAS) | {"sklearn", "markupsafe", "pytest"}
    script = BLOCKED.format(names=names) + code
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().splitlines()[-1]


def test_the_core_is_loaded_and_works_without_any_extra():
    code = """
import gst, gst.cli.main
public = [getattr(gst, name) for name in gst.__all__]
data = gst.load("digits:nodes=60", split="random")
few = dict(hidden=8, anchor_epochs=2, sparse_epochs=2, cache=False)
print([gst.sparsify(data, method, sparsity=0.5, **few).metrics["edges_kept"] for method in ("gst", "scan")])
"""
    kept = run_without_extras(code)
    assert kept.startswith("[") and len(set(kept.strip("[]").split(", "))) == 1


def test_a_missing_extra_is_one_line_that_names_it(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    calls = {
        f"gst.from_files('e.csv', {str(tmp_path / 'x.csv')!r}, 'y.npy')": "tables",
        "export(data, 'csv', '/dev/null/never')": "tables",
        "export(data, 'networkx', '/dev/null/never')": "export",
        "gst.sparsify(data, 'random', sparsity=0.5, batch='clusters', clusters=2, cache=False)": "metis",
    }
    code = f"""
import gst, torch_geometric
from gst.storage.export import export
data = gst.load("digits:nodes=60", split="random")
public = [getattr(gst, name) for name in gst.__all__]
for name in list(sys.modules):  # those that PyG has loaded
    if name.partition(".")[0] in Absent.names:
        del sys.modules[name]
lines = []
for call in {list(calls)}:
    try:
        eval(call)
    except gst.InputError as error:
        lines.append(str(error))
print(lines)
"""
    lines = eval(run_without_extras(code))
    assert len(lines) == len(calls)
    for line, extra in zip(lines, calls.values(), strict=True):
        assert f"pip install 'graph-sparse-training[{extra}]'" in line


def test_every_extra_that_is_named_is_one_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for package, extra in EXTRAS.items():
        assert any(line.startswith(package) for line in extras[extra]), (package, extra)
