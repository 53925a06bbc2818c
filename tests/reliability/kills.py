"""SIGKILL at random instants: whatever is cut off goes on to the result of the run that nobody disturbed.

Children are forked from a parent that has imported everything but trained nothing, because importing takes longer
than the job itself. Such a parent must not have run autograd, so tests start this in a process of its own.
"""

import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import torch

import gst
from gst import artifact, cli
from gst.errors import InputError

SHORT = "--sparsity 0.5 --hidden 8 --anchor-epochs 30 --sparse-epochs 40 --interval 5 --retrain --no-cache --quiet"
ITERATIVE = "--sparsity 0.1 --hidden 8 --anchor-epochs 10 --sparse-epochs 10 --no-cache --quiet"
SMALL = "synthetic:nodes=150,degree=6"
JOBS = {
    "gst": f"run --dataset digits --method gst {SHORT}",
    "scan": f"run --dataset digits --method scan {SHORT}",
    "ugs": f"run --dataset {SMALL} --method ugs {ITERATIVE}",
    "mgspar": f"run --dataset {SMALL} --method mgspar {ITERATIVE}",
}


def start(job: str, folder: Path, every: float = 0.05) -> int:
    """Forks a child that runs ``gst run … --out folder``."""
    child = os.fork()
    if child:
        return child
    try:
        torch.set_num_threads(1)
        sink = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        sys.argv = ["gst", *JOBS[job].split(), "--checkpoint-every", str(every), "--out", str(folder)]
        cli.main()
    except SystemExit as stopped:
        os._exit(int(stopped.code or 0))
    finally:
        os._exit(99)


def same(folder: Path, reference: Path) -> bool:
    """Whether two results are alike in every bit but those of clocks."""
    first, second = gst.Result.load(folder), gst.Result.load(reference)
    timed = {"seconds", "inference", "out"}
    metrics = [{k: v for k, v in r.metrics.items() if k not in timed} for r in (first, second)]
    tensors = [[r.edge_mask, r.scores, *r.model.state_dict().values()] for r in (first, second)]
    return metrics[0] == metrics[1] and all(torch.equal(a, b) for a, b in zip(*tensors, strict=True))


def unreadable(folder: Path) -> int:
    """States on the disk that do not read; temporaries are none."""
    count = 0
    for path in (folder / "checkpoint").glob("*.safetensors"):
        try:
            artifact.read_tensors(path)
        except InputError:
            count += 1
    return count


def newest_phase(folder: Path) -> str:
    states = sorted((folder / "checkpoint").glob("*.[ab].safetensors"), key=lambda path: path.stat().st_mtime)
    return states[-1].name.split(".")[0] if states else "before the first state"


def kill_at_random(job: str, kills: int, place: Path, seed: int = 0) -> dict[str, object]:
    """Kills and restarts one job after another until so many have been killed; what became of them."""
    rng = random.Random(seed)
    reference = place / f"{job}-reference"
    began = time.perf_counter()
    assert os.waitpid(start(job, reference), 0)[1] == 0, reference.with_suffix(".log").read_text()
    length = time.perf_counter() - began
    killed = failed = different = broken = finished = 0
    phases: Counter[str] = Counter()
    while killed < kills:
        folder = place / f"{job}-{finished}"
        while True:
            child = start(job, folder)
            deadline = time.perf_counter() + rng.uniform(0, length if killed < kills else 1e9)
            while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.perf_counter() < deadline:
                time.sleep(0.002)
            if ended[0] == 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                killed += 1
                phases[newest_phase(folder)] += 1
                broken += unreadable(folder)
                continue
            failed += ended[1] != 0
            different += ended[1] == 0 and not same(folder, reference)
            finished += 1
            break
    return {
        "kills": killed,
        "runs_finished": finished,
        "failed_resumes": failed,
        "different_results": different,
        "unreadable_states": broken,
        "phases": dict(phases),
        "uninterrupted_seconds": round(length, 2),
    }
