"""Untrusted files and folders: valid, invalid, foreign, corrupt, or not files at all."""

import copy
import inspect
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from gst.cli import run as run_command
from gst.lab.bench.rows import Row, write_csv
from gst.storage import checkpoint, files

TINY = "synthetic:nodes=30,degree=4,classes=2,features=4"
RUN = ["run", "--dataset", TINY, "--sparsity", "0.5", "--hidden", "4", "--anchor-epochs", "1", "--sparse-epochs", "1"]
HOSTILE = "=cmd|' /C calc'!A0 [/x][bold]\x1b[31m\x07\x9b \u202e"
ODD = [None, "50", HOSTILE, float("nan"), float("inf"), -1, 10**400, 1e308, {"a": [1]}, [], True, "x" * 5000]

Files = dict[str, list[str]]


def make_files(root: Path, call: Callable[..., Any]) -> Files:
    """Paths by purpose: runs, records, tables, arrays, graphs and output paths."""
    root.mkdir(parents=True)
    runs, text = _runs(root, call), _texts(root)
    arrays, graphs = _arrays(root), _graphs(root)
    missing = [str(root / name) for name in ("gone", "gone.csv", "gone.pt", "no/such/folder", "x" * 300, "ü[/y]")]
    special = [str(path) for path in _special(root)]
    anything = [*missing, *special, *arrays, *graphs]
    writable = [
        "out",
        "x[/y]",
        "-",
        "=1+1",
        "a b",
        "\x1b[31mred",
        "o" * 300,
        "nested/" * 40,
        "/proc/gst",
        "\t",
        "ü",
        "~no-such-user/x",
    ]
    return {
        "run": [*runs, *anything],
        "table": [*text, *anything],
        "record": [*text, *runs, *anything],
        "graph": [*graphs, TINY, *text, *missing, *special],
        "write": [*writable, *special, text[0]],
        "any": [*text, *runs, *anything],
    }


def _runs(root: Path, call: Callable[..., Any]) -> list[str]:
    good = root / "run"
    ended = call(*RUN, "--out", str(good), "--quiet", "--retrain")
    assert ended.code == 0, ended.err
    content = json.loads((good / "run.json").read_text())
    content.pop("blake2b")
    folders = [good]
    changes: list[tuple[str, dict[str, Any]]] = [("bare", {"metrics": {"backbone": "gcn"}}), ("none", {"metrics": {}})]
    names = ("test", "edges_total", "dataset", "seconds", "inference", "sparsity")
    odd = [(name, number, value) for number, value in enumerate(ODD) for name in names]
    changes += [(f"{name}{number}", {"metrics": {**content["metrics"], name: value}}) for name, number, value in odd]
    changes += [(f"settings{n}", {"settings": {"hidden": value, "device": value}}) for n, value in enumerate(ODD)]
    for name, change in changes:
        folders.append(root / f"run-{name}")
        shutil.copytree(good, folders[-1])
        files.write_json(folders[-1] / "run.json", {**copy.deepcopy(content), **change})
    for name in sorted(path.name for path in good.iterdir()):
        folders.append(root / f"cut-{name}")
        shutil.copytree(good, folders[-1])
        (folders[-1] / name).write_bytes((good / name).read_bytes()[:100])
    return [str(folder) for folder in [*folders, *_unfinished(root)]]


def _unfinished(root: Path) -> list[Path]:
    """Folders for ``--resume``: the options of a run, one of them with an arbitrary value."""
    options = inspect.signature(run_command.run).parameters.values()
    usual = {option.name: option.default for option in options if option.name not in run_command._NOT_STORED}
    usual |= {"dataset": TINY, "sparsity": 0.5, "hidden": 4, "anchor_epochs": 1, "sparse_epochs": 1}
    names = ("dataset", "method", "split", "data_root", "edges", "option", "eigenpairs", "device", "sparsity", "keep")
    folders = []
    for number, value in enumerate([*ODD, "a\0b", "../gone.pt"]):
        for name in names:
            folders.append(root / f"unfinished-{name}{number}")
            identity = {"threads": value, "gst": value, "method": HOSTILE}
            content = {"format": checkpoint.FORMAT, "identity": identity, "words": {**usual, name: value}, "files": []}
            files.write_json(folders[-1] / "checkpoint" / "run.json", content)
    return folders


