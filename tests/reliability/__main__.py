"""``python -m reliability``: all trials at full length, one JSON object at the end; exit code 1 if any failed.

Run by ``make reliability`` and, with ``fuzz`` alone and a time budget, by ``make fuzz``.
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

import gst
from gst.storage import files
from reliability import calls, damage, fuzz, hostile, kernels, kills, recording, saving, stores, sweeps, threads

FORK = multiprocessing.get_context("fork")
TRIALS = [
    "kills",
    "sweeps",
    "calls",
    "damage",
    "save",
    "readers",
    "record",
    "numba",
    "hostile",
    "store",
    "threads",
    "fuzz",
]


def try_kills(jobs: list[str], count: int, root: Path, seed: int) -> dict[str, Any]:
    """``count`` kills of every job."""
    return _two_at_a_time(kills.kill_at_random, jobs, count, root, seed)


def try_sweeps(count: int, root: Path, seed: int) -> dict[str, Any]:
    return _two_at_a_time(sweeps.kill_sweeps, sweeps.ENGINES, count, root, seed)


def _two_at_a_time(trial: Callable[..., Any], names: Iterable[str], *args: Any) -> dict[str, Any]:
    with ProcessPoolExecutor(2, mp_context=FORK) as pool:
        futures = {name: pool.submit(trial, name, *args) for name in names}
        return {name: future.result() for name, future in futures.items()}


def try_damage(root: Path) -> dict[str, Any]:
    """Damages every file of a result, and the states and cached values of a killed run."""
    seen = {}
    finished = root / "paper-reference"
    for path in sorted(finished.iterdir()):
        seen[path.name.split("-")[0]] = dict(damage.read_damaged(path, lambda: gst.Result.load(finished)))
    killed = False
    while not killed:  # in the sparse phase, once its second state is on disk; try again if the run was too fast
        child = kills.start("paper", root / "damaged", every=0)
        while not killed and os.waitpid(child, os.WNOHANG)[0] == 0:
            if killed := bool(list((root / "damaged" / "checkpoint").glob("sparse.b.*"))):
                os.kill(child, 9)
                os.waitpid(child, 0)
    for path in sorted((root / "damaged" / "checkpoint").glob("*.safetensors")):
        kind = path.name.split("-")[0]
        seen[kind] = dict(damage.read_damaged(path, lambda path=path: files.read_tensors(path)))  # type: ignore[misc]
    run = root / "damaged" / "checkpoint" / "run.json"
    seen["checkpoint/run.json"] = dict(damage.read_damaged(run, lambda: files.read_json(run)))
    return seen


def try_hostile(root: Path) -> dict[str, Any]:
    costs = {}
    for make in hostile.ALL:
        folder = root / make.__name__
        folder.mkdir()
        seconds, mebibytes = hostile.refusal(make, folder)
        costs[make.__name__] = {"seconds": round(seconds, 3), "mebibytes": round(mebibytes, 1)}
    return costs


def try_fuzz(examples: int, seconds: float, seed: int) -> dict[str, Any]:
    """Half of the examples in each of two processes."""
    halves = _two_at_a_time(_fuzz, ("one half", "other half"), examples / 2, seconds, seed)
    total = {kind: sum((half[kind] for half in halves.values()), Counter()) for kind in ("topology", "learned")}
    return {kind: dict(seen) for kind, seen in total.items()} | {"seed": seed}


def _fuzz(name: str, examples: float, seconds: float, seed: int) -> dict[str, Counter[str]]:
    """Batches of topology methods and, a twentieth as many, learned ones, until the number or the time is reached."""
    total: dict[str, Counter[str]] = {"topology": Counter(), "learned": Counter()}
    end = time.perf_counter() + seconds
    rng = random.Random(f"{name} {seed}")
    while total["topology"].total() < examples and time.perf_counter() < end:
        for kind, batch in (("topology", 500), ("learned", 25)):
            torch.manual_seed(0)
            total[kind].update(fuzz.fuzz(batch, kind, seed=rng.randrange(2**31)))
    return total


def in_process(trial: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of a trial in a process of its own: once this process had trained, forks of it could not.

    A trial that fails itself (it has printed why) does not stop the others.
    """
    here, there = FORK.Pipe(duplex=False)
    process = FORK.Process(target=lambda: there.send(trial()))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return {"crashed": {}}
    finally:
        process.join()


