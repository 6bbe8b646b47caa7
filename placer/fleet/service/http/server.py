"""The server: uvicorn with the routes. What a client may take of its time and its memory: `connections.py`."""

from __future__ import annotations

import gc
import logging
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn
from starlette.routing import Route

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.app import Background, make_app
from placer.fleet.service.http.connections import Connections
from placer.fleet.service.http.expirer import Expirer
from placer.fleet.service.http.hosts import Hosts
from placer.fleet.service.http.metrics import Metrics
from placer.fleet.service.http.ownership import Quotas
from placer.fleet.service.http.requests import RequestLog
from placer.fleet.service.http.routes import EventRoutes, QuestionRoutes
from placer.fleet.service.http.tokens import OPEN_TO_ALL, Tokens
from placer.fleet.service.http.writer import Writer
from placer.fleet.service.log import JsonFormatter, log
from placer.fleet.state.saved import SavedState
from placer.fleet.what_if import WhatIf
from profiles import InputError

GRACE_S = 10  # seconds that requests have to end when the service stops

MAX_ACCEPTED_PER_TURN = 16
"""Connections that are accepted per turn: uvloop accepts one per socket, and a turn may take 20 ms."""

SOCKET_BACKLOG = 1_024


@dataclass(frozen=True)
class ServerSettings:
    """Where and for whom the service listens.

    `host`, `port`: where; port 0 is a free one. `names`: further names of the service, where there are no tokens; of
    `read_names`. `certificate`, `key`: files for TLS; None for plain HTTP.
    """

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Tokens = field(default=OPEN_TO_ALL)
    names: Sequence[str] = ()
    certificate: Path | None = None
    key: Path | None = None
    log_requests: bool = False


def make_writer(engine: Engine, reader: Reader, state: SavedState, tokens: Tokens = OPEN_TO_ALL) -> Writer:
    """The writer of a service that keeps the quotas of its token file."""
    quotas = Quotas(tokens.quotas)
    if not state.shared:
        return Writer(engine, reader, state, Metrics(engine), quotas=quotas)
    from placer.fleet.service.http.shared_writer import SharedWriter
    from placer.fleet.state.postgres.state import SharedState

    assert isinstance(state, SharedState)
    return SharedWriter(engine, reader, state, Metrics(engine), quotas=quotas)


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
    host, port = listening.getsockname()[:2]
    scheme = "https" if settings.certificate else "http"
    shown = f"[{host}]" if ":" in host else host
    all_routes = [*EventRoutes(writer).routes(), *QuestionRoutes(writer, what_if).routes(), *routes]
    hosts = Hosts(settings.host, port, scheme, (*settings.names, f"{shown}:{port}"))
    requests = RequestLog(writer.metrics, everything=settings.log_requests)
    config = uvicorn.Config(
        make_app(all_routes, writer, settings.tokens, hosts, requests, [Expirer(writer).run, *background]),
        http=Connections(requests),  # type: ignore[arg-type]
        log_config=None, access_log=False, timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=settings.certificate, ssl_keyfile=settings.key, proxy_headers=False,
        server_header=False, date_header=False, lifespan="on", backlog=SOCKET_BACKLOG, ws="none",
    )  # fmt: skip
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    with _refusing(settings):
        listening.listen(SOCKET_BACKLOG)  # who connects from now on waits until the service has started
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
