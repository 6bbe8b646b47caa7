"""Requests that come whole are answered past the parser, and exactly as with it."""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.service.http.access import AccessControl
from placer.service.http.direct import DirectRequests
from placer.service.http.posted import Posted, posted_route
from placer.service.http.tokens import OPEN, Tokens, new_token, read_tokens
from tests.placer.service.http.sockets import EVENT, HEAD, sent, serving

LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def _nobody(posted: Posted) -> Any:
    raise AssertionError("nothing is answered here")


READER = DirectRequests([posted_route("/v1/events", _nobody)], AccessControl(OPEN), None)  # type: ignore[arg-type]


def request(*headers: str, body: bytes = EVENT) -> bytes:
    """A request with these headers besides its length."""
    return b"".join(
        (b"POST /v1/events HTTP/1.1\r\n", *(f"{one}\r\n".encode("latin-1") for one in headers),
         b"Content-Length: %d\r\n\r\n" % len(body), body)
    )  # fmt: skip


def event(identity: str, **more: object) -> bytes:
    """A departure of nobody, which is refused, or what is asked for."""
    return json.dumps({"event": "depart", "id": identity} | more).encode()


REQUESTS = {
    "an event": request("Host: x"),
    "a key": request("Host: x", "Idempotency-Key: one"),
    "an empty key": request("Host: x", "Idempotency-Key:"),
    "a key of blanks": request("Host: x", "Idempotency-Key:   "),
    "a key beyond ASCII": request("Host: x", "Idempotency-Key: \xe9"),
    "two keys": request("Idempotency-Key: one", "Idempotency-Key: two"),
    "a version that is none": request("If-Version: new"),
    "nobody departs": request("Host: x", body=event("nobody")),
    "a NIC fails": request("Host: x", body=event("x", event="fail", nic="nic-1")),
    "no JSON": request("Host: x", body=b"{"),
    "no body": request("Host: x", body=b""),
    "too large an event": request("Host: x", body=b"x" * 1_000_001),
    "a header without a colon": request("Host: x", "What"),
    "a blank before the colon": request("Host : x"),
    "a header that goes on": request("Host: x", "X: one", " two"),
    "a null": request("X: a\0b"),
    "two lengths": request("Content-Length: 3"),
    "two equal lengths": request(f"Content-Length: {len(EVENT)}"),
    "a length and chunks": request("Transfer-Encoding: chunked"),
    "keep-alive": request("Connection: Keep-Alive"),
    "no host": request(),
    "another method": request("Host: x").replace(b"POST", b"PUT"),
    "another path": request("Host: x").replace(b"/v1/events", b"/v1/event"),
    "a query": request("Host: x").replace(b"/v1/events", b"/v1/events?x=1"),
    "a wrong token": request("Authorization: Bearer nothing"),
}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Tokens]:
    """A token that may decide, and the file of it."""
    token, table = new_token("one", ["decide"])
    path = tmp_path_factory.mktemp("tokens") / "tokens.toml"
    path.write_text(table, encoding="utf-8")
    return token, read_tokens(path)


@pytest.mark.parametrize("guarded", [False, True], ids=["open", "with tokens"])
def test_every_request_is_answered_as_by_the_parser(tmp_path: Path, tokens: tuple[str, Tokens], guarded: bool) -> None:
    """Status, headers and body, and what has changed; so are those that are left to it."""
    token, known = tokens

    async def answers(*, direct: bool) -> tuple[dict[str, bytes], int]:
        found = {}
        path = tmp_path / f"{direct}.db"
        async with serving(path, direct=direct, tokens=known if guarded else OPEN) as (port, engine):
            for name, one in REQUESTS.items():
                whole = one
                if guarded and b"Authorization" not in one:
                    whole = one.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n".encode(), 1)
                found[name] = await sent(port, whole, LAST, pause=0.05)
            return found, engine.events

    async def study() -> None:
        directly, parsed = await answers(direct=True), await answers(direct=False)
        assert directly == parsed
        statuses = {name: re.findall(rb"HTTP/1\.1 (\d+)", found) for name, found in directly[0].items()}
        assert statuses["an event"][0] == b"200"
        assert statuses["a wrong token"][0] == (b"401" if guarded else b"200")

    asyncio.run(study())


