"""Connections: no client takes so much of the service that others are not answered, and none is misunderstood.

A client has limited time for a request, a limited number of bytes for its head, and a limited number of connections
without a whole request. What a proxy may read otherwise than the parser here ends its connection, so that no request
is smuggled in behind another one.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from placer.fleet.service.http.app import CLOSE, LARGEST_BODY, PROBES, RETRY_AFTER, refusal
from placer.fleet.service.http.requests import NO_ROUTE, RequestLog

MOST_CONNECTIONS = 4_096
"""Connections beyond which only probes are answered; fewer where the system allows fewer open files."""

OTHER_FILES = 64  # open files that are no connections

UNFINISHED_OF_ALL, UNFINISHED_OF_ONE = 2, 8
"""One in so many connections may be without a whole request: of all clients, of one address."""

HEAD_SECONDS = 10.0
"""Seconds from the start of a connection, or of a further request on it, to the end of the request's headers."""

BODY_SECONDS = 30.0  # seconds for the body of a request to arrive, all of it
LARGEST_HEAD = 65_536  # bytes of a request up to the end of its headers

LINGER_SECONDS = 1.0
"""Seconds in which what a client still sends is read and dropped: to close at once would take the answer from it."""

WAITS_FOR_NOTHING, WAITS_FOR_HEAD, WAITS_FOR_BODY = "nothing", "head", "body"

WITH_MEANING = frozenset((b"expect", b"transfer-encoding"))  # headers that are acted upon while the head is read

PROBE_TARGETS = frozenset(path.encode() for path in PROBES)


