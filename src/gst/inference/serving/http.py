"""The endpoint: an engine behind HTTP, with limits, metrics and errors in JSON."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from gst.base.errors import InputError
from gst.inference.serving.engine import Engine
from gst.inference.serving.metrics import Metrics
from gst.storage.journal import UnwrittenError

CHANGES = {"add", "remove", "x", "new_nodes", "weight"}


@dataclass(frozen=True)
class Limits:
    """What one request may ask for.

    Attributes:
        max_bytes: of its body.
        max_nodes: that it asks for.
        threads: that answer at the same time.
        updates: whether it may change the graph.
    """

    max_bytes: int = 2**20
    max_nodes: int = 1000
    threads: int = 4
    updates: bool = True


def application(engine: Engine, limits: Limits) -> Starlette:
    """``POST /predict``, ``POST /update``, ``GET /healthz`` and ``GET /metrics`` for an engine."""
    endpoint = Endpoint(engine, limits)
    routes = [
        Route("/predict", endpoint.measured("predict", endpoint.predict), methods=["POST"]),
        Route("/update", endpoint.measured("update", endpoint.update), methods=["POST"]),
        Route("/healthz", endpoint.health, methods=["GET"]),
        Route("/metrics", endpoint.show_metrics, methods=["GET"]),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _as_json, Exception: _unexpected})


class Endpoint:
    """The requests that an engine answers."""

    def __init__(self, engine: Engine, limits: Limits) -> None:
        self.engine, self.limits = engine, limits
        self.metrics = Metrics()
        self._threads: anyio.CapacityLimiter | None = None

    def measured(self, name: str, handle: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Counts and times a request, and turns what is wrong with it into JSON."""

        async def endpoint(request: Request) -> Response:
            start = time.perf_counter()
            try:
                response: Response = JSONResponse(await handle(request))
            except HTTPException as error:
                response = _error(error.status_code, str(error.detail))
            except UnwrittenError as error:
                response = _error(503, str(error))
            except InputError as error:
                response = _error(400, str(error))
            except ClientDisconnect:
                response = _error(400, "the client has gone")
            self.metrics.count(name, response.status_code, time.perf_counter() - start)
            return response

        return endpoint

    async def predict(self, request: Request) -> dict[str, Any]:
        asked = await self._body(request, {"nodes", "x"})
        nodes = asked.get("nodes")
        if not isinstance(nodes, list) or not nodes:
            raise InputError('nodes is needed: {"nodes": [17, 4]}')
        if len(nodes) > self.limits.max_nodes:
            raise HTTPException(413, f"{len(nodes)} nodes: at most {self.limits.max_nodes} in a request")
        answer = await self._in_thread(partial(self.engine.answer, nodes, asked.get("x")))
        self.metrics.answered(len(nodes), answer.read)
        outputs = answer.outputs
        best = outputs.argmax(-1).tolist() if outputs.shape[-1] > 1 else (outputs[:, 0] > 0).int().tolist()
        return {"nodes": nodes, "answers": best, "outputs": outputs.tolist(), "version": answer.version}

    async def update(self, request: Request) -> dict[str, Any]:
        if not self.limits.updates:
            raise HTTPException(403, "this endpoint does not change its graph")
        asked = await self._body(request, CHANGES)
        outcome = await self._in_thread(partial(self.engine.update, **asked))
        self.metrics.updates += 1
        new = list(outcome.new_nodes)
        return {"version": outcome.version, "kept": outcome.kept, "dropped": outcome.dropped, "new_nodes": new}

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok", "nodes": self.engine.num_nodes, "version": self.engine.version})

    async def show_metrics(self, request: Request) -> Response:
        sizes = {"nodes": self.engine.num_nodes, "version": self.engine.version}
        return PlainTextResponse(self.metrics.text(sizes), media_type="text/plain; version=0.0.4")

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        if self._threads is None:
            self._threads = anyio.CapacityLimiter(self.limits.threads)
        return await anyio.to_thread.run_sync(call, limiter=self._threads)

    async def _body(self, request: Request, known: set[str]) -> dict[str, Any]:
        """The JSON object in a request that is not too long."""
        content = b""
        too_long = HTTPException(413, f"the request is longer than {self.limits.max_bytes} bytes")
        claimed = request.headers.get("content-length", "")
        if claimed.isdigit() and int(claimed) > self.limits.max_bytes:
            raise too_long
        async for part in request.stream():
            content += part
            if len(content) > self.limits.max_bytes:
                raise too_long
        try:
            asked = json.loads(content)
        except (ValueError, RecursionError):
            raise InputError("the request is not JSON") from None
        if not isinstance(asked, dict):
            raise InputError(f"the request is a JSON {type(asked).__name__}: an object is needed")
        if unknown := sorted(set(asked) - known):
            raise InputError(f"unknown {unknown[0][:80]!r}: known are {', '.join(sorted(known))}")
        return asked


def _error(status: int, text: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": text}, status, headers)


async def _as_json(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, str(error.detail), error.headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    return _error(500, "internal error")
