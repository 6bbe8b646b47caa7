"""The application: routes, who may use them, and their limits.

A request is authorised here, then goes to a route: events to the writer (`events.py`, `writer.py`), questions to
`questions.py`, Kubernetes to `placer/service/kubernetes`. Requests with a body come by the thousands per second, and go
to their routes from here (`posted.py`); FastAPI serves the others.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from placer.online.saved import Unreachable
from placer.service.http.answers import RETRY_AFTER, refusal
from placer.service.http.connections import is_one_request
from placer.service.http.openapi import described
from placer.service.http.posted import LARGEST_BODY, PostedEndpoint, TooLarge
from placer.service.http.tokens import ADMIN, ASK, DECIDE, Tokens
from placer.service.http.writer import Overloaded, Stopped, Writer
from placer.service.log import log

Background = Callable[[], Coroutine[None, None, None]]

OPEN_PATHS = ("/healthz", "/readyz", "/openapi.json")
"""Paths that need no token, besides the page itself."""

PAGE_PATHS = ("/page/",)

EVENTS = "/v1/events"

OVERLOAD = "too many requests wait: come again"

TURNED_AWAY = json.dumps({"ok": False, "error": OVERLOAD}).encode()
"""The answer to an event while too many wait."""

TURNED_AWAY_HEADERS = (
    (b"content-type", b"application/json"),
    (b"retry-after", RETRY_AFTER.encode()),
    (b"content-length", str(len(TURNED_AWAY)).encode()),
)

TOO_LARGE = f"the request is larger than {LARGEST_BODY:,} bytes"

UNEXPECTED = 500


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
    for failure in (Stopped, Unreachable, 404, 405, Exception):
        app.add_exception_handler(failure, _answer_failure)
    return app, Guard(app, routes, tokens, writer)


async def _logged(background: Background) -> None:
    """Run what runs in the background; its failure ends only itself, and is logged."""
    try:
        await background()
    except Exception as failure:
        log("failure", error=repr(failure), trace=traceback.format_exception(failure))


async def _answer_failure(request: Request, failure: Exception) -> Response:
    return failure_answer(failure, request.method)


def failure_answer(failure: Exception, method: str) -> Response:
    """What is answered when a route fails."""
    match failure:
        case Overloaded():
            return refusal(429, OVERLOAD, {"Retry-After": RETRY_AFTER})
        case Stopped():
            return refusal(503, "the service is stopping", {"Retry-After": RETRY_AFTER})
        case Unreachable():
            return refusal(503, "the state cannot be reached: come again", {"Retry-After": RETRY_AFTER})
        case TooLarge():
            return refusal(413, TOO_LARGE)
        case HTTPException(status_code=404):
            return refusal(404, "there is no such path")
        case HTTPException(status_code=405):
            return refusal(405, f"{method} is not possible here", failure.headers)
    return refusal(500, "the service failed; its log says how")


def turning_away(writer: Writer) -> Callable[[bytes], bytes | None]:
    """Which requests a connection turns away by itself, and how: events that come whole while too many wait."""
    headers = b"".join(b"%b: %b\r\n" % header for header in TURNED_AWAY_HEADERS)
    answer = b"HTTP/1.1 429 Too Many Requests\r\n%b\r\n%b" % (headers, TURNED_AWAY)
    event = f"POST {EVENTS} HTTP/1.1\r\n".encode()

    def turn_away(request: bytes) -> bytes | None:
        if not (writer.full and request.startswith(event) and is_one_request(request)):
            return None
        writer.metrics.overloaded()
        return answer

    return turn_away


class Guard:
    """Lets through only requests that are authorised and small enough; those with a body go straight to their route."""

    def __init__(self, app: ASGIApp, routes: Sequence[Route], tokens: Tokens, writer: Writer) -> None:
        self._app = app
        self._writer = writer
        self._tokens = tokens
        self._posted = {route.path: route.app for route in routes if isinstance(route.app, PostedEndpoint)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path == EVENTS and self._writer.full:
            self._writer.metrics.overloaded()
            await send({"type": "http.response.start", "status": 429, "headers": list(TURNED_AWAY_HEADERS)})
            await send({"type": "http.response.body", "body": TURNED_AWAY})
            return
        wrong = self._unauthorised(scope)
        if wrong is not None:
            await wrong(scope, receive, send)
        elif scope["method"] == "POST" and path in self._posted:
            await self._answer(self._posted[path], scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _answer(self, endpoint: PostedEndpoint, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await endpoint(scope, receive, send)
        except ClientDisconnect:
            return
        except Exception as failure:
            response = failure_answer(failure, scope["method"])
            await response(scope, receive, send)
            if isinstance(failure, Overloaded):
                self._writer.metrics.overloaded()
            if response.status_code == UNEXPECTED:
                raise

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
        scope["state"]["administers"] = ADMIN in scopes
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > LARGEST_BODY:
            return refusal(413, TOO_LARGE)
        return None


def _scope_needed(path: str) -> str:
    if path.startswith(("/v1/events", "/k8s/v1/bind")):
        return DECIDE
    return ASK


def openapi_route(*, kubernetes: bool) -> Route:
    """`GET /openapi.json`."""
    text = json.dumps(described(kubernetes=kubernetes))

    async def answer(request: Request) -> Response:
        return Response(text, media_type="application/json")

    return Route("/openapi.json", answer)
