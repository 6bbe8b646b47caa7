"""Clients that are slow, endless or cut off: they are sent away, others are served, and nothing changes."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from placer.fleet.service.http import app, connections
from placer.fleet.service.http.hosts import Hosts
from placer.fleet.service.http.tokens import OPEN_TO_ALL
from tests.placer.fleet.service.http.toy_http import EVENT, HEAD, sent, serving

HEADERS_WITHOUT_END = (b"GET / HTTP/1.1\r\n", *[b"X: %d\r\n" % number for number in range(40)])
A_LARGE_HEADER = (b"GET / HTTP/1.1\r\n", *[b"X: " + b"x" * 8_000 + b"\r\n"] * 12)


@pytest.mark.parametrize("parts", [(b"",), HEADERS_WITHOUT_END, A_LARGE_HEADER], ids=["silent", "endless", "large"])
async def test_a_request_that_never_begins_is_cut_off_and_others_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: tuple[bytes, ...]
) -> None:
    """Without an answer, within the seconds that its head may take."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    async with serving(tmp_path / "s.db") as (port, engine):
        slow = asyncio.create_task(sent(port, *parts, pause=0.02))
        assert b'"placed"' in await sent(port, HEAD.replace(b"Host", b"Connection: close\r\nHost") + EVENT)
        assert await slow == b"" and engine.events == 1


async def test_a_body_that_dribbles_is_refused_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time, but not all of them."""
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.3)
    async with serving(tmp_path / "s.db") as (port, engine):
        dribbled = [HEAD.replace(b"Host", b"Connection: close\r\nHost"), *(EVENT[at : at + 1] for at in range(40))]
        assert b" 408 " in (await sent(port, *dribbled, pause=0.02)).splitlines()[0]
        assert engine.events == 0


async def test_the_refusal_of_a_slow_body_reaches_a_client_that_goes_on_sending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads only after it has sent more; a connection that were closed at once would be reset by that."""
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.1)
    async with serving(tmp_path / "s.db") as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(HEAD + EVENT[:5])
        for at in range(5, 8):
            await asyncio.sleep(0.2)
            writer.write(EVENT[at : at + 1])
        await asyncio.sleep(0.1)
        assert (await reader.read(100)).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_a_request_that_is_cut_in_the_middle_changes_nothing_and_pipelined_ones_are_answered_in_order(
    tmp_path: Path,
) -> None:
    """Of a request, less or more than a whole arrives."""
    async with serving(tmp_path / "s.db") as (port, engine):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD + EVENT[:20])
        await writer.drain()
        writer.close()
        await asyncio.sleep(0.1)
        assert engine.events == 0
        again = HEAD.replace(b"Host", b"Connection: close\r\nHost") + EVENT
        answer = await sent(port, HEAD + EVENT + again)
        assert answer.count(b" 200 OK") == 2 and answer.index(b'"placed"') < answer.rindex(b'"placed"')
        assert engine.events == 1


HALF = b"GET /v1/summary HTTP/1.1\r\nHost"


@pytest.mark.parametrize("addresses", [1, 40], ids=["one client", "many clients"])
async def test_clients_that_never_end_their_heads_keep_out_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, addresses: int
) -> None:
    """With room for 32 connections, the oldest of 100 are closed; another client is answered, and so are probes."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 32)
    async with serving(tmp_path / "s.db") as (port, _):
        halves = []
        for number in range(100):
            address = f"127.0.1.{number % addresses + 1}"
            halves.append(await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0)))
            halves[-1][1].write(HALF)
            await asyncio.sleep(0.001)
        for _ in range(3):
            assert b" 404 " in await sent(port, LIVE.replace(b"Host", b"Connection: close\r\nHost"))
        assert b" 200 " in await sent(port, LAST_EVENT)
        ended = [reader.at_eof() for reader, _ in halves]
        assert ended == [True] * ended.count(True) + [False] * ended.count(False)
        assert ended.count(False) == (4 if addresses == 1 else 16 - 1)
        for _, writer in halves:
            writer.close()


async def test_with_too_many_connections_only_probes_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are refused, to retry later."""
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 0)
    async with serving(tmp_path / "s.db") as (port, engine):
        answer = await sent(port, LAST_EVENT)
        assert answer.startswith(b"HTTP/1.1 503 ") and b"retry-after: 1" in answer.lower()
        assert b'"there is no such path"' in await sent(port, LIVE.replace(b"Host", b"Connection: close\r\nHost"))
        assert engine.events == 0


