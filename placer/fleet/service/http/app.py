"""The application: who may send a request, how it is read, and what is answered where no route answers.

A request is authorised (`Guard`), then goes to its route: events to the writer, questions to the fleet
(`routes.py`), Kubernetes to `../kubernetes`. Requests with a body come by the thousands per second, and go to their
routes from here, past Starlette's router and its middleware.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from placer.fleet.service.http.openapi import (
    JSON_TYPE,
    LINES_TYPE,
    DescribedRoute,
    RouteOperation,
    describe,
    documentation_page,
)
from placer.fleet.service.http.tokens import ADMIN, ASK, DECIDE, Tokens
from placer.fleet.service.http.writer import Overloaded, Stopped, Writer
from placer.fleet.service.log import log
from placer.fleet.service.page import PAGE_HEADERS, page_files
from placer.fleet.state.saved import Unreachable

LARGEST_BODY = 16 * 1024 * 1024
"""Bytes of a request."""

RETRY_AFTER = {"Retry-After": "1"}
"""The header of a refusal that is for now only: seconds after which a client may retry."""

OVERLOAD_SECONDS, SECONDS_PER_REFUSAL = 0.01, 0.0005
"""How long the refusal of an event waits while too many requests do, at least and for each refusal that waits already:
clients that retry as soon as they are answered would otherwise take the time of those that are decided on."""

EVENTS_PATH = "/v1/events"

OPEN_PATHS = ("/", "/docs", "/healthz", "/openapi.json", "/readyz")
"""Paths that need no token, besides the files of the page."""

PAGE_FILES = "/page/"

UNEXPECTED_STATUS = 500

Background = Callable[[], Coroutine[None, None, None]]
Headers = Sequence[tuple[bytes, bytes]]


def answer(value: object, status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type=JSON_TYPE)


def lines(texts: Iterable[str]) -> Response:
    return Response("".join(f"{text}\n" for text in texts), media_type=LINES_TYPE)


def refusal(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Why a request is refused."""
    return Response(json.dumps({"ok": False, "error": message}), status, dict(headers or {}), JSON_TYPE)


class TooLarge(Exception):
    """A request has more bytes than are taken."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A request, whole.

    `headers`: names in lower case, and values. `administers`: whether who sent it may change NICs.
    """

    body: bytes
    headers: Headers
    administers: bool

    def header(self, name: bytes) -> str | None:
        """The first header of this name; None without one."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)


Handler = Callable[[Posted], Awaitable[Response]]


class PostedEndpoint:
    """Reads a request of limited size, and answers it, whatever happens; as of ASGI."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        try:
            posted = Posted(await _read_body(receive), scope["headers"], scope["state"]["administers"])
            response = await self._handler(posted)
        except ClientDisconnect:
            return
        except Exception as failure:
            response = failure_answer(failure, "POST")
            if response.status_code == UNEXPECTED_STATUS:
                log("failure", error=repr(failure), trace=traceback.format_exception(failure))
        await response(scope, receive, send)


async def _read_body(receive: Receive) -> bytes:
    """All that is sent.

    Raises TooLarge when it is more than `LARGEST_BODY`. Raises ClientDisconnect when the client leaves before the end.
    """
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            raise TooLarge
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def posted_route(path: str, handler: Handler, operation: RouteOperation) -> DescribedRoute:
    return DescribedRoute(path, PostedEndpoint(handler), operation, "POST")


def failure_answer(failure: Exception, method: str) -> Response:
    """What is answered when a route fails."""
    match failure:
        case Overloaded():
            return refusal(429, "too many requests are queued; retry later", RETRY_AFTER)
        case Stopped():
            return refusal(503, "the service is stopping", RETRY_AFTER)
        case Unreachable():
            return refusal(503, str(failure), RETRY_AFTER)
        case TooLarge():
            return refusal(413, f"the request is larger than {LARGEST_BODY:,} bytes")
        case HTTPException(status_code=404):
            return refusal(404, "there is no such path")
        case HTTPException(status_code=405):
            return refusal(405, f"{method} is not possible here", failure.headers)
    return refusal(UNEXPECTED_STATUS, "the service failed; its log says how")


OVERLOAD_ANSWER = failure_answer(Overloaded(), "POST")