class Parsed:
    """What the parser of the general server makes of bytes."""

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.complete = 0
        parser = httptools.HttpRequestParser(self)
        parser.feed_data(data)
        self.keeps_alive = parser.should_keep_alive() and not parser.should_upgrade()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self.headers.append((name.lower(), value))

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self.body += body

    def on_message_complete(self) -> None:
        """The end of a request."""
        self.complete += 1


NAMES = st.sampled_from(
    ["Host", "Connection", "Content-Length", "Transfer-Encoding", "X-A", "Expect", "Upgrade", "A B"]
)
VALUES = st.sampled_from(
    ["x", "", " ", "close", "keep-alive", "4", "+4", "04", "chunked", "a\tb", "a\x7fb", "\xe9", "h2c"]
)
SPACES = st.sampled_from(["", " ", "\t", "  "])
LINES = st.tuples(NAMES, SPACES, st.sampled_from([":", "", " :"]), SPACES, VALUES, SPACES).map("".join)


@given(
    lines=st.lists(LINES, max_size=5),
    body=st.sampled_from([b"", b"abcd", b"abcde"]),
    ending=st.sampled_from(["\r\n", "\n"]),
)
def test_what_is_read_is_what_the_parser_reads(lines: Sequence[str], body: bytes, ending: str) -> None:
    """A request that it does not read as one whole request that goes on is left to it."""
    head = ending.join(["POST /v1/events HTTP/1.1", *lines, "Content-Length: 4", "", ""])
    data = head.encode("latin-1") + body
    found = READER.read(data)
    if found is not None:
        parsed = Parsed(data)
        assert (found.headers, found.body) == (parsed.headers, parsed.body)
        assert parsed.complete == 1
        assert parsed.keeps_alive


@pytest.mark.parametrize("pause", [0.0, 0.002], ids=["at once", "one after the other"])
def test_a_client_that_does_not_wait_gets_its_answers_in_turn(tmp_path: Path, pause: float) -> None:
    """However its requests are cut, and whether they come before the answers to earlier ones."""

    async def study() -> None:
        parts = [request("Host: x", body=event(f"x{number}")) for number in range(20)]
        joined = b"".join(parts)
        for cuts in (parts, [joined], [joined[at : at + 100] for at in range(0, len(joined), 100)]):
            async with serving(tmp_path / f"{len(cuts)}-{pause}.db") as (port, _):
                found = await sent(port, *cuts, LAST, pause=pause)
                assert re.findall(rb"'(x\d+)'", found) == [b"x%d" % number for number in range(20)]

    asyncio.run(study())


def test_a_service_that_stops_answers_what_it_has_read(tmp_path: Path) -> None:
    """And then closes the connection."""

    async def study() -> None:
        async with serving(tmp_path / "s.db") as (port, engine):
            answer = asyncio.create_task(sent(port, HEAD + EVENT))
            while not engine.events:
                await asyncio.sleep(0)
        assert b'"placed"' in await answer

    asyncio.run(study())


def test_a_client_that_leaves_disturbs_nobody(tmp_path: Path) -> None:
    """What it asked for is done."""

    async def study() -> None:
        async with serving(tmp_path / "s.db") as (port, engine):
            for _ in range(5):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(HEAD + EVENT)
                await writer.drain()
                writer.transport.abort()
            found = await sent(port, request("Host: x", body=event("nobody")), LAST, pause=0.1)
            assert b"409" in found
            assert engine.fleet.nic_of("x") is not None

    asyncio.run(study())


def test_answers_leave_no_cycle_of_objects_behind(tmp_path: Path) -> None:
    """The service searches for such cycles only among young objects."""

    async def study() -> None:
        async with serving(tmp_path / "s.db") as (port, _):
            ask = [request("Host: x", body=event(f"x{number}")) for number in range(200)]
            await sent(port, *ask[:20], LAST, pause=0.001)
            gc.collect()
            gc.disable()
            try:
                await sent(port, *ask, LAST, pause=0.001)
                assert gc.collect() < len(ask)
            finally:
                gc.enable()

    asyncio.run(study())