@pytest.mark.parametrize("head", [b"Content-Length: 2000000", b"Transfer-Encoding: chunked"])
async def test_a_body_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, head: bytes) -> None:
    """By its length, or once it is larger; the answer reaches a client that goes on sending, and nothing is changed."""
    async with serving(tmp_path / "s.db") as (port, engine):
        whole = HEAD.replace(b"Content-Length: %d" % len(EVENT), head)
        parts = [whole] if head.startswith(b"Content") else [whole, *[b"10000\r\n" + b" " * 65_536 + b"\r\n"] * 17]
        found = await sent(port, *parts, pause=0.001)
        assert found.startswith(b"HTTP/1.1 413 ") and b"connection: close" in found.lower()
        assert engine.events == 0


LIVE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
LAST_EVENT = HEAD.replace(b"Host: x", b"Host: x\r\nConnection: close") + EVENT


@pytest.mark.parametrize(
    ("parts", "answers"),
    [
        ((HEAD + EVENT, LAST_EVENT), [429, 429]),
        ((HEAD, EVENT[:3], EVENT[3:] + LIVE, LAST_EVENT), [429, 404, 429]),
        ((LIVE + HEAD + EVENT + LIVE, LAST_EVENT), [404, 429, 404, 429]),
        ((HEAD.replace(b"Host: x", b"Expect: 100-continue") + EVENT, LAST_EVENT), [429, 429]),
        ((LAST_EVENT.replace(b"HTTP/1.1", b"HTTP/1.0"),), [429]),
    ],
    ids=["twice", "in parts", "at once", "expecting", "old"],
)
async def test_events_are_turned_away_while_too_many_wait(
    tmp_path: Path, parts: tuple[bytes, ...], answers: list[int]
) -> None:
    """Each gets its answer in turn, on a connection that goes on as long as its client wants."""
    async with serving(tmp_path / "s.db", full=True) as (port, engine):
        found = await sent(port, *parts, pause=0.05)
        assert [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", found)] == answers
        assert found.lower().count(b"retry-after: 1") == answers.count(429) and engine.events == 0


async def test_an_event_that_is_turned_away_and_does_not_come_whole_ends_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the answer, once the time for its body is over."""
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.2)
    async with serving(tmp_path / "s.db", full=True) as (port, _):
        assert (await sent(port, HEAD + EVENT[:3], pause=0.5)).startswith(b"HTTP/1.1 429 ")


@pytest.mark.long
async def test_a_connection_stays_open_while_its_events_are_turned_away(tmp_path: Path) -> None:
    """And is closed some time after the last one, as after any answer."""
    async with serving(tmp_path / "s.db", full=True, idle_s=1) as (port, _):
        begun = asyncio.get_running_loop().time()
        found = await sent(port, *[HEAD + EVENT] * 4, pause=0.5)
        assert found.count(b"HTTP/1.1 429") == 4 and asyncio.get_running_loop().time() - begun >= 2.4


async def test_a_refusal_waits_the_longer_the_more_of_them_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that come again at once cannot take all the time of the service; afterwards all is as before."""
    waits: list[float] = []

    async def record(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(app, "asyncio", SimpleNamespace(sleep=record))
    writer: Any = SimpleNamespace(full=True, metrics=SimpleNamespace(count_overload=lambda: None))
    requests: Any = SimpleNamespace(note=lambda *of: None)
    guard = app.Guard(None, [], writer, OPEN_TO_ALL, Hosts("127.0.0.1", 80), requests)  # type: ignore[arg-type]
    scope = {"type": "http", "method": "POST", "path": app.EVENTS_PATH}
    statuses = []

    async def send(message: Any) -> None:
        statuses.append(message.get("status"))

    for count in (100, 1):
        await asyncio.gather(*(guard(scope, None, send) for _ in range(count)))  # type: ignore[arg-type]
    assert statuses.count(429) == 101
    assert waits[0] == waits[-1] == app.OVERLOAD_SECONDS
    assert waits[99] == 100 * app.SECONDS_PER_REFUSAL > app.OVERLOAD_SECONDS
