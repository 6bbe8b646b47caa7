"""The application: routes, who may use them, and their limits.

A request is authorised (`access.py`), then goes to a route: events to the writer (`events.py`, `writer.py`), questions
to `questions.py`, Kubernetes to `placer/service/kubernetes`. Requests with a body come by the thousands per second, and
go to their routes from here (`posted.py`), or past all of this (`direct.py`); FastAPI serves the others.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from placer.online.saved import Unreachable
from placer.service.http.access import AccessControl
from placer.service.http.failures import UNEXPECTED, failure_answer
from placer.service.http.openapi import described
from placer.service.http.posted import PostedEndpoint
from placer.service.http.tokens import Tokens
from placer.service.http.turned_away import EVENTS, HELD_SECONDS, TURNED_AWAY, TURNED_AWAY_HEADERS
from placer.service.http.writer import Stopped, Writer
from placer.service.log import log

Background = Callable[[], Coroutine[None, None, None]]


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
    return app, Guard(app, routes, AccessControl(tokens), writer)


async def _logged(background: Background) -> None:
    """Run what runs in the background; its failure ends only itself, and is logged."""
    try:
        await background()
    except Exception as failure:
        log("failure", error=repr(failure), trace=traceback.format_exception(failure))


async def _answer_failure(request: Request, failure: Exception) -> Response:
    return failure_answer(failure, request.method)


class Guard:
    """Lets through only requests that are authorised and small enough; those with a body go straight to their route."""

    def __init__(self, app: ASGIApp, routes: Sequence[Route], access: AccessControl, writer: Writer) -> None:
        self._app = app
        self._writer = writer
        self._access = access
        self._posted = {route.path: route.app for route in routes if isinstance(route.app, PostedEndpoint)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        if path == EVENTS and self._writer.full:
            self._writer.metrics.overloaded()
            await asyncio.sleep(HELD_SECONDS)
            await send({"type": "http.response.start", "status": 429, "headers": list(TURNED_AWAY_HEADERS)})
            await send({"type": "http.response.body", "body": TURNED_AWAY})
            return
        allowed = self._access.check(path, scope["headers"])
        if isinstance(allowed, Response):
            await allowed(scope, receive, send)
            return
        scope["state"]["administers"] = allowed
        if scope["method"] == "POST" and path in self._posted:
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
            if response.status_code == UNEXPECTED:
                raise


def openapi_route(*, kubernetes: bool) -> Route:
    """`GET /openapi.json`."""
    text = json.dumps(described(kubernetes=kubernetes))

    async def answer(request: Request) -> Response:
        return Response(text, media_type="application/json")

    return Route("/openapi.json", answer)
