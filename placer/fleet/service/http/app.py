"""The application: who may send a request, how it is read, and what is answered where no route answers.

A request is authorised (`Guard`), then goes to its route: events to the writer, questions to the fleet
(`routes.py`), Kubernetes to `../kubernetes`. Requests with a body come by the thousands per second, and go to their
routes from here, past Starlette's router and its middleware.
"""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from placer.fleet.service.http.hosts import Hosts
from placer.fleet.service.http.openapi import (
    JSON_TYPE,
    LINES_TYPE,
    DescribedRoute,
    RouteOperation,
    describe,
    documentation_page,
)
from placer.fleet.service.http.requests import NO_ROUTE, RequestLog
from placer.fleet.service.http.tokens import ASK, DECIDE, AccessToken, Tokens
from placer.fleet.service.http.writer import Overloaded, Stopped, Writer
from placer.fleet.service.log import log
from placer.fleet.service.page import PAGE_HEADERS, page_files
from placer.fleet.state.saved import Unreachable

LARGEST_BODY = 16 * 1024 * 1024  # bytes of a request

RETRY_AFTER = {"Retry-After": "1"}
"""The header of a refusal that is for now only: seconds after which a client may retry."""

CLOSE = {"Connection": "close"}  # the header of a refusal after which nothing more is read

OVERLOAD_SECONDS, SECONDS_PER_REFUSAL = 0.01, 0.0005
"""How long the refusal of an event waits while too many requests do, at least and for each refusal that waits already:
clients that retry as soon as they are answered would otherwise take the time of those that are decided on."""

EVENTS_PATH = "/v1/events"

PROBES = ("/healthz", "/readyz")
"""Paths that are answered whatever their `Host`: probes send addresses that the service does not know."""

OPEN_PATHS = ("/", "/docs", "/openapi.json", *PROBES)  # paths that need no token, besides the files of the page

READ_HEADERS = (
    b"host", b"origin", b"authorization", b"content-type", b"content-length", b"idempotency-key", b"if-version",
)  # fmt: skip
"""Headers that are read: two of one are refused, since a proxy may have read the other one."""

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

    `headers`: names in lower case, and values. `token`: that of who sent it.
    """

    body: bytes
    headers: Headers
    token: AccessToken

    def header(self, name: bytes) -> str | None:
        """The first header of this name; None without one."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)


Handler = Callable[[Posted], Awaitable[Response]]


class PostedEndpoint:
    """Reads a request of limited size, and answers it, whatever happens; as of ASGI.

    `media_types`: those of bodies, without parameters. `largest`: bytes of a body.
    """

    def __init__(self, handler: Handler, media_types: Sequence[str], largest: int) -> None:
        self._handler = handler
        self._media_types = media_types
        self._content_types = frozenset(media_type.encode() for media_type in media_types)
        self.largest = largest

    def refuse(self, content_type: bytes, query: bytes) -> Response | None:
        """The answer to a body of a type that browsers send anywhere, and to parameters, which no such request has."""
        if content_type not in self._content_types:
            media_type = content_type.partition(b";")[0].strip().lower()
            if media_type not in self._content_types:
                return refusal(415, f"Content-Type: send {' or '.join(self._media_types)}, as `curl --json` does")
        return refusal(422, "a query is not possible here") if query else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        try:
            body = scope["state"]["body"] = await _read_body(receive, self.largest)
            posted = Posted(body, scope["headers"], scope["state"]["token"])
            response = await self._handler(posted)
        except ClientDisconnect:
            return
        except Exception as failure:
            response = failure_answer(failure, "POST")
            if response.status_code == UNEXPECTED_STATUS:
                log("failure", error=repr(failure), trace=traceback.format_exception(failure))
        await response(scope, receive, send)


async def _read_body(receive: Receive, largest: int) -> bytes:
    """All that is sent.

    Raises TooLarge when it is more than `largest` bytes. Raises ClientDisconnect when the client leaves before the end.
    """
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part = message.get("body", b"")
        size += len(part)
        if size > largest:
            raise TooLarge(largest)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def posted_route(path: str, handler: Handler, operation: RouteOperation, largest: int = LARGEST_BODY) -> DescribedRoute:
    """A route of requests with a body of JSON, of at most `largest` bytes; JSON Lines where that is described."""
    media_types = (JSON_TYPE, LINES_TYPE) if operation.body is LINES_TYPE else (JSON_TYPE,)
    return DescribedRoute(path, PostedEndpoint(handler, media_types, largest), operation, "POST")