class Connections:
    """The connections of a server: a call makes one, as uvicorn expects of its protocol.

    `requests`: where requests are noted that do not reach the application. `unfinished`: connections without a whole
    request, and without one that is being answered; those that are so for longest come first.
    """

    def __init__(self, requests: RequestLog) -> None:
        self.requests = requests
        self.unfinished: dict[LimitedConnection, None] = {}
        self.most = _allowed_connections()

    def __call__(self, **options: Any) -> LimitedConnection:
        return LimitedConnection(self, **options)

    def make_room(self, address: str) -> None:
        """Close the connection that is unfinished for longest where there are too many, of all or of an address."""
        most_of_one = max(self.most // UNFINISHED_OF_ONE, 1)
        if len(self.unfinished) < most_of_one:
            return
        same = [other for other in self.unfinished if other.address == address]
        if len(same) >= most_of_one:
            same[0].abort()
        elif len(self.unfinished) >= max(self.most // UNFINISHED_OF_ALL, 1):
            next(iter(self.unfinished)).abort()

    async def answer_busy(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, as there are too many connections; as of ASGI."""
        self.requests.note(scope, NO_ROUTE, 503, 0.0)
        await refusal(503, "there are too many connections; retry later", RETRY_AFTER | CLOSE)(scope, receive, send)


def _allowed_connections() -> int:
    """`MOST_CONNECTIONS`, or as many as this process may open; its limit is raised as far as it may raise it."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return (
        MOST_CONNECTIONS
        if soft == resource.RLIM_INFINITY
        else min(MOST_CONNECTIONS, max(soft - OTHER_FILES, soft // 2))
    )


class LimitedConnection(HttpToolsProtocol):
    """A connection that is closed where a request is too slow, its head too large, or its meaning in doubt.

    A request that comes whole, as most do, starts no timer: what is awaited is compared after the parser has read.
    """

    def __init__(self, among: Connections, **options: Any) -> None:
        super().__init__(**options)
        self.address = ""
        self.still_sending = False
        self._among = among
        self._ended = False
        self._request = 0
        self._awaited = WAITS_FOR_HEAD
        self._received = 0
        self._in_chunks = False
        self._timed = (0, WAITS_FOR_NOTHING)
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the head of a request."""
        super().connection_made(LingeringTransport(transport, self))  # type: ignore[arg-type]
        self.address = self.client[0] if self.client else ""
        self._among.make_room(self.address)
        self._among.unfinished[self] = None
        self._limit_time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._among.unfinished.pop(self, None)
        self._awaited = WAITS_FOR_NOTHING
        self._limit_time()
        super().connection_lost(exc)
        self.transport.connection = None  # type: ignore[attr-defined] # no cycle is left behind

    def abort(self) -> None:
        """Close it at once."""
        self._ended = True
        self._among.unfinished.pop(self, None)
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Let the parser read, then see what is awaited now."""
        if self._ended:
            return
        self._unset_keepalive_if_required()
        self._received += len(data)
        try:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                self._read_without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse_meaning()
            return
        if self._awaited is WAITS_FOR_HEAD:
            if self._received > LARGEST_HEAD:
                self.transport.close()
        elif self._awaited is WAITS_FOR_BODY and self._received > LARGEST_BODY and self.cycle.response_complete:
            self.transport.close()  # it was refused, and does not end
        if (self._request, self._awaited) != self._timed:
            self._limit_time()

    def on_message_begin(self) -> None:
        """The parser has begun to read a request."""
        super().on_message_begin()
        self._request += 1
        self._awaited, self._received, self._in_chunks = WAITS_FOR_HEAD, 0, False
        self._among.unfinished[self] = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """The parser has read a header, or a trailer: these are dropped, since they come too late to be checked."""
        if self._awaited is WAITS_FOR_BODY:
            return
        name = name.lower()
        if name in WITH_MEANING:
            value = value.strip()
            if name == b"expect":
                self.expect_100_continue = value.lower() == b"100-continue"
            elif value.lower() != b"chunked":
                raise ValueError("no other coding is read")
            else:
                self._in_chunks = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The parser has read the head of a request.

        Raises ValueError, by which the parser stops, when it may be read in two ways.
        """
        parser = self.parser
        if self.url[:1] not in (b"/", b"*"):
            raise ValueError("the target of the request may name another host")
        if self._in_chunks or not parser.should_keep_alive():  # versions but 1.1 close, unless 1.0 is asked not to
            version = parser.get_http_version()
            if version != "1.1" and (self._in_chunks or version != "1.0"):
                raise ValueError("another version, or chunks before 1.1")
        if parser.should_upgrade():
            self._method = parser.get_method()
            return
        crowded = len(self.connections) > self._among.most and self.url not in PROBE_TARGETS
        self.app = self._among.answer_busy if crowded else self.config.loaded_app
        super().on_headers_complete()
        self._awaited, self.still_sending = WAITS_FOR_BODY, True

    def on_message_complete(self) -> None:
        """The parser has read all of a request."""
        if self.parser.should_upgrade():
            return
        self._awaited, self.still_sending = WAITS_FOR_NOTHING, False
        if not self.cycle.response_complete:
            self._among.unfinished.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request is answered."""
        if not self.pipeline:
            if self._ended:
                self.transport.close()
            else:
                self._among.unfinished[self] = None
        super().on_response_complete()

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Read a request once more, without the protocol that it asks for: the parser does not read its body.

        The request is the last one of its connection.
        """
        left_out = (b"connection", b"upgrade")
        head = [self._method + b" " + self.url + b" HTTP/1.1", b"connection: close"]
        head += [name + b": " + value for name, value in self.headers if name not in left_out]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(b"\r\n".join((*head, b"", rest)))

    def _refuse_meaning(self) -> None:
        """End the connection, once the requests before are answered: what follows may be read in more than one way."""
        self._ended = True
        cycle = self.cycle
        if self._awaited is WAITS_FOR_BODY:
            if self.pipeline and self.pipeline[0][0] is cycle:
                self.pipeline.popleft()
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if not cycle.response_started:
                self._answer(400, "this is no HTTP request with one meaning")
        elif cycle is not None and not cycle.response_complete:
            return
        else:
            self._answer(400, "this is no HTTP request with one meaning")
        self.transport.close()

    def _answer(self, status: int, message: str) -> None:
        """Refuse a request that the application does not answer."""
        scope: Scope = {"client": self.client, "method": None, "path": "", "headers": [], "state": {}}
        self._among.requests.note(scope, NO_ROUTE, status, 0.0)
        found = refusal(status, message, CLOSE)
        self.still_sending = True
        lines = (b": ".join(header) for header in found.raw_headers)
        self.transport.write(STATUS_LINE[status] + b"\r\n".join((*lines, b"", bytes(found.body))))

    def _limit_time(self) -> None:
        """Give the client time for what is awaited now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timed = self._request, self._awaited
        if self._awaited is not WAITS_FOR_NOTHING:
            seconds = HEAD_SECONDS if self._awaited is WAITS_FOR_HEAD else BODY_SECONDS
            self._timer = self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        """Close the connection, unless it is the service that does not read."""
        if self.flow.read_paused:
            self._limit_time()
            return
        if self._awaited is WAITS_FOR_BODY and not (self.pipeline or self.cycle.response_started):
            self._answer(408, f"the request did not arrive within {BODY_SECONDS:g} s")
        self.transport.close()

    def linger(self, transport: asyncio.Transport) -> None:
        """Send no more, and drop for a while what still comes; then close."""
        self._ended = True
        self.flow.resume_reading()
        if transport.can_write_eof():  # not TLS
            transport.write_eof()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(LINGER_SECONDS, transport.close)


class LingeringTransport:
    """A transport whose client reads the last answer before it is closed, although it still sends its request.

    `connection`: whose it is; None when it is lost.
    """

    def __init__(self, transport: asyncio.Transport, connection: LimitedConnection) -> None:
        self.connection: LimitedConnection | None = connection
        self._transport = transport
        self._lingers = False
        self.abort, self.write, self.get_extra_info = transport.abort, transport.write, transport.get_extra_info
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading

    def is_closing(self) -> bool:
        return self._lingers or self._transport.is_closing()

    def close(self) -> None:
        """Close it, now or after a while."""
        if self._lingers:
            return
        if self.connection is not None and self.connection.still_sending:
            self._lingers = True
            self.connection.linger(self._transport)
        else:
            self._transport.close()
