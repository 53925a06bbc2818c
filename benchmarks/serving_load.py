"""Clients of ``gst serve`` that check every answer."""

import asyncio
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gst
from gst.inference.serving.engine import NativeEngine
from gst.inference.serving.single import distribution
from serving_changes import Changes

ASKED = 2000  # nodes that clients ask for


@dataclass
class Seen:
    """What the clients saw."""

    answers: list[tuple[int, int, list[float]]] = field(default_factory=list)  # version, node, outputs
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    refused: int = 0  # connections, while the server was down
    changes: list[dict[str, Any]] = field(default_factory=list)  # all that were sent, the n-th made version n
    acknowledged: int = 0
    update_seconds: list[float] = field(default_factory=list)


class Server:
    """``gst serve`` in a process of its own."""

    def __init__(self, run: Path, journal: Path) -> None:
        words = [sys.executable, "-m", "gst", "serve", run, "--port", "0", "--journal", journal]
        self.process = subprocess.Popen(list(map(str, words)), stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        port = re.search(r"127\.0\.0\.1:(\d+)", line)
        assert port, line
        self.port = int(port[1])

    def stop(self, sign: int) -> int:
        self.process.send_signal(sign)
        return self.process.wait()


async def ask(port: int, path: str, content: Any, connection: list[Any]) -> tuple[int, Any]:
    """One request on a connection that is kept; opened if there is none."""
    if not connection:
        connection.extend(await asyncio.open_connection("127.0.0.1", port))
    reader, writer = connection
    body = json.dumps(content).encode()
    writer.write(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    await writer.drain()
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    assert found
    return int(head.split(b" ", 2)[1]), json.loads(await reader.readexactly(int(found[1])))


async def client(number: int, port: int, nodes: list[int], end: float, seen: Seen) -> None:
    """Asks for one node after another."""
    draw, connection = random.Random(number), []  # type: ignore[var-annotated]
    while time.monotonic() < end:
        node = draw.choice(nodes)
        start = time.perf_counter()
        try:
            status, reply = await ask(port, "/predict", {"nodes": [node]}, connection)
        except (OSError, asyncio.IncompleteReadError):
            seen.refused += 1
            return
        seen.seconds.append(time.perf_counter() - start)
        seen.statuses[status] += 1
        if status == 200:
            seen.answers.append((reply["version"], node, reply["outputs"][0]))


async def writer(port: int, changes: Changes, rate: float, end: float, seen: Seen) -> None:
    """Changes the graph, and keeps a copy of it in step."""
    connection: list[Any] = []
    while time.monotonic() < end:
        change = changes.draw()
        seen.changes.append(change)
        start = time.perf_counter()
        try:
            status, reply = await ask(port, "/update", change, connection)
        except (OSError, asyncio.IncompleteReadError):
            return
        seen.update_seconds.append(time.perf_counter() - start)
        seen.statuses[status] += 1
        assert status == 200, reply
        changes.engine.update(**change)
        seen.acknowledged = reply["version"]
        await asyncio.sleep(1 / rate)


async def phase(
    server: Server, seconds: float, clients: int, rate: float, mirror: Changes, seen: Seen, kill: bool
) -> None:
    """Some seconds of load; with ``kill``, the server dies at their end, in the middle of requests."""
    nodes = random.Random(0).sample(range(mirror.living.base.probabilities.shape[0]), ASKED)
    end = time.monotonic() + seconds
    work = [client(i, server.port, nodes, end + 5 * kill, seen) for i in range(clients)]
    work.append(writer(server.port, mirror, rate, end + 5 * kill, seen))
    tasks = asyncio.gather(*work)
    if kill:
        await asyncio.sleep(seconds)
        server.stop(signal.SIGKILL)
    await tasks


def press(run: Path, journal: Path, seconds: float, clients: int, rate: float) -> dict[str, Any]:
    """Load, a kill half way, load again, and a check of every answer."""
    result, seen = gst.Result.load(run), Seen()
    engine = result.engine(updates=True)
    assert isinstance(engine, NativeEngine)
    mirror = Changes(engine, seed=1)
    server = Server(run, journal)
    asyncio.run(phase(server, seconds / 2, clients, rate, mirror, seen, True))
    acknowledged = seen.acknowledged
    server = Server(run, journal)
    _, reply = asyncio.run(ask(server.port, "/predict", {"nodes": [0]}, []))
    survived = reply["version"]
    assert survived in (acknowledged, acknowledged + 1), (survived, acknowledged)
    if survived > engine.version:  # it was on disk, but its reply was lost
        engine.update(**seen.changes[survived - 1])
    del seen.changes[survived:]
    asyncio.run(phase(server, seconds / 2, clients, rate, mirror, seen, False))
    code = server.stop(signal.SIGTERM)
    return {
        "clients": clients,
        "seconds": seconds,
        "requests": sum(seen.statuses.values()),
        "statuses": {str(status): count for status, count in sorted(seen.statuses.items())},
        "wrong_answers": wrong(result, seen),
        "ms": distribution([1000 * s for s in seen.seconds]),
        "update_ms": distribution([1000 * s for s in seen.update_seconds]),
        "updates": seen.acknowledged,
        "killed_after": acknowledged,
        "version_after_restart": survived,
        "connections_cut_by_the_kill": seen.refused,
        "exit_code": code,
    }


def wrong(result: gst.Result, seen: Seen) -> int:
    """Answers that are not those of the graph whose version they name."""
    engine, count = result.engine(updates=True), 0
    by_version: dict[int, list[tuple[int, list[float]]]] = {}
    for version, node, outputs in seen.answers:
        by_version.setdefault(version, []).append((node, outputs))
    for version in range(len(seen.changes) + 1):
        if version:
            engine.update(**seen.changes[version - 1])
        for node, outputs in by_version.pop(version, ()):
            expected = engine(node)[0]
            error = (torch.tensor(outputs) - expected).abs().max()
            count += bool(error > 1e-5 * max(1.0, float(np.abs(expected.numpy()).max())))
    return count + sum(map(len, by_version.values()))
