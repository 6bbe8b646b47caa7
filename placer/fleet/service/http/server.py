"""The server: uvicorn with the routes, and with limits on what a client may take of its time and its memory."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.app import Background, make_app
from placer.fleet.service.http.metrics import Metrics
from placer.fleet.service.http.routes import EventRoutes, QuestionRoutes
from placer.fleet.service.http.tokens import OPEN_TO_ALL, Tokens
from placer.fleet.service.http.writer import Writer
from placer.fleet.service.log import log
from placer.fleet.state.saved import SavedState
from placer.fleet.what_if import WhatIf
from profiles import InputError

GRACE_S = 10
"""Seconds that requests have to end when the service stops."""

MOST_CONNECTIONS = 4_096

MAX_ACCEPTED_PER_TURN = 16
"""Connections that are accepted per turn: uvloop accepts one per socket, and a turn may take 20 ms."""

SOCKET_BACKLOG = 1_024


@dataclass(frozen=True)
class ServerSettings:
    """Where and for whom the service listens.

    `host`, `port`: where; port 0 is a free one. `certificate`, `key`: files for TLS; None for plain HTTP.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Tokens = field(default=OPEN_TO_ALL)
    certificate: Path | None = None
    key: Path | None = None
    log_requests: bool = False


def make_writer(engine: Engine, reader: Reader, state: SavedState) -> Writer:
    if not state.shared:
        return Writer(engine, reader, state, Metrics(engine))
    from placer.fleet.service.http.shared_writer import SharedWriter
    from placer.fleet.state.postgres.state import SharedState

    assert isinstance(state, SharedState)
    return SharedWriter(engine, reader, state, Metrics(engine))


def serve_http(
    writer: Writer,
    what_if: WhatIf,
    settings: ServerSettings,
    listening: socket.socket,
    routes: Sequence[Route] = (),
    background: Sequence[Background] = (),
) -> None:
    """Serve until SIGTERM or Ctrl-C; then finish what was begun.

    `listening`: at the address of the settings; of `bind_socket`. `routes`, `background`: of adapters such as
    Kubernetes.

    Raises InputError when the address is in use.
    """
    all_routes = [*EventRoutes(writer).routes(), *QuestionRoutes(writer, what_if).routes(), *routes]
    app = make_app(all_routes, writer, settings.tokens, background)
    config = uvicorn.Config(
        app, log_config=None, access_log=settings.log_requests, timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=MOST_CONNECTIONS, ssl_certfile=settings.certificate, ssl_keyfile=settings.key,
        server_header=False, date_header=False, lifespan="on", backlog=SOCKET_BACKLOG, ws="none",
        http=LimitedConnection,
        proxy_headers=settings.log_requests,  # who asks is only logged
    )  # fmt: skip
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name, level in (("uvicorn", logging.WARNING), ("uvicorn.access", logging.INFO)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler] if settings.log_requests or name == "uvicorn" else [], False
        logger.setLevel(level)
    with _refusing(settings):
        listening.listen(SOCKET_BACKLOG)  # who connects from now on waits until the service has started
    host, port = listening.getsockname()[:2]
    scheme = "https" if settings.certificate else "http"
    shown = f"[{host}]" if ":" in host else host
    log("listening", address=f"{scheme}://{shown}:{port}", version=writer.version)
    with short_searches():
        StoppingServer(config, writer).run(
            sockets=[listening, *(listening.dup() for _ in range(1, MAX_ACCEPTED_PER_TURN))]
        )
    if writer.failure is not None:
        raise writer.failure
    log("stopped", version=writer.version)


class StoppingServer(uvicorn.Server):
    """Ends requests that wait for the log when a signal comes, so that nothing keeps it from stopping."""

    def __init__(self, config: uvicorn.Config, writer: Writer) -> None:
        super().__init__(config)
        self._writer = writer

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGTERM and Ctrl-C, and go on with the program afterwards, so that it ends as it should."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def on_tick(self, counter: int) -> bool:
        """Also end when the state cannot be written any more."""
        return await super().on_tick(counter) or self._writer.failure is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what waits, then stop."""
        self._writer.stop()
        await super().shutdown(sockets)


@contextmanager
def bind_socket(settings: ServerSettings) -> Iterator[socket.socket]:
    """A socket at the address of the settings, on which nobody can connect yet.

    Raises InputError when the address is in use.
    """
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with _refusing(settings):
            listening.bind((settings.host, settings.port))
        yield listening


@contextmanager
def _refusing(settings: ServerSettings) -> Iterator[None]:
    """InputError where the address cannot be used."""
    try:
        yield
    except OSError as error:
        address = f"{settings.host}:{settings.port}"
        raise InputError.of("--listen", f"{address} cannot be used: {error.strerror}", hint="name another") from error


class JsonLines(logging.Formatter):
    """Log records as lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"log": "request" if record.name == "uvicorn.access" else record.levelname.lower()}
        if record.exc_info:
            line["failure"] = self.formatException(record.exc_info)
        return json.dumps({**line, "message": record.getMessage()})


