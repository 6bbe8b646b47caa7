"""Requests on a connection: none is read otherwise than it was meant, and each gets its answer in turn. Searches for
garbage stay short, and nothing is lost by that: no request leaves a cycle behind."""

import asyncio
import gc
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http.app import Posted
from placer.fleet.service.http.routes import QuestionRoutes
from placer.fleet.service.http.server import make_writer, short_searches
from placer.fleet.service.http.tokens import EVERYBODY, OPEN_TO_ALL, new_token, read_tokens
from placer.fleet.state.store import State
from placer.fleet.what_if import WhatIf
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from tests.placer.fleet.service.http.toy_http import EVENT, HEAD, sent, serving

LAST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def request(*headers: str, body: bytes = EVENT) -> bytes:
    return b"".join(
        (b"POST /v1/events HTTP/1.1\r\n", *(f"{one}\r\n".encode("latin-1") for one in headers),
         b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body), body)
    )  # fmt: skip


def chunked(size: bytes, end: bytes = b"\r\n", last: bytes = b"\r\n") -> bytes:
    """A request with one chunk of this size, and what ends its size and itself."""
    whole = request("Host: x", "Transfer-Encoding: chunked").replace(b"Content-Length: %d\r\n" % len(EVENT), b"")
    return whole.replace(EVENT, size + end + EVENT + last + b"0\r\n\r\n")


def event(identity: str, **more: object) -> bytes:
    """A departure of nobody, which is refused, or what is asked for."""
    return json.dumps({"event": "depart", "id": identity} | more).encode()


REQUESTS = {
    "an event": (request("Host: x"), 200),
    "a key": (request("Host: x", "Idempotency-Key: one"), 200),
    "an empty key": (request("Host: x", "Idempotency-Key:"), 422),
    "a key of blanks": (request("Host: x", "Idempotency-Key:   "), 422),
    "a key beyond ASCII": (request("Host: x", "Idempotency-Key: \xe9"), 200),
    "two keys": (request("Host: x", "Idempotency-Key: one", "Idempotency-Key: two"), 400),
    "a version that is none": (request("Host: x", "If-Version: new"), 422),
    "nobody departs": (request("Host: x", body=event("nobody")), 409),
    "a NIC fails": (request("Host: x", body=event("x", event="fail", nic="nic-1")), 422),
    "no JSON": (request("Host: x", body=b"{"), 422),
    "no body": (request("Host: x", body=b""), 422),
    "too large an event": (request("Host: x", body=b"x" * 1_000_001), 413),
    "keep-alive": (request("Host: x", "Connection: Keep-Alive"), 200),
    "no host": (request(), 400),
    "two hosts": (request("Host: x", "Host: x"), 400),
    "two tokens": (request("Host: x", "Authorization: Bearer x", "Authorization: Bearer y"), 400),
    "a host in chunks": (request("Host: x").replace(b"Content-Length: %d\r\n\r\n%b" % (len(EVENT), EVENT),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\nHost: y\r\n\r\n" % (len(EVENT), EVENT)), 200),
    "chunks": (request("Host: x").replace(b"Content-Length: %d\r\n\r\n%b" % (len(EVENT), EVENT),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(EVENT), EVENT)), 200),
    "another method": (request("Host: x").replace(b"POST", b"PUT"), 405),
    "another path": (request("Host: x").replace(b"/v1/events", b"/v1/event"), 404),
    "a query": (request("Host: x").replace(b"/v1/events", b"/v1/events?x=1"), 422),
}  # fmt: skip
"""Requests that can be read in one way, and their statuses; after 400, the connection ends."""

AMBIGUOUS = {
    "a header without a colon": request("Host: x", "What"),
    "a blank before the colon": request("Host : x"),
    "a header that goes on": request("Host: x", "X: one", " two"),
    "a null": request("X: a\0b"),
    "two lengths": request("Content-Length: 3"),
    "two equal lengths": request(f"Content-Length: {len(EVENT)}"),
    "a length with a sign": request("Host: x").replace(b"Length: ", b"Length: +"),
    "a length and chunks": request("Transfer-Encoding: chunked"),
    "chunks that are not the last coding": request("Host: x").replace(
        b"Content-Length: %d" % len(EVENT), b"Transfer-Encoding: chunked, gzip"
    ),
    "lines without a carriage return": request("Host: x").replace(b"\r\n", b"\n"),
    "a body that is coded twice": request("Host: x").replace(
        b"Content-Length: %d" % len(EVENT), b"Transfer-Encoding: gzip, chunked"
    ),
    "chunks before HTTP/1.1": request("Host: x").replace(b"HTTP/1.1", b"HTTP/1.0").replace(
        b"Content-Length: %d\r\n\r\n%b" % (len(EVENT), EVENT),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(EVENT), EVENT),
    ),
    "a version that is none": request("Host: x").replace(b"HTTP/1.1", b"HTTP/2.0"),
    "another host in the target": request("Host: x").replace(b"/v1/events", b"http://y/v1/events"),
    "a tunnel": request("Host: x").replace(b"POST /v1/events", b"CONNECT x:80"),
    "a chunk size with a prefix": chunked(b"0x%x" % len(EVENT)),
    "a chunk size with a blank": chunked(b"%x " % len(EVENT)),
    "a chunk size that overflows": chunked(b"1%016x" % len(EVENT)),
    "a chunk size that ends in a line feed": chunked(b"%x" % len(EVENT), b"\n"),
    "a chunk that ends in a line feed": chunked(b"%x" % len(EVENT), last=b"\n"),
}  # fmt: skip
"""Requests that a proxy may read otherwise: what one takes for the body, the other takes for the next request."""


