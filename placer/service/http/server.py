"""The server: the routes put together, and uvicorn with them."""

from __future__ import annotations

import json
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import uvicorn
from starlette.routing import Route

from placer.online.engine import Engine
from placer.online.protocol import Reader
from placer.online.saved import SavedState
from placer.online.what_if import WhatIf
from placer.service.http.access import AccessControl
from placer.service.http.app import Background, make_app, openapi_route
from placer.service.http.connections import LimitedConnection
from placer.service.http.direct import DirectRequests
from placer.service.http.events import EventRoutes
from placer.service.http.garbage import short_searches
from placer.service.http.metrics import Metrics
from placer.service.http.page import page_routes
from placer.service.http.posted import posted_route
from placer.service.http.questions import QuestionRoutes
from placer.service.http.tokens import OPEN, Tokens
from placer.service.http.turned_away import TurnedAway
from placer.service.http.writer import Writer
from placer.service.log import log
from profiles import InputError

GRACE_S = 10
"""Seconds that requests have to end when the service stops."""

MOST_CONNECTIONS = 4_096

ACCEPTED = 16
"""Connections that are accepted per turn: uvloop accepts one per socket, and a turn may take 20 ms."""

BACKLOG = 1_024
"""Connections that wait to be accepted."""


@dataclass(frozen=True)
class ServerSettings:
    """Where and for whom the service listens.

    Parameters
    ----------
    host, port
        Where; port 0 is a free one.
    tokens
        Who may do what.
    certificate, key
        Files for TLS; None for plain HTTP.
    log_requests
        Whether every request is logged.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Tokens = field(default=OPEN)
    certificate: Path | None = None
    key: Path | None = None
    log_requests: bool = False


def question_routes(routes: QuestionRoutes) -> list[Route]:
    """Everything that reads."""
    return [
        posted_route("/v1/ask", routes.ask),
        Route("/v1/summary", routes.summary),
        Route("/v1/nics", routes.nics),
        Route("/v1/nics/{nic}", routes.nic),
        Route("/v1/tenants/{id:path}", routes.tenant),
        Route("/v1/log", routes.log),
        Route("/healthz", routes.alive),
        Route("/readyz", routes.ready),
        Route("/metrics", routes.metrics),
    ]


def event_routes(routes: EventRoutes) -> list[Route]:
    """Everything that decides."""
    return [
        posted_route("/v1/events", routes.one),
        posted_route("/v1/events:batch", routes.batch),
    ]


def make_writer(engine: Engine, reader: Reader, state: SavedState) -> Writer:
    """The writer of a fleet."""
    if not state.shared:
        return Writer(engine, reader, state, Metrics(engine))
    from placer.online.shared.state import SharedState
    from placer.service.http.shared_writer import SharedWriter

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

    Parameters
    ----------
    listening
        At the address of the settings; of `bound_to`.
    routes, background
        Of adapters such as Kubernetes.

    Raises
    ------
    InputError
        When the address is in use.
    """
    questions = QuestionRoutes(writer, what_if)
    described = openapi_route(kubernetes=bool(routes))
    all_routes = [*event_routes(EventRoutes(writer)), *question_routes(questions), *routes, described, *page_routes()]
    _, app = make_app(all_routes, writer, settings.tokens, background)
    config = uvicorn.Config(
        app, log_config=None, access_log=settings.log_requests, timeout_graceful_shutdown=GRACE_S,
        limit_concurrency=MOST_CONNECTIONS, ssl_certfile=settings.certificate, ssl_keyfile=settings.key,
        server_header=False, date_header=False, lifespan="on", backlog=BACKLOG, ws="none",
        http=_connections(all_routes, writer, settings),  # type: ignore[arg-type]
        proxy_headers=settings.log_requests,  # who asks is only logged
    )  # fmt: skip
    _log_as_json(requests=settings.log_requests)
    with _refusing(settings):
        listening.listen(BACKLOG)  # who connects from now on waits until the service has started
    host, port = listening.getsockname()[:2]
    scheme = "https" if settings.certificate else "http"
    shown = f"[{host}]" if ":" in host else host
    log("listening", address=f"{scheme}://{shown}:{port}", version=writer.version)
    with short_searches():
        StoppingServer(config, writer).run(sockets=[listening, *(listening.dup() for _ in range(1, ACCEPTED))])
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


def _connections(routes: Sequence[Route], writer: Writer, settings: ServerSettings) -> Callable[..., LimitedConnection]:
    """Makes connections; those that log all requests answer none by themselves."""
    direct = DirectRequests(routes, AccessControl(settings.tokens), TurnedAway(writer))
    return partial(LimitedConnection, direct=None if settings.log_requests else direct)


@contextmanager
def bound_to(settings: ServerSettings) -> Iterator[socket.socket]:
    """A socket at the address of the settings, on which nobody can connect yet.

    Raises
    ------
    InputError
        When the address is in use.
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
        """One line."""
        line = {"log": "request" if record.name == "uvicorn.access" else record.levelname.lower()}
        if record.exc_info:
            line["failure"] = self.formatException(record.exc_info)
        return json.dumps({**line, "message": record.getMessage()})


def _log_as_json(*, requests: bool) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name, level in (("uvicorn", logging.WARNING), ("uvicorn.access", logging.INFO)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler] if requests or name == "uvicorn" else [], False
        logger.setLevel(level)
