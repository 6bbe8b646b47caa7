"""The HTTP service over toy NICs, in this process. The HTTP service over toy NICs on a socket, and clients that say
what they want on it."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.app import make_app
from placer.fleet.service.http.connections import Connections
from placer.fleet.service.http.hosts import Hosts
from placer.fleet.service.http.requests import RequestLog
from placer.fleet.service.http.routes import EventRoutes, QuestionRoutes
from placer.fleet.service.http.server import StoppingServer, make_writer
from placer.fleet.service.http.tokens import OPEN_TO_ALL, Tokens
from placer.fleet.service.http.writer import Writer
from placer.fleet.state.open_state import open_state
from placer.fleet.state.store import State
from placer.fleet.what_if import WhatIf
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload

NFS = "abcd"


def check(workload: Workload) -> list[tuple[str, str]]:
    """What is wrong with a workload: the toy world knows four NFs."""
    return [] if workload.nf in NFS else [("nf", f"'{workload.nf}' is not profiled")]


@dataclass
class Service:
    client: TestClient
    writer: Writer
    engine: Engine

    def event(self, headers: dict[str, str] | None = None, **event: Any) -> httpx.Response:
        return self.client.post("/v1/events", json=event, headers=headers)

    def arrive(self, identity: str, nf: str = "d", drop: float = 0.9, **more: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.event(event="arrive", id=identity, nf=nf, sla_drop=drop, **more).json()
        return found

    def ask(self, **question: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.client.post("/v1/ask", json=question).json()
        return found

    def log(self, after: int = 0, wait_s: float = 0) -> list[dict[str, Any]]:
        text = self.client.get("/v1/log", params={"after": after, "wait_s": wait_s}).text
        return [json.loads(line) for line in text.splitlines()]


@contextmanager
def service(
    path: Path | str,
    count: int | None = 3,
    tokens: Tokens = OPEN_TO_ALL,
    routes: list[Route] | None = None,
    *,
    log_requests: bool = False,
) -> Iterator[Service]:
    """A service over this many toy NICs, with a state in a file or a database."""
    kinds = catalogue((count, 1.0)).kinds
    with open_state(path, kinds) as state:
        fleet = state.fleet if state.events else Fleet(kinds)
        engine = Engine(fleet, [ToyOracle()], waiting=state.waiting, events=state.events)
        writer = make_writer(engine, Reader(TOY_TRAFFIC, check, engine.workload_of), state, tokens)
        questions = QuestionRoutes(writer, WhatIf(engine))
        app = make_app(
            [*EventRoutes(writer).routes(), *questions.routes(), *(routes or ())], writer, tokens,
            Hosts("127.0.0.1", PORT), RequestLog(writer.metrics, everything=log_requests),
        )  # fmt: skip
        with client_of(app) as client:
            yield Service(client, writer, engine)


PORT = 8080


def client_of(app: ASGIApp) -> TestClient:
    """A client of an application at 127.0.0.1:8080, whose bodies are JSON."""
    headers = {"Content-Type": "application/json"}
    return TestClient(app, f"http://127.0.0.1:{PORT}", raise_server_exceptions=False, headers=headers)


KINDS = catalogue((3, 1.0)).kinds
EVENT = json.dumps({"event": "arrive", "id": "x", "nf": "a", "sla_drop": 0.9}).encode()
HEAD = b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(
    EVENT
)


@asynccontextmanager
async def serving(
    path: Path, *, full: bool = False, idle_s: int = 5, tokens: Tokens = OPEN_TO_ALL
) -> AsyncIterator[tuple[int, Engine]]:
    """A service over toy NICs on a free port, where too many requests wait if `full`; idle connections are closed."""
    with State(path, KINDS) as state, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        engine = Engine(Fleet(KINDS), [ToyOracle()])
        writer = make_writer(engine, Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of), state)
        if full:
            writer._most_waiting = 0
        port, requests = listening.getsockname()[1], RequestLog(writer.metrics)
        config = uvicorn.Config(
            make_app(EventRoutes(writer).routes(), writer, tokens, Hosts("127.0.0.1", port, names=["x"]), requests),
            http=Connections(requests),  # type: ignore[arg-type]
            log_config=None, lifespan="on", ws="none", timeout_keep_alive=idle_s, server_header=False,
            date_header=False,
        )  # fmt: skip
        server = StoppingServer(config, writer)
        running = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield port, engine
        server.should_exit = True
        await running


async def sent(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """What comes back until the connection is closed, for parts with a pause after each; none where it is cut off."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answer = asyncio.create_task(reader.read())
    try:
        for part in parts:
            if answer.done():
                break
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)
        return await asyncio.wait_for(answer, 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()