def try_save(root: Path) -> dict[str, Any]:
    """Saves killed at every call to the disk, over each kind of existing result and over none."""
    return {start: saving.kill_saves(root, start) for start in saving.STARTS}


def wrong(summary: dict[str, Any]) -> list[str]:
    """The trials that failed."""
    failed = [f"{name} itself" for name in TRIALS if "crashed" in summary.get(name, {})]
    summary = {name: seen for name, seen in summary.items() if f"{name} itself" not in failed}
    for job, seen in summary.get("kills", {}).items():
        bad = seen["failed_resumes"] + seen["different_results"] + seen["unreadable_states"]
        failed += [f"kills of {job}"] if bad else []
    for engine, seen in summary.get("sweeps", {}).items():
        bad = "skipped" not in seen and sum(seen[what] for what in sweeps.BAD)
        failed += [f"kills of gst bench --engine {engine}"] if bad else []
    failed += ["threads"] if summary.get("threads", {}).get("different_values") else []
    failed += [f"damage of {name}" for name, seen in summary.get("damage", {}).items() if seen.keys() != {"refused"}]
    failed += [
        f"damage of {n}" for n, seen in summary.get("store", {}).items() if seen.keys() - {"refused", "the same"}
    ]
    for name, cost in summary.get("hostile", {}).items():
        failed += [f"cost of {name}"] if cost["seconds"] > 2 or cost["mebibytes"] > 500 else []
    failed += [
        f"save over {start}" for start, seen in summary.get("save", {}).items() if saving.wrong_saves(start, seen)
    ]
    for trial, bad in {"readers": ("failed", "mixed"), "record": ("lost", "failed"), "numba": kernels.BAD}.items():
        failed += [f"{trial}: {what}" for what in bad if summary.get(trial, {}).get(what)]
    failed += [f"calls: {', '.join(seen['faults'])}" for seen in summary.get("calls", {}).get("wrong", [])]
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(prog="reliability")
    parser.add_argument("trials", nargs="*", default=TRIALS)
    parser.add_argument("--kills", type=int, default=7, help="of every job")
    parser.add_argument("--jobs", nargs="*", choices=kills.JOBS, help="the jobs to kill, by default all")
    parser.add_argument("--sweeps", type=int, default=4, help="kills of gst bench with every engine")
    parser.add_argument("--rounds", type=int, default=20, help="of runs in threads")
    parser.add_argument("--calls", type=int, default=1000, help="random command lines")
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=150, help="of fuzzing, at most")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"seed {arguments.seed}", file=sys.stderr)
    started = time.perf_counter()
    summary: dict[str, Any] = {"seed": arguments.seed}
    with tempfile.TemporaryDirectory() as folder:
        root = arguments.folder or Path(folder)
        trials = {
            "kills": lambda: try_kills(arguments.jobs or list(kills.JOBS), arguments.kills, root, arguments.seed),
            "sweeps": lambda: try_sweeps(arguments.sweeps, root, arguments.seed),
            "calls": lambda: calls.run_calls(arguments.calls, arguments.seed, root / "calls"),
            "damage": lambda: try_damage(root),
            "save": lambda: try_save(root / "save"),
            "readers": lambda: saving.load_beside_a_writer(root / "readers", 5000),
            "record": lambda: recording.record_together(root / "record", 2, 100),
            "numba": lambda: kernels.damage_caches(root / "numba"),
            "hostile": lambda: try_hostile(root),
            "store": lambda: stores.flip(root, seed=arguments.seed),
            "threads": lambda: threads.repeat(arguments.rounds, root, arguments.seed),
            "fuzz": lambda: try_fuzz(arguments.examples, arguments.seconds, arguments.seed),
        }
        for name in arguments.trials:
            summary[name] = in_process(trials[name])
            spent = resource.getrusage(resource.RUSAGE_CHILDREN)
            took, used = time.perf_counter() - started, spent.ru_utime + spent.ru_stime
            print(f"{name} done after {took:.0f} s, {used:.0f} s of all processors", file=sys.stderr)
    summary |= {"wrong": wrong(summary), "minutes": round((time.perf_counter() - started) / 60, 1)}
    print(json.dumps(summary, indent=2))
    sys.exit(1 if summary["wrong"] else 0)


if __name__ == "__main__":
    main()
