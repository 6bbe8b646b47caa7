"""The HTTP service over toy NICs on a socket, and clients that say what they want on it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.app import make_app
from placer.fleet.service.http.routes import EventRoutes
from placer.fleet.service.http.server import LimitedConnection, StoppingServer, make_writer
from placer.fleet.service.http.tokens import OPEN_TO_ALL, Tokens
from placer.fleet.state.store import State
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue

KINDS = catalogue((3, 1.0)).kinds
EVENT = json.dumps({"event": "arrive", "id": "x", "nf": "a", "sla_drop": 0.9}).encode()
HEAD = b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(EVENT)


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
        config = uvicorn.Config(
            make_app(EventRoutes(writer).routes(), writer, tokens), log_config=None, lifespan="on",
            http=LimitedConnection, ws="none", timeout_keep_alive=idle_s, server_header=False, date_header=False,
        )  # fmt: skip
        server = StoppingServer(config, writer)
        running = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield listening.getsockname()[1], engine
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
