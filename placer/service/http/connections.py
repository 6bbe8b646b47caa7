"""Connections: a client has a limited time for a request, and a limited number of bytes for the head of one.

Without that, a few thousand clients that begin a request and never end it would keep out all others. A request that
comes whole, as most do, starts no timer.

Requests that are turned away, because too many wait, are answered here before they are parsed: there may be many more
of them than of others.
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

LINGER_SECONDS = 1.0
"""Seconds in which what a client still sends is read and dropped: to close at once would take the answer from it."""

NOTHING, HEAD, BODY = "nothing", "head", "body"
"""What a connection waits for."""


TurnAway = Callable[[bytes], bytes | None]
"""The answer, head and body, to a whole request that is turned away; None where it is not."""

PARSED = (b"\r\ntransfer-encoding", b"\r\nexpect", b"close", b"upgrade")
"""What is in the head of a request that only the parser understands."""

LENGTH = b"\r\ncontent-length:"


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
        self._refused_at = 0.0
        self._ended = False
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
        if self._ended:
            return
        if self._turn_away is not None and self._between_requests and (refusal := self._turn_away(data)) is not None:
            self.transport.write(refusal)
            self._refused_at = self.loop.time()
            if self._awaited is not NOTHING:
                self._awaited = NOTHING
                self._limit_time()
            if self.timeout_keep_alive_task is None:
                self.on_response_complete()
            return
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

    def timeout_keep_alive_handler(self) -> None:
        """As of uvicorn's protocols; a request that was turned away counts, too, without a timer for each."""
        left = self._refused_at + self.timeout_keep_alive - self.loop.time()
        if left > 0 and not self.transport.is_closing():
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    @property
    def _between_requests(self) -> bool:
        begun = self._awaited is not NOTHING and (self._request or self._head_bytes)
        return not (begun or self.pipeline) and (self.cycle is None or self.cycle.response_complete)

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
        if self._awaited is not BODY or self.pipeline or self.cycle.response_started or self._ended:
            self.transport.close()
            return
        self.transport.write(_too_slow())
        if not self.transport.can_write_eof():  # TLS
            self.transport.close()
            return
        self.transport.write_eof()
        self._ended = True
        self._timer = self.loop.call_later(LINGER_SECONDS, self._end)


def is_one_request(data: bytes) -> bool:
    """Whether this is one request with a body, nothing less and nothing more, after which the connection goes on."""
    head, end, body = data.partition(b"\r\n\r\n")
    head = head.lower()
    if not end or head.count(LENGTH) != 1 or any(one in head for one in PARSED):
        return False
    length = head.partition(LENGTH)[2].partition(b"\r\n")[0].strip()
    return length == b"%d" % len(body)


def _too_slow() -> bytes:
    """The answer to a request whose body does not arrive."""
    body = json.dumps({"ok": False, "error": f"the request did not arrive within {BODY_SECONDS:g} s"}).encode()
    head = "HTTP/1.1 408 Request Timeout", "content-type: application/json", f"content-length: {len(body)}"
    return "\r\n".join((*head, "connection: close", "", "")).encode() + body
