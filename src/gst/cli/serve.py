"""gst serve: answers by node over HTTP."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from gst.base.errors import InputError
from gst.cli import console
from gst.cli.options import RunFolder, place_option
from gst.inference.serving import Engine
from gst.methods.result import Result

JOURNAL = "updates.journal"
THREADS = min(32, os.cpu_count() or 1)
WAIT = 10  # seconds that open requests have when the server ends


def serve(
    run: RunFolder,
    host: Annotated[
        str, typer.Option(help="address to listen on; the default is for this machine alone")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one")] = 8000,
    updates: Annotated[bool, typer.Option(help="let requests change the graph")] = True,
    journal: Annotated[Path | None, place_option(help=f"file of the changes [{JOURNAL} in RUN]")] = None,
    products: Annotated[bool, typer.Option("--products", help="X·W of all nodes in memory: faster")] = False,
    features: Annotated[Path | None, typer.Option(help=".npy file of the features, mapped into memory")] = None,
    max_nodes: Annotated[int, typer.Option(min=1, help="nodes in a request")] = 1000,
    max_bytes: Annotated[int, typer.Option(min=100, help="bytes in a request")] = 2**20,
    threads: Annotated[int, typer.Option(min=1, max=1000, help="answers at the same time")] = min(
        32, os.cpu_count() or 1
    ),
) -> None:
    """Answer by node over HTTP: POST /predict and /update, GET /healthz and /metrics."""
    try:
        import uvicorn  # noqa: PLC0415 - an extra, and only this command needs it

        from gst.inference.serving.http import Limits, application  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InputError(
            f"gst serve needs {error.name}: pip install 'graph-sparse-training[serve]' installs it"
        ) from None
    engine, replayed = open_engine(run, updates, journal, products, features)
    limits = Limits(max_bytes, max_nodes, threads, updates)
    config = uvicorn.Config(
        application(engine, limits), log_level="warning", lifespan="off", timeout_graceful_shutdown=10
    )
    try:
        with _listening(host, port) as listener:
            place = f"http://{host}:{listener.getsockname()[1]}"
            again = f", {replayed} changes made again" if replayed else ""
            console.say(f"serving {run} on {place} ({engine.num_nodes:,} nodes{again}); Ctrl-C ends it", to=console.err)
            _server(uvicorn, config).run(sockets=[listener])
    finally:
        engine.close()
    console.say("ended", to=console.err)


def open_engine(
    run: Path, updates: bool, journal: Path | None, products: bool, features: Path | None
) -> tuple[Engine, int]:
    """The engine of a run, and how many changes its journal had."""
    result = Result.load(run)
    if result.model is None:
        raise InputError(f"{run} has an own model, whose code is not saved with it: serve result.engine() in Python")
    if not updates:
        if journal is not None:
            raise InputError("--journal would have no effect with --no-updates")
        return result.engine(features=features, products=products), 0
    engine = result.engine(features=features, products=products, updates=True)
    return engine, engine.keep_journal(run / JOURNAL if journal is None else journal)


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, number)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    with listener:
        yield listener


def _server(uvicorn: Any, config: Any) -> Any:
    """A server that ends in peace when it is told to: open requests are answered, and the exit code is 0."""

    class Server(uvicorn.Server):  # type: ignore[misc]
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            before = {each: signal.signal(each, self.handle_exit) for each in (signal.SIGINT, signal.SIGTERM)}
            try:
                yield
            finally:
                for each, handler in before.items():
                    signal.signal(each, handler)

    return Server(config)