# Connections: a client has a limited time for a request, and a limited number of bytes for the head of one. Without
# that, a few thousand clients that begin a request and never end it would keep out all others.


HEAD_SECONDS = 10.0
"""Seconds from the start of a connection, or of a further request on it, to the end of the request's headers."""

BODY_SECONDS = 30.0
"""Seconds for the body of a request to arrive, all of it."""

LARGEST_HEAD = 65_536
"""Bytes of a request up to the end of its headers."""

LINGER_SECONDS = 1.0
"""Seconds in which what a client still sends is read and dropped: to close at once would take the answer from it."""

WAITS_FOR_NOTHING, WAITS_FOR_HEAD, WAITS_FOR_BODY = "nothing", "head", "body"


class LimitedConnection(HttpToolsProtocol):
    """A connection that is closed where a request is too slow, or its head too large.

    A request that comes whole, as most do, starts no timer: what is awaited is compared after the parser has read.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._ended = False
        self._request = 0
        self._awaited = WAITS_FOR_HEAD
        self._head_bytes = 0
        self._timed = (0, WAITS_FOR_NOTHING)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the head of a request."""
        super().connection_made(transport)
        self._limit_time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._awaited = WAITS_FOR_NOTHING
        self._limit_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Let the parser read, then see what is awaited now."""
        if self._ended:
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self._awaited is WAITS_FOR_HEAD and self._head_bytes > LARGEST_HEAD:
            self.transport.close()
        if (self._request, self._awaited) != self._timed:
            self._limit_time()

    def on_message_begin(self) -> None:
        """The parser has begun to read a request."""
        super().on_message_begin()
        self._request += 1
        self._awaited, self._head_bytes = WAITS_FOR_HEAD, 0

    def on_headers_complete(self) -> None:
        """The parser has read the head of a request."""
        self._awaited = WAITS_FOR_BODY
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The parser has read all of a request."""
        self._awaited = WAITS_FOR_NOTHING
        super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Answer a request that asks for another protocol, and read nothing more.

        The parser takes what follows its head, as its body, for further requests, which would so be smuggled in.
        """
        self.cycle.keep_alive = False
        self._ended = True

    def _limit_time(self) -> None:
        """Give the client time for what is awaited now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timed = self._request, self._awaited
        if self._awaited is not WAITS_FOR_NOTHING:
            seconds = HEAD_SECONDS if self._awaited is WAITS_FOR_HEAD else BODY_SECONDS
            self._timer = self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """Close the connection, unless it is the service that does not read."""
        if self.flow.read_paused:
            self._limit_time()
            return
        if self._awaited is not WAITS_FOR_BODY or self.pipeline or self.cycle.response_started or self._ended:
            self.transport.close()
            return
        self.transport.write(_too_slow())
        if not self.transport.can_write_eof():  # TLS
            self.transport.close()
            return
        self.transport.write_eof()
        self._ended = True
        self._timer = self.loop.call_later(LINGER_SECONDS, self._end)


def _too_slow() -> bytes:
    """The answer to a request whose body does not arrive."""
    body = json.dumps({"ok": False, "error": f"the request did not arrive within {BODY_SECONDS:g} s"}).encode()
    head = "HTTP/1.1 408 Request Timeout", "content-type: application/json", f"content-length: {len(body)}"
    return "\r\n".join((*head, "connection: close", "", "")).encode() + body


# Searches for cyclic garbage, kept short.
#
# A search visits every object that may be part of a cycle: with a fleet of 10,000 NICs, the service stops for 0.1 s now
# and then. Neither requests nor decisions nor new models leave cycles behind (test_garbage.py).
# So what has survived two searches is left out of all that follow; it is freed when nothing refers to it any more.


YOUNG_GENERATION = 1


@contextmanager
def short_searches() -> Iterator[None]:
    """A time in which only young objects are searched."""
    gc.collect()
    gc.freeze()
    gc.callbacks.append(_leave_out)
    try:
        yield
    finally:
        gc.callbacks.remove(_leave_out)
        gc.unfreeze()


def _leave_out(phase: str, search: Mapping[str, int]) -> None:
    if phase == "stop" and search["generation"] == YOUNG_GENERATION:
        gc.freeze()
