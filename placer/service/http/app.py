"""The application: routes, who may use them, and their limits.

A request is authorised here, then goes to a route: events to the writer (`events.py`, `writer.py`), questions to
`questions.py`, Kubernetes to `placer/service/kubernetes`. Routes that answer thousands of requests per second are plain
Starlette routes; FastAPI describes all of them.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from placer.online.saved import Unreachable
from placer.service.http.answers import BODY_SECONDS, RETRY_AFTER, refusal
from placer.service.http.openapi import described
from placer.service.http.tokens import ADMIN, ASK, DECIDE, Tokens
from placer.service.http.writer import Overloaded, Stopped, Writer
from placer.service.log import log

Handler = Callable[[Request], Awaitable[Response]]
FailureHandler = Callable[[Request, Exception], Awaitable[Response]]
Background = Callable[[], Coroutine[None, None, None]]

OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json")
"""Paths that need no token, besides the page itself."""

PAGE_PATHS = ("/page/",)

EVENTS = "/v1/events"

OVERLOAD = "too many requests wait: come again"

TURNED_AWAY: tuple[Message, ...] = (
    {
        "type": "http.response.start",
        "status": 429,
        "headers": [
            (b"content-type", b"application/json"),
            (b"retry-after", RETRY_AFTER.encode()),
            (b"content-length", str(len(json.dumps({"ok": False, "error": OVERLOAD}))).encode()),
        ],
    },
    {"type": "http.response.body", "body": json.dumps({"ok": False, "error": OVERLOAD}).encode()},
)
"""The answer to an event while too many wait."""

LARGEST_BODY = 16 * 1024 * 1024
"""Bytes of a request."""


def make_app(
    routes: Sequence[Route], writer: Writer, tokens: Tokens, background: Sequence[Background] = ()
) -> tuple[FastAPI, ASGIApp]:
    """The FastAPI application with these routes, and the same behind authorisation and limits, which is to be served.

    Parameters
    ----------
    background
        What runs as long as the application, besides the writer.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(writer.run()), *(asyncio.create_task(_logged(one)) for one in background)]
        yield
        writer.stop()
        await asyncio.gather(tasks[0], return_exceptions=True)
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks[1:], return_exceptions=True)

    app = FastAPI(title="nf-placer", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.router.routes.extend(routes)
    for failure, handler in _failures(writer).items():
        app.add_exception_handler(failure, handler)
    return app, Guard(app, tokens, writer)


async def _logged(background: Background) -> None:
    """Run what runs in the background; its failure ends only itself, and is logged."""
    try:
        await background()
    except Exception as failure:
        log("failure", error=repr(failure), trace=traceback.format_exception(failure))


def _failures(writer: Writer) -> dict[int | type[Exception], FailureHandler]:
    """What is answered when a route fails."""

    async def overloaded(request: Request, error: Exception) -> Response:
        writer.metrics.overloaded()
        return refusal(429, OVERLOAD, {"Retry-After": RETRY_AFTER})

    async def stopped(request: Request, error: Exception) -> Response:
        return refusal(503, "the service is stopping", {"Retry-After": RETRY_AFTER})

    async def unreachable(request: Request, error: Exception) -> Response:
        return refusal(503, "the state cannot be reached: come again", {"Retry-After": RETRY_AFTER})

    async def too_large(request: Request, error: Exception) -> Response:
        return refusal(413, f"the request is larger than {LARGEST_BODY:,} bytes")

    async def too_slow(request: Request, error: Exception) -> Response:
        return refusal(408, f"the request did not arrive within {BODY_SECONDS:g} s")

    async def unknown(request: Request, error: Exception) -> Response:
        return refusal(404, "there is no such path")

    async def wrong_method(request: Request, error: Exception) -> Response:
        return refusal(405, f"{request.method} is not possible here", getattr(error, "headers", None))

    async def failed(request: Request, error: Exception) -> Response:
        return refusal(500, "the service failed; its log says how")

    return {
        Overloaded: overloaded, Stopped: stopped, Unreachable: unreachable, TooLarge: too_large,
        TimeoutError: too_slow, 404: unknown, 405: wrong_method, Exception: failed,
    }  # fmt: skip


class Guard:
    """Lets through only requests that are authorised, small enough and sent in time."""

    def __init__(self, app: ASGIApp, tokens: Tokens, writer: Writer) -> None:
        self._app = app
        self._writer = writer
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._writer.full and scope["path"] == EVENTS:  # turned away as cheaply as can be
            self._writer.metrics.overloaded()
            for message in TURNED_AWAY:
                await send(message)
            return
        wrong = self._unauthorised(scope)
        if wrong is None:
            await self._app(scope, Limited(receive), send)
        else:
            await wrong(scope, receive, send)

    def _unauthorised(self, scope: Scope) -> Response | None:
        path = scope["path"]
        if path in OPEN_PATHS or path == "/" or path.startswith(PAGE_PATHS):
            return None
        headers = dict(scope["headers"])
        scopes = self._tokens.scopes(headers.get(b"authorization", b"").decode("latin-1") or None)
        if scopes is None:
            return refusal(401, "a known token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        needed = _scope_needed(path)
        if needed not in scopes:
            return refusal(403, f"the token does not have the scope '{needed}'")
        scope["state"] = {**scope.get("state", {}), "administers": ADMIN in scopes}
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > LARGEST_BODY:
            return refusal(413, f"the request is larger than {LARGEST_BODY:,} bytes")
        return None


class TooLarge(Exception):
    """A request has more bytes than are taken."""


class Limited:
    """Receives a request of limited size in limited time."""

    __slots__ = ("_complete", "_receive", "_size", "_until")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._size = 0
        self._complete = False
        self._until = asyncio.get_running_loop().time() + BODY_SECONDS

    async def __call__(self) -> Message:
        """The next part; when there is none left, the end of the connection, which may take its time."""
        if self._complete:
            return await self._receive()
        async with asyncio.timeout_at(self._until):
            message = await self._receive()
        self._size += len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        if self._size > LARGEST_BODY:
            raise TooLarge
        return message


def _scope_needed(path: str) -> str:
    if path.startswith(("/v1/events", "/k8s/v1/bind")):
        return DECIDE
    return ASK


def routes_of(handlers: dict[tuple[str, str], Handler]) -> list[Route]:
    """Routes by method and path."""
    return [Route(path, handler, methods=[method]) for (method, path), handler in handlers.items()]


def openapi_route(*, kubernetes: bool) -> Route:
    """`GET /openapi.json`."""
    text = json.dumps(described(kubernetes=kubernetes))

    async def answer(request: Request) -> Response:
        return Response(text, media_type="application/json")

    return Route("/openapi.json", answer)