@pytest.mark.long
@pytest.mark.parametrize("guarded", [False, True], ids=["open", "with tokens"])
async def test_every_request_that_is_understood_gets_its_answer_and_so_does_the_next(
    tmp_path: Path, guarded: bool
) -> None:
    """A wrong token is refused, whatever it asks for; without tokens it does not matter."""
    token, table = new_token("one", ["decide"])
    (tmp_path / "tokens.toml").write_text(table, encoding="utf-8")
    known = read_tokens(tmp_path / "tokens.toml") if guarded else OPEN_TO_ALL
    async with serving(tmp_path / "s.db", tokens=known) as (port, engine):

        async def statuses(whole: bytes) -> list[int]:
            found = await sent(port, whole, LAST, pause=0.05)
            return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", found)]

        for name, (whole, status) in REQUESTS.items():
            authorised = whole.replace(b"\r\n", f"\r\nAuthorization: Bearer {token}\r\n".encode(), 1)
            found = await statuses(authorised if guarded else whole)
            # what is too large ends its connection, unless all of it has come when it is refused
            assert found in (
                [[400]] if status == 400 else [[status, 404], [413]] if status == 413 else [[status, 404]]
            ), name
        assert engine.events == 1
        refused = await statuses(request("Host: x", "Authorization: Bearer nothing"))
        assert refused == ([401, 404] if guarded else [200, 404])