def _texts(root: Path) -> list[str]:
    contents = {
        "edges.csv": "source,target\n0,1\n1,2\n2,0\n",
        "true.csv": "True 1\n2 3\n",
        "hex.txt": "0x10 5\n1 2\n",
        "words.csv": "a,b\nc,d\n",
        "empty.csv": "",
        "header.csv": "source,target\n",
        "hostile.csv": f"{HOSTILE},{HOSTILE}\n{HOSTILE},1\n",
        "huge.csv": f"0,{'9' * 400}\n{'9' * 5000},1\n",
        "nan.csv": "nan,inf\n1e308,-1e308\n",
        "long.csv": "x" * 100_000 + "\n",
        "foreign.json": json.dumps({"format": 2, "metrics": ODD[:3]}),
        "labels.csv": "label\ncat\ndog\n",
    }
    for name, text in contents.items():
        (root / name).write_text(text)
    names = ("experiment", "profile", "dataset", "backbone", "method")
    row = Row(
        **dict.fromkeys(names, HOSTILE), sparsity=0.5, seed=0, reason=HOSTILE, variation="a=b", facts={"a": HOSTILE}
    )
    write_csv(root / "record.csv", [row])
    lines = (root / "record.csv").read_text().replace("0.5", "nan").replace("a=b", "no pairs")
    (root / "odd.csv").write_text(lines)
    (root / "binary.csv").write_bytes(bytes(range(256)) * 4)
    (root / "store.db").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 8)
    return [str(root / name) for name in (*contents, "record.csv", "odd.csv", "binary.csv", "store.db")]


def _arrays(root: Path) -> list[str]:
    np.save(root / "x.npy", np.eye(3, dtype=np.float32))
    np.save(root / "nan.npy", np.full((3, 2), np.nan, dtype=np.float32))
    np.save(root / "cube.npy", np.zeros((2, 2, 2)))
    np.savez(root / "split.npz", train=[0], val=[1], test=[2])
    pd.DataFrame({"source": [0, 1], "target": [1, 2]}).to_parquet(root / "edges.parquet")
    for suffix in ("npy", "npz", "parquet", "pt", "safetensors"):
        (root / f"binary.{suffix}").write_bytes(bytes(range(256)))
    names = ("x.npy", "nan.npy", "cube.npy", "split.npz", "edges.parquet", "binary.npy", "binary.npz", "binary.parquet")
    return [str(root / name) for name in names]


def _graphs(root: Path) -> list[str]:
    masks = {f"{part}_mask": torch.arange(6) % 3 == n for n, part in enumerate(("train", "val", "test"))}
    parts = {"x": torch.rand(6, 2), "y": torch.arange(6) // 3 % 2, "edge_index": torch.tensor([[0, 1, 2], [1, 2, 3]])}
    changes = {
        "good": {},
        "text": {"x": HOSTILE},
        "float": {"y": torch.rand(6)},
        "far": {"edge_index": torch.tensor([[9], [9]])},
    }
    for name, change in changes.items():
        torch.save({**parts, **masks, **change}, root / f"{name}.pt")
    torch.save(ODD, root / "list.pt")
    return [str(root / f"{name}.pt") for name in (*changes, "list", "binary")]


def _special(root: Path) -> list[Path]:
    os.mkfifo(root / "fifo.csv")
    os.mkfifo(root / "fifo.pt")
    (root / "folder").mkdir()
    (root / "folder.csv").mkdir()
    (root / "loop").symlink_to(root / "loop")
    (root / "nowhere.csv").symlink_to(root / "gone")
    return [root / name for name in ("fifo.csv", "fifo.pt", "folder", "folder.csv", "loop", "nowhere.csv")]
