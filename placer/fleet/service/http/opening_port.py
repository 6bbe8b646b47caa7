"""The port while the service is opened: it listens already, and says what is waited for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from socket import socket
from threading import Thread
from typing import TypeVar

import uvicorn
from starlette.types import Receive, Scope, Send

from placer.fleet.service.http.app import RETRY_AFTER, answer, refusal
from placer.fleet.service.http.connections import Connections
from placer.fleet.service.http.requests import RequestLog
from placer.fleet.service.http.server import SOCKET_BACKLOG, ServerSettings
from placer.fleet.service.log import log
from placer.progress import MESSAGE_AFTER_S, Progress, Stage

_Opened = TypeVar("_Opened")


class OpeningProgress(Progress):
    """Progress on stderr that others can ask for, too.

    `stage`: what is waited for now.
    """

    stage = "loading the program"

    @contextmanager
    def waiting(self, message: str, after_s: float = MESSAGE_AFTER_S) -> Iterator[None]:
        self.stage = message
        with super().waiting(message, after_s):
            yield

    @contextmanager
    def stages(self, prefix: str = "") -> Iterator[Stage]:
        with super().stages(prefix) as show:

            def note(name: str, done: int, total: int | None) -> None:
                self.stage = f"{prefix}{name}: {done:,} of {total or '?':,}" if total else f"{prefix}{name}: {done:,}"
                show(name, done, total)

            yield note


def open_behind_port(
    listening: socket, settings: ServerSettings, progress: OpeningProgress, opening: Callable[[], _Opened]
) -> _Opened:
    """What `opening` returns or raises, which runs in a thread of its own; meanwhile requests are answered with 503.

    `listening`: at the address of the settings; it stays open. A signal that ends the process ends it at once.
    """

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/healthz":
            response = answer({"ok": True})
        else:
            response = refusal(503, f"the service is starting: {progress.stage}", RETRY_AFTER)
        await response(scope, receive, send)

    config = uvicorn.Config(
        application,
        http=Connections(RequestLog(None)),  # type: ignore[arg-type]
        log_config=None, lifespan="off", ws="none", server_header=False, date_header=False, backlog=SOCKET_BACKLOG,
        timeout_graceful_shutdown=1, ssl_certfile=settings.certificate, ssl_keyfile=settings.key,
    )  # fmt: skip
    server, opened = uvicorn.Server(config), Future[_Opened]()

    def work() -> None:
        try:
            opened.set_result(opening())
        except BaseException as failure:
            opened.set_exception(failure)
        server.should_exit = True

    listening.listen(SOCKET_BACKLOG)
    log("opening", port=listening.getsockname()[1])
    Thread(target=work, name="opening", daemon=True).start()
    server.run(sockets=[listening.dup()])
    return opened.result()
