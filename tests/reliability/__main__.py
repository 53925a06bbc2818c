"""``python -m reliability``: every trial at full length, one JSON object at the end; exit code 1 where one failed.

Run by ``make reliability`` and, with ``fuzz`` alone and a time budget, by ``make fuzz``.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from reliability import damage, fuzz, hostile, kills

SHARE = {"gst": 0.6, "scan": 0.1, "ugs": 0.15, "mgspar": 0.15}  # of the kills


def try_kills(count: int, place: Path, seed: int) -> dict[str, Any]:
    """Must come first: forked children cannot train once their parent has."""
    return {job: kills.kill_at_random(job, max(1, round(count * share)), place, seed) for job, share in SHARE.items()}


def try_damage(place: Path) -> dict[str, Any]:
    """Every file of a result, and states and cached values of a run that was killed."""
    seen = {}
    finished = place / "gst-reference"
    for path in sorted(finished.iterdir()):
        seen[path.name] = dict(damage.read_damaged(path, lambda: kills.gst.Result.load(finished)))
    killed = False
    while not killed:  # in the sparse phase, with a second state of it on the disk; the next try if it was too fast
        child = kills.start("gst", place / "damaged", every=0)
        while not killed and os.waitpid(child, os.WNOHANG)[0] == 0:
            if killed := bool(list((place / "damaged" / "checkpoint").glob("sparse.b.*"))):
                os.kill(child, 9)
                os.waitpid(child, 0)
    for path in sorted((place / "damaged" / "checkpoint").glob("*.safetensors")):
        kind = path.name.split("-")[0]
        seen[kind] = dict(damage.read_damaged(path, lambda path=path: kills.artifact.read_tensors(path)))  # type: ignore[misc]
    run = place / "damaged" / "checkpoint" / "run.json"
    seen["checkpoint/run.json"] = dict(damage.read_damaged(run, lambda: kills.artifact.read_json(run)))
    return seen


def try_hostile(place: Path) -> dict[str, Any]:
    found = {}
    for make in hostile.ALL:
        folder = place / make.__name__
        folder.mkdir()
        seconds, mebibytes = hostile.refusal(make, folder)
        found[make.__name__] = {"seconds": round(seconds, 3), "mebibytes": round(mebibytes, 1)}
    return found


def try_fuzz(examples: int, seconds: float, seed: int) -> dict[str, Any]:
    """Batches of topology methods and, a tenth as many, learned ones; stops at the number or at the time."""
    total: dict[str, Counter[str]] = {"topology": Counter(), "learned": Counter()}
    end = time.perf_counter() + seconds
    rng = random.Random(seed)
    while total["topology"].total() < examples and time.perf_counter() < end:
        for kind, batch in (("topology", 500), ("learned", 25)):
            torch.manual_seed(0)
            total[kind].update(fuzz.fuzz(batch, kind, seed=rng.randrange(2**31)))
    return {kind: dict(seen) for kind, seen in total.items()} | {"seed": seed}


def wrong(summary: dict[str, Any]) -> list[str]:
    """What does not hold."""
    found = []
    for job, seen in summary.get("kills", {}).items():
        bad = seen["failed_resumes"] + seen["different_results"] + seen["unreadable_states"]
        found += [f"kills of {job}"] if bad else []
    found += [f"damage of {name}" for name, seen in summary.get("damage", {}).items() if seen.keys() != {"refused"}]
    for name, cost in summary.get("hostile", {}).items():
        found += [f"cost of {name}"] if cost["seconds"] > 2 or cost["mebibytes"] > 500 else []
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="reliability")
    parser.add_argument("trials", nargs="*", default=["kills", "damage", "hostile", "fuzz"])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=400, help="of fuzzing, at most")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--place", type=Path)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    print(f"seed {chosen.seed}", file=sys.stderr)
    begun = time.perf_counter()
    summary: dict[str, Any] = {"seed": chosen.seed}
    with tempfile.TemporaryDirectory() as folder:
        place = chosen.place or Path(folder)
        trials = {
            "kills": lambda: try_kills(chosen.kills, place, chosen.seed),
            "damage": lambda: try_damage(place),
            "hostile": lambda: try_hostile(place),
            "fuzz": lambda: try_fuzz(chosen.examples, chosen.seconds, chosen.seed),
        }
        for name in chosen.trials:
            summary[name] = trials[name]()
            print(f"{name} done after {time.perf_counter() - begun:.0f} s", file=sys.stderr)
    summary |= {"wrong": wrong(summary), "minutes": round((time.perf_counter() - begun) / 60, 1)}
    print(json.dumps(summary, indent=2))
    sys.exit(1 if summary["wrong"] else 0)


if __name__ == "__main__":
    main()
