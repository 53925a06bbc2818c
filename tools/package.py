"""Builds wheel and sdist, checks them, and tries the wheel in clean environments: python tools/package.py

Both are built twice and have to be the same, byte for byte. The wheel is then installed into two environments outside
the repository: with the newest version of everything but torch, and with the oldest that ``pyproject.toml`` claims. In
each, ``gst --version``, ``gst demo`` and the script of a newcomer have to work. Prints JSON.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXTRA = "tables"  # the only one that the newcomer needs
TORCH = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
LARGEST = 1_500_000  # bytes of the wheel


def run(*command: Any, **given: Any) -> str:
    """The standard output of a command; its last lines where it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **given)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def epoch() -> str:
    """The time of the last commit, which goes into archives instead of now."""
    return run("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()


def build(out: Path, seconds: str) -> dict[str, Path]:
    """Wheel and sdist, from a copy of the files that git knows."""
    with tempfile.TemporaryDirectory() as text:
        copy = Path(text) / "source"
        names = run("git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z").split("\0")
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, copy / name)
                os.utime(copy / name, (int(seconds), int(seconds)))
        environment = {**os.environ, "SOURCE_DATE_EPOCH": seconds}
        run(sys.executable, "-m", "build", "--outdir", out, copy, env=environment)
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    normalise(sdist, int(seconds))
    return {"wheel": wheel, "sdist": sdist}


def normalise(sdist: Path, seconds: int) -> None:
    """Writes the archive again, sorted, with one time and no owner: setuptools keeps those of the machine."""
    with tarfile.open(sdist) as archive:
        members = sorted(archive.getmembers(), key=lambda member: member.name)
        contents = [archive.extractfile(member) for member in members]
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as out:
            for member, content in zip(members, contents, strict=True):
                member.mtime, member.uid, member.gid, member.uname, member.gname = seconds, 0, 0, "", ""
                member.mode, member.pax_headers = (0o755 if member.isdir() else 0o644), {}
                out.addfile(member, content)
    sdist.write_bytes(gzip.compress(buffer.getvalue(), mtime=seconds))


def check_contents(wheel: Path, sdist: Path) -> dict[str, int]:
    """Everything that is needed, and nothing of the tests."""
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("gst/py.typed", "gst/data/digits.npz", "gst/lab/report/templates/report.html.j2"):
        assert needed in names, f"the wheel lacks {needed}"
    foreign = [name for name in names if not name.startswith(("gst/", "graph_sparse_training-"))]
    assert not foreign, f"the wheel holds {foreign[:3]}"
    assert wheel.stat().st_size < LARGEST, f"the wheel has {wheel.stat().st_size:,} bytes"
    with tarfile.open(sdist) as archive:
        tests = [name for name in archive.getnames() if name.partition("/")[2].startswith("tests")]
    assert not tests, f"the sdist holds {tests[:3]}"
    return {"files": len(names), "wheel_bytes": wheel.stat().st_size, "sdist_bytes": sdist.stat().st_size}


def oldest() -> list[str]:
    """The lower bound of everything that the wheel and its extra claim, as an exact version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"][EXTRA]]
    pairs = [re.fullmatch(r"([\w.-]+)>=([\w.]+)", line) for line in lines]
    assert all(pairs), "a dependency has no lower bound"
    return [f"{pair[1]}=={pair[2]}" for pair in pairs if pair and pair[1] != "torch"]


def try_out(wheel: Path, versions: list[str]) -> dict[str, Any]:
    """The wheel in an environment of its own, away from the repository."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        run(sys.executable, "-m", "venv", folder / "venv")
        python = folder / "venv" / "bin" / "python"
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "GST_DATA", "GST_MIRROR")}
        pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
        run(*pip, TORCH, "numpy" if not versions else next(v for v in versions if v.startswith("numpy")), env=clean)
        run(*pip, TORCH, *versions, f"{wheel}[{EXTRA}]", env=clean)
        installed = time.perf_counter() - start
        shutil.copyfile(ROOT / "tools" / "newcomer.py", folder / "newcomer.py")
        given = {"cwd": folder, "env": {**clean, "HOME": text, "XDG_CACHE_HOME": text, "OMP_NUM_THREADS": "1"}}
        version = run(folder / "venv" / "bin" / "gst", "--version", **given).strip()
        start = time.perf_counter()
        demo = json.loads(run(folder / "venv" / "bin" / "gst", "demo", "--quiet", "--json", **given))
        seconds = time.perf_counter() - start
        newcomer = json.loads(run(python, "newcomer.py", **given).splitlines()[-1])
        packages = json.loads(
            run(python, "-m", "pip", "list", "--format", "json", "--disable-pip-version-check", env=clean)
        )
        run(python, "-m", "pip", "check", "--disable-pip-version-check", env=clean)
    names = {"torch", "torch-geometric", "numpy", "scipy", "numba", "pandas", "pydantic", "typer", "rich"}
    return {
        "gst": version,
        "install_seconds": round(installed),
        "demo_seconds": round(seconds),
        "demo": {name: round(run["test"], 1) for name, run in demo.items()},
        "newcomer": newcomer,
        "versions": {p["name"]: p["version"] for p in packages if p["name"].lower().replace("_", "-") in names},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-only", action="store_true", help="no environments")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for wheel and sdist")
    arguments = parser.parse_args()
    seconds = epoch()
    shutil.rmtree(arguments.out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as again:
        built, other = build(arguments.out, seconds), build(Path(again), seconds)
        digests = {kind: hashlib.sha256(path.read_bytes()).hexdigest() for kind, path in built.items()}
        for kind, path in other.items():
            assert hashlib.sha256(path.read_bytes()).hexdigest() == digests[kind], f"two builds of the {kind} differ"
    report: dict[str, Any] = {**check_contents(**built), "reproducible": True, "sha256": digests}
    if not arguments.build_only:
        for name, versions in (("newest", []), ("oldest", oldest())):
            print(f"package: trying the {name} versions", file=sys.stderr, flush=True)
            report[name] = try_out(built["wheel"], versions)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
