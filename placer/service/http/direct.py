"""Requests that come whole, as most do, go from the connection straight to their handler.

Events and questions come by the thousands per second, and what a general server does for each of them takes longer than
to decide. All that is unusual about a request (its method, its version, a header that says more than who sends how
much) is left to the general server, which answers it in the same way.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from placer.service.http.access import AccessControl
from placer.service.http.failures import UNEXPECTED, failure_answer
from placer.service.http.posted import Handler, Posted, PostedEndpoint
from placer.service.http.turned_away import TurnedAway
from placer.service.log import log

USUAL_HEAD = re.compile(rb"(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[ \t]*[!-~](?:[ \t!-~]*[!-~])?[ \t]*)+")
"""Header lines that every parser reads alike."""

UNUSUAL = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"http2-settings"))
"""Headers that say more about a request than who sends how much."""

CONNECTION, LENGTH, KEEP = b"connection", b"content-length", b"keep-alive"


@dataclass(frozen=True, slots=True)
class DirectRequest:
    """A request, and the handler of its path."""

    path: str
    handler: Handler
    headers: list[tuple[bytes, bytes]]
    body: bytes


class DirectRequests:
    """Reads and answers requests of the routes that take a body.

    Parameters
    ----------
    routes
        All; those that take no body are left out.
    access
        Who may use them.
    turned_away
        Events while too many wait.
    """

    def __init__(self, routes: Sequence[Route], access: AccessControl, turned_away: TurnedAway) -> None:
        self.turned_away = turned_away
        self._access = access
        self._by_line: Mapping[bytes, tuple[str, Handler]] = {
            f"POST {route.path} HTTP/1.1".encode(): (route.path, route.app.handler)
            for route in routes
            if isinstance(route.app, PostedEndpoint)
        }

    def read(self, data: bytes) -> DirectRequest | None:
        """The request, if this is one, nothing less and nothing more, and there is nothing unusual about it."""
        head, end, body = data.partition(b"\r\n\r\n")
        line = head[: head.find(b"\r\n")]
        known = self._by_line.get(line)
        if known is None or not end:
            return None
        headers = _usual(head[len(line) :], len(body))
        return None if headers is None else DirectRequest(*known, headers, body)

    async def answer(self, request: DirectRequest) -> bytes:
        """The whole answer."""
        response = await self._response(request)
        head = b"".join(b"%b: %b\r\n" % header for header in response.raw_headers)
        return b"%b%b\r\n%b" % (STATUS_LINE[response.status_code], head, bytes(response.body))

    async def _response(self, request: DirectRequest) -> Response:
        allowed = self._access.check(request.path, request.headers)
        if isinstance(allowed, Response):
            return allowed
        try:
            return await request.handler(Posted(request.body, request.headers, allowed))
        except Exception as failure:
            response = failure_answer(failure, "POST")
            if response.status_code == UNEXPECTED:
                log("failure", error=repr(failure), trace=traceback.format_exception(failure))
            return response


def _usual(head: bytes, length: int) -> list[tuple[bytes, bytes]] | None:
    """Headers with their names in lower case; None where one is unusual, or the body is not of this length."""
    if USUAL_HEAD.fullmatch(head) is None:
        return None
    headers, lengths = [], 0
    for row in head[2:].split(b"\r\n"):
        name, _, value = row.partition(b":")
        name, value = name.lower(), value.strip()
        if name == LENGTH:
            lengths += 1
            if value != b"%d" % length:
                return None
        elif name in UNUSUAL or (name == CONNECTION and value.lower() != KEEP):
            return None
        headers.append((name, value))
    return headers if lengths == 1 else None