def read_route(
    path: str, handler: Callable[[Request], Awaitable[Response]], operation: RouteOperation
) -> DescribedRoute:
    """A route of requests without a body, which refuses parameters that are not described, or are given twice."""

    async def endpoint(request: Request) -> Response:
        for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
            if name not in operation.query:
                known = ", ".join(operation.query) or "none"
                return refusal(422, f"{name[:100]}: unknown parameter; parameters are: {known}")
            if count > 1:
                return refusal(422, f"{name}: is given twice")
        return await handler(request)

    return DescribedRoute(path, endpoint, operation)


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
            return refusal(413, f"the request is larger than {failure.args[0]:,} bytes", CLOSE)
        case HTTPException(status_code=404):
            return refusal(404, "there is no such path")
        case HTTPException(status_code=405):
            return refusal(405, f"{method} is not possible here", failure.headers)
    return refusal(UNEXPECTED_STATUS, "the service failed; its log says how")


OVERLOAD_ANSWER = failure_answer(Overloaded(), "POST")


class Guard:
    """Lets through only requests that are authorised and small enough; those with a body go straight to their route.

    `hosts`: what `Host` and `Origin` are accepted where no token is needed. `requests`: where all are noted.
    """

    def __init__(
        self, app: ASGIApp, routes: Sequence[Route], writer: Writer, tokens: Tokens, hosts: Hosts, requests: RequestLog
    ) -> None:
        self._app = app
        self._routes = routes
        self._writer = writer
        self._tokens = tokens
        self._hosts = hosts if tokens.everybody else None
        self._requests = requests
        self._refusals = 0
        self._posted = {route.path: route.app for route in routes if isinstance(route.app, PostedEndpoint)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, path = time.perf_counter(), scope["path"]
        posted = self._posted.get(path) if scope["method"] == "POST" else None

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = path if posted is not None else self._route_of(scope)
                self._requests.note(scope, route, message["status"], time.perf_counter() - begun)
            await send(message)

        if path == EVENTS_PATH and self._writer.full:  # first of all: these may be many more than others
            self._writer.metrics.count_overload()
            self._refusals += 1
            try:
                await asyncio.sleep(max(OVERLOAD_SECONDS, SECONDS_PER_REFUSAL * self._refusals))
            finally:
                self._refusals -= 1
            await OVERLOAD_ANSWER(scope, receive, send_noted)
            return
        if self._writer.trouble is not None:
            send_noted = partial(_send_with_age, self._writer, send_noted)
        await (self._refuse(scope, posted) or posted or self._app)(scope, receive, send_noted)

    def _refuse(self, scope: Scope, posted: PostedEndpoint | None) -> Response | None:
        """The answer to a request that is not let through; without one, the token of its client is in its state."""
        headers: Headers = scope["headers"]
        path, state, found = scope["path"], scope["state"], dict(headers)
        if len(found) != len(headers) and (twice := _given_twice(headers)):
            return refusal(400, f"{twice}: is given twice", CLOSE)
        largest = posted.largest if posted is not None else LARGEST_BODY
        length = found.get(b"content-length", b"0").strip()
        if length.isdigit() and int(length) > largest:
            return failure_answer(TooLarge(largest), scope["method"])
        if path in PROBES:
            return None
        host = found.get(b"host")
        if host is None:
            return refusal(400, "Host: is missing", CLOSE)
        if self._hosts is not None and (fault := self._hosts.fault(scope, host, found.get(b"origin"))):
            return refusal(*fault)
        if path in OPEN_PATHS or path.startswith(PAGE_FILES):
            return None
        token = self._tokens.find(found.get(b"authorization", b"").decode("latin-1"))
        if token is None:
            return refusal(401, "a known token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        state["actor"], state["token"] = token.name, token
        needed = (
            DECIDE if path.startswith((EVENTS_PATH, "/k8s/v1/")) else ASK
        )  # `bind` decides on what `filter` has seen
        if needed not in token.scopes:
            return refusal(403, f"the token does not have the scope '{needed}'")
        return None if posted is None else posted.refuse(found.get(b"content-type", b""), scope["query_string"])

    def _route_of(self, scope: Scope) -> str:
        """The path of the route of a request, with the names of its parameters."""
        for route in self._routes:
            if route.matches(scope)[0] is not Match.NONE:
                return route.path_format
        path: str = scope["path"]
        return path if path in OPEN_PATHS else NO_ROUTE


async def _send_with_age(writer: Writer, send: Send, message: Message) -> None:
    """Say of what is read how old it may be, while the state cannot be written or reached."""
    if message["type"] == "http.response.start" and message["status"] < 300 and writer.age_s is not None:
        message["headers"] = [*message["headers"], (b"age", str(writer.age_s).encode())]
    await send(message)


def _given_twice(headers: Headers) -> str | None:
    """The first header that is read and is there more than once."""
    names = [name for name, _ in headers]
    return next((name.decode() for name in READ_HEADERS if names.count(name) > 1), None)


def make_app(
    routes: Sequence[Route],
    writer: Writer,
    tokens: Tokens,
    hosts: Hosts,
    requests: RequestLog,
    background: Sequence[Background] = (),
) -> ASGIApp:
    """The application with these routes and their description, behind authorisation and limits.

    `hosts`, `requests`: as of `Guard`. `background`: what runs as long as the application, besides the writer.
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
    return Guard(app, routes, writer, tokens, hosts, requests)


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
