"""Connections: a client has a limited time for a request, and a limited number of bytes for the head of one.

Without that, a few thousand clients that begin a request and never end it would keep out all others. A request that
comes whole, as most do, starts no timer.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
"""Seconds from the start of a connection, or of a further request on it, to the end of the request's headers."""

BODY_SECONDS = 30.0
"""Seconds for the body of a request to arrive, all of it."""

LARGEST_HEAD = 65_536
"""Bytes of a request up to the end of its headers."""

NOTHING, HEAD, BODY = "nothing", "head", "body"
"""What a connection waits for."""


class LimitedConnection(HttpToolsProtocol):
    """A connection that is closed where a request is too slow, or its head too large."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._request = 0
        self._awaited = HEAD
        self._head_bytes = 0
        self._timed = (0, NOTHING)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As of asyncio's protocols."""
        super().connection_made(transport)
        self._limit_time()

    def connection_lost(self, exc: Exception | None) -> None:
        """As of asyncio's protocols."""
        self._awaited = NOTHING
        self._limit_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """As of asyncio's protocols."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._awaited is HEAD and self._head_bytes > LARGEST_HEAD:
            self.transport.close()
        if (self._request, self._awaited) != self._timed:
            self._limit_time()

    def on_message_begin(self) -> None:
        """As of the parser."""
        super().on_message_begin()
        self._request += 1
        self._awaited, self._head_bytes = HEAD, 0

    def on_headers_complete(self) -> None:
        """As of the parser."""
        self._awaited = BODY
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """As of the parser."""
        self._awaited = NOTHING
        super().on_message_complete()

    def _limit_time(self) -> None:
        """Give the client time for what is awaited now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timed = self._request, self._awaited
        if self._awaited is not NOTHING:
            seconds = HEAD_SECONDS if self._awaited is HEAD else BODY_SECONDS
            self._timer = self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """Close the connection, unless it is the service that does not read."""
        if self.flow.read_paused:
            self._limit_time()
            return
        if self._awaited is BODY and not self.pipeline and not self.cycle.response_started:
            self.transport.write(_too_slow())
        self.transport.close()


def _too_slow() -> bytes:
    """The answer to a request whose body does not arrive."""
    body = json.dumps({"ok": False, "error": f"the request did not arrive within {BODY_SECONDS:g} s"}).encode()
    head = "HTTP/1.1 408 Request Timeout", "content-type: application/json", f"content-length: {len(body)}"
    return "\r\n".join((*head, "connection: close", "", "")).encode() + body