class Guard:
    """Lets through only requests that are authorised and small enough; those with a body go straight to their route."""

    def __init__(self, app: ASGIApp, routes: Sequence[Route], tokens: Tokens, writer: Writer) -> None:
        self._app = app
        self._writer = writer
        self._tokens = tokens
        self._refusals = 0
        self._posted = {route.path: route.app for route in routes if isinstance(route.app, PostedEndpoint)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path == EVENTS_PATH and self._writer.full:  # first of all: these may be many more than others
            self._writer.metrics.count_overload()
            self._refusals += 1
            try:
                await asyncio.sleep(max(OVERLOAD_SECONDS, SECONDS_PER_REFUSAL * self._refusals))
            finally:
                self._refusals -= 1
            await OVERLOAD_ANSWER(scope, receive, send)
            return
        allowed = self._check(path, scope["headers"])
        if isinstance(allowed, Response):
            await allowed(scope, receive, send)
            return
        scope["state"]["administers"] = allowed
        posted = self._posted.get(path) if scope["method"] == "POST" else None
        if self._writer.trouble is not None:
            send = partial(_send_with_age, self._writer, send)
        await (posted or self._app)(scope, receive, send)

    def _check(self, path: str, headers: Headers) -> Response | bool:
        """Why a request is refused; if it is not, whether who sent it may change NICs."""
        if path in OPEN_PATHS or path.startswith(PAGE_FILES):
            return False
        found = dict(headers)
        scopes = self._tokens.scopes(found.get(b"authorization", b"").decode("latin-1") or None)
        if scopes is None:
            return refusal(401, "a known token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        needed = DECIDE if path.startswith((EVENTS_PATH, "/k8s/v1/bind")) else ASK
        if needed not in scopes:
            return refusal(403, f"the token does not have the scope '{needed}'")
        length = found.get(b"content-length", b"0")
        if length.isdigit() and int(length) > LARGEST_BODY:
            return failure_answer(TooLarge(), "POST")
        return ADMIN in scopes


async def _send_with_age(writer: Writer, send: Send, message: Message) -> None:
    """Say of what is read how old it may be, while the state cannot be written or reached."""
    if message["type"] == "http.response.start" and message["status"] < 300 and writer.age_s is not None:
        message["headers"] = [*message["headers"], (b"age", str(writer.age_s).encode())]
    await send(message)


def make_app(routes: Sequence[Route], writer: Writer, tokens: Tokens, background: Sequence[Background] = ()) -> ASGIApp:
    """The application with these routes and their description, behind authorisation and limits.

    `background`: what runs as long as the application, besides the writer.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(writer.run()), *(asyncio.create_task(_run_logged(task)) for task in background)]
        yield
        writer.stop()
        await asyncio.gather(tasks[0], return_exceptions=True)
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks[1:], return_exceptions=True)

    app = Starlette(
        routes=[*routes, *_file_routes(routes)],
        exception_handlers=dict.fromkeys((Stopped, Unreachable, 404, 405, Exception), _answer_failure),
        lifespan=lifespan,
    )
    return Guard(app, routes, tokens, writer)


async def _run_logged(background: Background) -> None:
    """Run what runs in the background; its failure ends only itself, and is logged."""
    try:
        await background()
    except Exception as failure:
        log("failure", error=repr(failure), trace=traceback.format_exception(failure))


async def _answer_failure(request: Request, failure: Exception) -> Response:
    return failure_answer(failure, request.method)


def _file_routes(routes: Sequence[Route]) -> list[Route]:
    """`/` and `/page/...`, the page for people; `/openapi.json` and `/docs`, the description of the routes."""
    document = cache(partial(describe, routes))  # made once, when it is first asked for: it takes 0.1 s
    served: dict[str, tuple[Callable[[], bytes], str, Mapping[str, str]]] = {
        path: (partial(bytes, file.content), file.media_type, PAGE_HEADERS) for path, file in page_files().items()
    }
    served["/openapi.json"] = cache(lambda: json.dumps(document()).encode()), JSON_TYPE, {}
    served["/docs"] = cache(lambda: documentation_page(document()).encode()), "text/html; charset=utf-8", PAGE_HEADERS
    return [_file_route(path, *file) for path, file in served.items()]


def _file_route(path: str, read: Callable[[], bytes], media_type: str, headers: Mapping[str, str]) -> Route:
    async def endpoint(request: Request) -> Response:
        return Response(read(), media_type=media_type, headers=dict(headers))

    return Route(path, endpoint)
