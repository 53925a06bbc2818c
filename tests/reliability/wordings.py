"""Random command lines: every command and every option, with values from pools of nonsense."""

import inspect
import random
import re
from functools import cache
from typing import Any

from gst.cli import main as cli
from reliability.strangers import HOSTILE, TINY, Files

NUMBERS = ["-1", "0", "1", "2", "3", "0.5", "1.5", "-0.0", "nan", "inf", "-inf", "1e308", "-1e308", "1e-308", "9" * 30]
NUMBERS += ["9" * 5000, "²", "٣", "0x10", "1_0", "1,5", " 1 ", "True", "None", "", "1e3"]
TEXTS = [
    "",
    " ",
    "\t",
    "\n",
    "a\nb",
    HOSTILE,
    "ü" * 50,
    "x" * 5000,
    "[/red]",
    "{}",
    "%s%n",
    "$(true)",
    "../../..",
    "-1",
]
TEXTS += ["=1+1", "None", "nan", "\u202e", "🙂", "a=b", "a=", "=", ",,,", "\ufeff", "'", '"']
DATA = [f"synthetic:nodes={n}" for n in ("1e308", "nan", "-5", "2", "1e9", "x", "")] + ["synthetic:degree=1e308"]
DATA += ["digits:nodes=5", "digits:nodes=1e99", "corra", "synthetic:", "synthetic:x=1", "synthetic-arxiv:scale=1e308"]
DATA += ["synthetic-arxiv:scale=nan", "synthetic:seed=1e308", f"{TINY},nodes=4", "synthetic:features=1e308"]
DEVICES = ["meta", "cuda:99", "mps", "xla", "cpu:5", "gpu", "vulkan"]
SPECIAL = {
    "device": DEVICES,
    "projections": ["0", "none", "="],
    "outer": ["x" * 999],
    "dataset": DATA,
    "only": ["a=b", "method=gst", "seed=nan", "=,="],
}
FILES = {
    "run": "run", "resume": "run", "rows": "record", "start": "record", "db": "record", "dataset": "graph",
    "edges": "table", "features": "table", "labels": "table", "split": "table", "out": "write", "output": "write",
    "record": "write", "data_root": "write",
}  # fmt: skip
NAMES = {
    "method": ["gst", "random", "ugs", "SNIP", "effective_resistance", "set"],
    "backbone": ["gcn", "GAT", "sage", "gin", "cluster-gcn"],
    "batch": ["full", "clusters", "neighbors"],
    "to": ["csv", "pyg", "scipy", "networkx", "dgl", "parquet"],
    "layout": ["fast", "natural", "auto"],
    "profile": ["smoke", "quick"],
    "name": ["rq1", "rq3", "fig1", "rq9"],
    "matrix": ["adjacency", "laplacian"],
    "setting": ["inductive"],
}
SMALL = ["--hidden", "8", "--anchor-epochs", "1", "--sparse-epochs", "2"]  # of effect in every run
# keep calls that happen to be valid short; no number of the pools is both valid and large
FIRST = {
    "run": ["--sparsity", "0.5", *SMALL],
    "search": ["--seeds", "1", "--step", "0.5", "--precision", "0.5", *SMALL],
    "latency": ["--repeats", "2"],
    "drift": ["--epochs", "1", "--share", "0.1"],
}
# of two values the last one counts: these commands have no short valid calls
LAST = {"bench": ["--profile", "smoke", "--limit", "0"], "demo": ["--sparsity", "2"], "warmup": ["--help"]}


# one valid call of every kind of work
KINDS = [
    ["run", "--dataset", TINY, "--quiet", *FIRST["run"], *words]
    for words in (
        ["--backbone", "gat", "--retrain"],
        ["--backbone", "gin", "--method", "gst", "--interval", "1"],
        ["--backbone", "sage", "--method", "retrain"],
        ["--batch", "neighbors", "--method", "gst"],
        ["--batch", "clusters", "--method", "gst", "--backbone", "cluster-gcn"],
        ["--method", "ugs", "--round-epochs", "1"],
        ["--method", "scan"],
        ["--method", "effective-resistance"],
        ["--method", "spectral-radius"],
    )
]


@cache
def commands() -> dict[str, Any]:
    """Every command by its name, with its parameters."""
    return cli.load_commands()


@cache
def numeric() -> set[str]:
    """The options that take a number, in any command."""
    callbacks = [command.callback for command in commands().values()]
    parameters = [p for callback in callbacks for p in inspect.signature(callback).parameters.values()]
    return {p.name for p in parameters if {"int", "float"} & set(re.findall(r"\w+", str(p.annotation)))}


def command(rng: random.Random, files: Files) -> list[str]:
    """One command line."""
    if rng.random() < 0.03:
        return rng.choice(
            [[], ["--help"], [rng.choice(TEXTS)], ["run", "--help"], ["--version"], ["-h"], ["--", "run"]]
        )
    name = rng.choice([*commands(), "run", "run", "run", "search"])
    parameters = [p for p in commands()[name].params if p.name != "help"]
    words = [name, *FIRST.get(name, [])]
    words += ["--dataset", TINY] if name in ("run", "search") and rng.random() < 0.8 else []
    for argument in (p for p in parameters if not p.opts[0].startswith("-")):
        words += [_value(rng, argument, files)] if rng.random() < 0.95 else []
    options = [p for p in parameters if p.opts[0].startswith("-")]
    for option in rng.choices(options, k=rng.choice([0, 1, 1, 1, 2, 2, 3, 5])):
        flag = rng.choice([*option.opts, *option.secondary_opts])
        words += [flag] if option.is_flag else [flag, _value(rng, option, files)]
    if rng.random() < 0.05:
        words += [rng.choice(["--no-such", "--sparsty=1", "-z", rng.choice(TEXTS), rng.choice(files["any"])])]
    return words + LAST.get(name, [])


def environment(rng: random.Random, files: Files) -> dict[str, str]:
    """Mostly empty, sometimes one bad variable."""
    if rng.random() < 0.85:
        return {}
    name = rng.choice(["GST_DATA", "GST_MIRROR", "WORLD_SIZE"])
    return {name: rng.choice(NUMBERS if name == "WORLD_SIZE" else files["any"])}


def _value(rng: random.Random, option: Any, files: Files) -> str:
    """Sometimes a value of the right kind, mostly one that is not."""
    pools = [NUMBERS if option.name in numeric() else TEXTS]
    pools += [pool for pool in (SPECIAL.get(option.name), NAMES.get(option.name)) if pool]
    if option.name in FILES:
        pools += [files[FILES[option.name]]] * 3
    elif rng.random() < 0.1:
        pools = [NUMBERS, TEXTS, files["any"]]
    return rng.choice(rng.choice(pools))
