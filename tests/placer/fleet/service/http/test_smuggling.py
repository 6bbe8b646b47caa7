"""No request is smuggled in: wherever its bytes are cut, a request has one meaning, or it ends its connection.
Connections are fed in this process, over a transport in memory, so that every cut is tried."""

import asyncio
import re
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from placer.fleet.service.http.connections import Connections
from placer.fleet.service.http.requests import RequestLog

HEAD = b"POST /first HTTP/1.1\r\nHost: x\r\n"
NEXT = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
LENGTH, CHUNKS = b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
IN_CHUNKS = b"3\r\nabc\r\n0\r\n\r\n"

ANSWERED = {
    "an upgrade with a length": HEAD + UPGRADE + LENGTH + b"\r\nabc",
    "an upgrade in chunks": HEAD + UPGRADE + CHUNKS + b"\r\n" + IN_CHUNKS,
    "an upgrade to WebSocket": HEAD + UPGRADE.replace(b"h2c", b"websocket") + LENGTH + b"\r\nabc",
    "an upgrade of an old version": (HEAD + UPGRADE + LENGTH + b"\r\nabc").replace(b"HTTP/1.1", b"HTTP/1.0"),
    "a connection that is to be closed": HEAD + b"Connection: close\r\n" + LENGTH + b"\r\nabc",
}
"""Requests that are answered as the last of their connection."""

REFUSED = {
    "a length and chunks": HEAD + LENGTH + CHUNKS + b"\r\n" + IN_CHUNKS,
    "chunks and a length": HEAD + CHUNKS + LENGTH + b"\r\n" + IN_CHUNKS,
    "an upgrade with a length and chunks": HEAD + UPGRADE + LENGTH + CHUNKS + b"\r\n" + IN_CHUNKS,
    "two lengths": HEAD + LENGTH + LENGTH + b"\r\nabc",
    "a list of lengths": HEAD + b"Content-Length: 3, 3\r\n\r\nabc",
    "a length with a sign": HEAD + b"Content-Length: +3\r\n\r\nabc",
    "an empty length": HEAD + b"Content-Length:\r\n\r\nabc",
    "two codings": HEAD + CHUNKS + CHUNKS + b"\r\n" + IN_CHUNKS,
    "gzip before chunks": HEAD + CHUNKS.replace(b"chunked", b"gzip, chunked") + b"\r\n" + IN_CHUNKS,
    "an unknown coding": HEAD + CHUNKS.replace(b"chunked", b"xchunked") + b"\r\n" + IN_CHUNKS,
    "a coding after a tab": HEAD + CHUNKS.replace(b" ", b" \x0b") + b"\r\n" + IN_CHUNKS,
    "chunks of an old version": (HEAD + CHUNKS + b"\r\n" + IN_CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "a header that goes on": HEAD + b"X: a\r\n b\r\n" + LENGTH + b"\r\nabc",
    "a length that goes on": HEAD + b"Content-Length:\r\n 3\r\n\r\nabc",
    "a line feed alone": HEAD + b"X: a\n" + LENGTH + b"\r\nabc",
    "a carriage return alone": HEAD + b"X: a\rY: b\r\n" + LENGTH + b"\r\nabc",
    "a blank before the colon": HEAD + LENGTH.replace(b":", b" :") + b"\r\nabc",
    "a chunk size that ends in a line feed": HEAD + CHUNKS + b"\r\n3\nabc\r\n0\r\n\r\n",
    "a chunk that ends in a line feed": HEAD + CHUNKS + b"\r\n3\r\nabc\n0\r\n\r\n",
    "a chunk that is longer than its size": HEAD + CHUNKS + b"\r\n3\r\nabcd\r\n0\r\n\r\n",
    "a chunk size with a prefix": HEAD + CHUNKS + b"\r\n0x3\r\nabc\r\n0\r\n\r\n",
    "a chunk size with a blank": HEAD + CHUNKS + b"\r\n3 \r\nabc\r\n0\r\n\r\n",
    "a chunk size that overflows": HEAD + CHUNKS + b"\r\n10000000000000003\r\nabc\r\n0\r\n\r\n",
    "a line feed in a chunk extension": HEAD + CHUNKS + b"\r\n3;a\nb\r\nabc\r\n0\r\n\r\n",
    "another host in the target": HEAD.replace(b"/first", b"http://y/first") + LENGTH + b"\r\nabc",
    "a tunnel": b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n" + LENGTH + b"\r\nabc",
    "no version": b"POST /first\r\nHost: x\r\n" + LENGTH + b"\r\nabc",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}
"""Requests that are refused, as the last of their connection."""


class MemoryTransport(SimpleNamespace):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__(written=b"", closed=False, pause_reading=lambda: None, resume_reading=lambda: None)

    def write(self, data: bytes) -> None:
        assert not self.closed
        self.written += data

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("192.0.2.1", 1), "sockname": ("192.0.2.2", 80)}.get(name)

    def is_closing(self) -> bool:
        return bool(self.closed)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.closed = True

    close = abort = write_eof


