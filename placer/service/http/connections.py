"""Connections: a client has a limited time for a request, and a limited number of bytes for the head of one.

Without that, a few thousand clients that begin a request and never end it would keep out all others. A request that
comes whole, as most do, starts no timer.

Requests that are turned away, because too many wait, are answered here: there may be more of them than of others.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
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


TurnAway = Callable[[bytes], bytes | None]
"""The answer, head and body, to a request of this URL that is turned away; None where it is not."""


class LimitedConnection(HttpToolsProtocol):
    """A connection that is closed where a request is too slow, or its head too large.

    Parameters
    ----------
    turn_away
        Which requests are turned away; None for none.
    """

    def __init__(self, *args: Any, turn_away: TurnAway | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._turn_away = turn_away
        self._refusal: bytes | None = None
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
        answering = self.cycle is not None and not self.cycle.response_complete
        if self._turn_away is not None and not answering and not self.expect_100_continue:
            self._refusal = self._turn_away(self.url)
        if self._refusal is None:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """As of the parser."""
        if self._refusal is None:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """As of the parser."""
        self._awaited = NOTHING
        if self._refusal is None:
            super().on_message_complete()
            return
        self.transport.write(self._refusal)
        self._refusal = None
        if self.parser.should_keep_alive():
            self.on_response_complete()
        else:
            self.transport.close()

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
        if self._awaited is BODY and self._refusal is not None:
            self.transport.write(self._refusal)
        elif self._awaited is BODY and not self.pipeline and not self.cycle.response_started:
            self.transport.write(_too_slow())
        self.transport.close()


def _too_slow() -> bytes:
    """The answer to a request whose body does not arrive."""
    body = json.dumps({"ok": False, "error": f"the request did not arrive within {BODY_SECONDS:g} s"}).encode()
    head = "HTTP/1.1 408 Request Timeout", "content-type: application/json", f"content-length: {len(body)}"
    return "\r\n".join((*head, "connection: close", "", "")).encode() + body