@pytest.mark.parametrize("whole", AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_a_request_that_may_be_read_in_two_ways_ends_its_connection_and_changes_nothing(
    tmp_path: Path, whole: bytes
) -> None:
    """It is refused before it is decided on, and nothing after it is answered: no request can be smuggled in."""
    async with serving(tmp_path / "s.db") as (port, engine):
        found = await sent(port, whole + LAST)
        assert re.findall(rb"HTTP/1\.1 (\d+)", found) == [b"400"] and engine.events == 0


@pytest.mark.parametrize("whole", [True, False], ids=["with what follows", "alone"])
@pytest.mark.parametrize("in_chunks", [False, True], ids=["length", "chunks"])
async def test_a_request_for_another_protocol_is_answered_as_without_and_is_the_last_of_its_connection(
    tmp_path: Path, in_chunks: bool, whole: bool
) -> None:
    """As `curl --http2` sends it. Its body is read, and not taken for requests of its own."""
    async with serving(tmp_path / "s.db") as (port, engine):
        asked = (chunked(b"%x" % len(EVENT)) if in_chunks else request("Host: x")).replace(
            b"Host: x",
            b"Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
        )
        head, end, body = asked.partition(b"\r\n\r\n")
        parts = [asked + LAST] if whole else [head + end, body + LAST]
        found = await sent(port, *parts, pause=0.05)
        assert re.findall(rb"HTTP/1\.1 (\d+)", found) == [b"200"]
        assert b"connection: close" in found.lower() and engine.fleet.nic_of("x") is not None
        another = request("Host: x", body=EVENT.replace(b'"x"', b'"y"'))
        await sent(port, asked.replace(EVENT, another) + another)
        assert engine.events == 1, "its body was read as a request"


@pytest.mark.parametrize("pause", [0.0, 0.002], ids=["at once", "one after the other"])
async def test_a_client_that_does_not_wait_gets_its_answers_in_turn(tmp_path: Path, pause: float) -> None:
    """However its requests are cut, and whether they come before the answers to earlier ones."""
    parts = [request("Host: x", body=event(f"x{number}")) for number in range(20)]
    joined = b"".join(parts)
    for cuts in (parts, [joined], [joined[at : at + 100] for at in range(0, len(joined), 100)]):
        async with serving(tmp_path / f"{len(cuts)}-{pause}.db") as (port, _):
            found = await sent(port, *cuts, LAST, pause=pause)
            assert re.findall(rb"'(x\d+)'", found) == [b"x%d" % number for number in range(20)]


async def test_a_service_that_stops_answers_what_it_has_read(tmp_path: Path) -> None:
    """And then closes the connection."""
    async with serving(tmp_path / "s.db") as (port, engine):
        answer = asyncio.create_task(sent(port, HEAD + EVENT))
        while not engine.events:
            await asyncio.sleep(0)
    assert b'"placed"' in await answer


async def test_a_client_that_leaves_disturbs_nobody(tmp_path: Path) -> None:
    """What it asked for is done."""
    async with serving(tmp_path / "s.db") as (port, engine):
        for _ in range(5):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + EVENT)
            await writer.drain()
            writer.transport.abort()
        found = await sent(port, request("Host: x", body=event("nobody")), LAST, pause=0.1)
        assert b"409" in found and engine.fleet.nic_of("x") is not None


@pytest.mark.long
async def test_answers_leave_no_cycle_of_objects_behind(tmp_path: Path) -> None:
    """The service searches for such cycles only among young objects."""
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


KINDS = catalogue((3, 1.0)).kinds


QUESTION = b'{"nf": "a", "sla_drop": 0.9, "top": 3, "explain": true}'


def events() -> Iterator[bytes]:
    """Arrivals, departures, and lines that are refused."""
    for number in range(60):
        yield json.dumps({"event": "arrive", "id": f"x{number}", "nf": "abcd"[number % 4], "sla_drop": 0.9}).encode()
        yield json.dumps({"event": "depart", "id": f"x{number - 4}"}).encode()
        yield b'{"event": "arrive", "id": ""}'


@pytest.mark.long
def test_events_and_questions_leave_no_cycle_of_objects_behind(tmp_path: Path) -> None:
    """A cycle would never be freed, since old objects are not searched."""

    async def study() -> list[object]:
        with State(tmp_path / "s.db", KINDS) as state:
            engine = Engine(Fleet(KINDS), [ToyOracle()])
            writer = make_writer(engine, Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of), state)
            running = asyncio.create_task(writer.run())
            questions = QuestionRoutes(writer, WhatIf(engine))
            for _ in range(2):  # what is imported with the first request leaves cycles behind, once
                gc.collect()
                for line in events():
                    await writer.submit([line])
                    await questions.ask(Posted(QUESTION, [], EVERYBODY))
            left = cycles()
            writer.stop()
            await running
            return left

    gc.disable()
    try:
        assert asyncio.run(study()) == []
    finally:
        gc.enable()


def cycles() -> list[object]:
    """What only a search frees."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = list(gc.garbage)
    gc.garbage.clear()
    return found


@pytest.mark.long
def test_what_survives_two_searches_is_left_out_of_all_that_follow_until_the_end() -> None:
    """The fleet is not searched any more; afterwards everything is as before."""
    with short_searches():
        frozen = gc.get_freeze_count()
        kept = [[number] for number in range(1_000)]
        gc.collect(1)
        assert gc.get_freeze_count() >= frozen + len(kept)
    assert gc.get_freeze_count() == 0
