"""Routes of requests with a body: thousands per second, so nothing stands between the connection and the handler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

LARGEST_BODY = 16 * 1024 * 1024
"""Bytes of a request."""


class TooLarge(Exception):
    """A request has more bytes than are taken."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A request, whole.

    Parameters
    ----------
    body
        What was sent.
    headers
        Names in lower case, and values.
    administers
        Whether who sent it may change NICs.
    """

    body: bytes
    headers: list[tuple[bytes, bytes]]
    administers: bool

    def header(self, name: bytes) -> str | None:
        """The first header of this name; None without one."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name), None)


Handler = Callable[[Posted], Awaitable[Response]]
"""Answers a request."""


class PostedEndpoint:
    """Reads a request of limited size, and answers it; as of ASGI."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        posted = Posted(await _body(receive), scope["headers"], scope["state"]["administers"])
        response = await self.handler(posted)
        await response(scope, receive, send)


def posted_route(path: str, handler: Handler) -> Route:
    """`POST` of a path."""
    return Route(path, PostedEndpoint(handler), methods=["POST"])


async def _body(receive: Receive) -> bytes:
    """All that is sent.

    Raises
    ------
    TooLarge
        When it is more than `LARGEST_BODY`.
    ClientDisconnect
        When the client leaves before the end.
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
