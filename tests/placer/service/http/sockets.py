"""The HTTP service over toy NICs on a socket, and clients that say what they want on it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import uvicorn

from placer.model.fleet import Fleet
from placer.online.engine import Engine
from placer.online.protocol import Reader
from placer.online.store import State
from placer.service.http.access import AccessControl
from placer.service.http.app import make_app
from placer.service.http.connections import LimitedConnection
from placer.service.http.direct import DirectRequests
from placer.service.http.events import EventRoutes
from placer.service.http.server import StoppingServer, event_routes, make_writer
from placer.service.http.tokens import OPEN, Tokens
from placer.service.http.turned_away import TurnedAway
from placer.testing.toy import TRAFFIC, ToyOracle, catalogue

KINDS = catalogue((3, 1.0)).kinds
EVENT = json.dumps({"event": "arrive", "id": "x", "nf": "a", "sla_drop": 0.9}).encode()
HEAD = b"POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(EVENT)


@asynccontextmanager
async def serving(
    path: Path, *, full: bool = False, idle_s: int = 5, direct: bool = True, tokens: Tokens = OPEN
) -> AsyncIterator[tuple[int, Engine]]:
    """A service over toy NICs on a free port, where too many requests wait if `full`; idle connections are closed.

    Requests are all parsed if not `direct`.
    """
    with State(path, KINDS) as state, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        engine = Engine(Fleet(KINDS), [ToyOracle()])
        writer = make_writer(engine, Reader(TRAFFIC, lambda workload: (), engine.workload_of), state)
        routes = event_routes(EventRoutes(writer))
        _, app = make_app(routes, writer, tokens)
        if full:
            writer._most_waiting = 0
        directly = DirectRequests(routes, AccessControl(tokens), TurnedAway(writer)) if direct else None
        made = partial(LimitedConnection, direct=directly)
        config = uvicorn.Config(
            app, log_config=None, lifespan="on", http=made, ws="none", timeout_keep_alive=idle_s,
            server_header=False, date_header=False,
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
