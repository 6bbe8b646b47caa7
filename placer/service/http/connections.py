"""Connections: a client has a limited time for a request, and a limited number of bytes for the head of one.

Without that, a few thousand clients that begin a request and never end it would keep out all others. A request that
comes whole, as most do, starts no timer.

Requests that come whole are not parsed here, but answered directly (`direct.py`), or turned away (`turned_away.py`).
"""

from __future__ import annotations

import asyncio
import json
from math import inf
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from placer.service.http.direct import DirectRequest, DirectRequests
from placer.service.http.turned_away import ANSWER

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


class LimitedConnection(HttpToolsProtocol):
    """A connection that is closed where a request is too slow, or its head too large.

    Parameters
    ----------
    direct
        Answers requests that come whole; None where all are parsed.
    """

    def __init__(self, *args: Any, direct: DirectRequests | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._direct = direct
        self._to_refuse = False
        self._answering = False
        self._later = b""
        self._last = False
        self._answered_at = 0.0
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
        self._to_refuse = False
        self._awaited = NOTHING
        self._limit_time()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """As of asyncio's protocols."""
        if self._ended:
            return
        if self._answering:
            self._later += data
            self.transport.pause_reading()
            return
        self._refuse()  # a client that sends before it is answered gets its answers in turn
        if self._direct is not None and self._between_requests and self._takes(data):
            if self._awaited is not NOTHING:
                self._awaited = NOTHING
                self._limit_time()
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
        """As of uvicorn's protocols; what was answered here counts, too, without a timer for each."""
        answered_at = self.loop.time() if self._to_refuse or self._answering else self._answered_at
        left = answered_at + self.timeout_keep_alive - self.loop.time()
        if left > 0 and not self.transport.is_closing():
            self.timeout_keep_alive_task = self.loop.call_later(left, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()

    def shutdown(self) -> None:
        """As of uvicorn's protocols."""
        self._refuse()
        if self._answering:
            self._last = True
        else:
            super().shutdown()

    def _takes(self, data: bytes) -> bool:
        """Whether this is answered without the parser."""
        assert self._direct is not None
        request = self._direct.read(data)
        if request is None or max(len(self.connections), len(self.tasks)) >= (self.limit_concurrency or inf):
            return False
        if self._direct.turned_away.takes(request.path):
            self._to_refuse = True
            self._direct.turned_away.answer_later(self._refuse)
            return True
        self._answering = True
        task = self.loop.create_task(self._answer(self._direct, request))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return True

    async def _answer(self, direct: DirectRequests, request: DirectRequest) -> None:
        """Answer, and go on with what came meanwhile."""
        answer = await direct.answer(request)
        if self.transport.is_closing():
            return
        self.transport.write(answer)
        if self.flow.write_paused:
            await self.flow.drain()
            if self.transport.is_closing():
                return
        self._answering = False
        self._answered()
        if self._last:
            self.transport.close()
        elif self._later:
            later, self._later = self._later, b""
            self.transport.resume_reading()
            self.data_received(later)

    def _refuse(self) -> None:
        """Answer a request that was turned away, where one waits for that."""
        if self._to_refuse:
            self._to_refuse = False
            self.transport.write(ANSWER)
            self._answered()

    def _answered(self) -> None:
        """The connection is idle from now on; it is closed after a while."""
        self._answered_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.on_response_complete()

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


def _too_slow() -> bytes:
    """The answer to a request whose body does not arrive."""
    body = json.dumps({"ok": False, "error": f"the request did not arrive within {BODY_SECONDS:g} s"}).encode()
    head = "HTTP/1.1 408 Request Timeout", "content-type: application/json", f"content-length: {len(body)}"
    return "\r\n".join((*head, "connection: close", "", "")).encode() + body