async def answers(parts: list[bytes]) -> tuple[list[bytes], list[tuple[str, bytes]], bool]:
    """Statuses, requests that have reached the application, and whether the connection is closed."""
    seen: list[tuple[str, bytes]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message["body"], message["more_body"]
        seen.append((scope["path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    metrics: Any = SimpleNamespace(count_request=lambda *of: None)
    config = uvicorn.Config(app, http=Connections(RequestLog(metrics)), ws="none", log_config=None)  # type: ignore[arg-type]
    config.load()
    made: Any = config.http_protocol_class
    connection = made(config=config, server_state=ServerState(), app_state={}, _loop=asyncio.get_running_loop())
    transport = MemoryTransport()
    connection.connection_made(transport)
    for part in parts:
        if not transport.closed:
            connection.data_received(part)
        for _ in range(4):
            await asyncio.sleep(0)
    closed = bool(transport.closed)
    connection.connection_lost(None)
    return re.findall(rb"HTTP/1\.1 (\d+)", transport.written), seen, closed


def cuts(whole: bytes) -> list[list[bytes]]:
    """The bytes at once, one by one, and cut at every place."""
    single = [whole[at : at + 1] for at in range(len(whole))]
    return [[whole], single, *([whole[:at], whole[at:]] for at in range(1, len(whole)))]


@pytest.mark.parametrize("name", ANSWERED)
async def test_a_request_with_one_meaning_is_answered_wherever_it_is_cut_and_ends_its_connection(name: str) -> None:
    for parts in cuts(ANSWERED[name] + NEXT):
        assert await answers(parts) == ([b"200"], [("/first", b"abc")], True), parts


@pytest.mark.parametrize("name", REFUSED)
async def test_a_request_with_two_meanings_is_refused_wherever_it_is_cut_and_ends_its_connection(name: str) -> None:
    for parts in cuts(REFUSED[name] + NEXT):
        assert await answers(parts) == ([b"400"], [], True), parts


@pytest.mark.parametrize("body", [LENGTH + b"\r\nabc", CHUNKS + b"\r\n3;x=y\r\nabc\r\n0\r\nHost: y\r\n\r\n"])
async def test_requests_one_after_the_other_are_answered_wherever_they_are_cut(body: bytes) -> None:
    """Trailers are no headers."""
    for parts in cuts(HEAD + body + NEXT):
        assert await answers(parts) == ([b"200", b"200"], [("/first", b"abc"), ("/smuggled", b"")], False), parts


async def test_what_has_no_meaning_does_not_take_the_place_of_an_earlier_answer() -> None:
    """The answer to the first request is its own; then the connection ends."""
    for parts in cuts(NEXT + REFUSED["a length and chunks"]):
        found = await answers(parts)
        assert found[0][0] == b"200" and found[1:] == ([("/smuggled", b"")], True), parts
