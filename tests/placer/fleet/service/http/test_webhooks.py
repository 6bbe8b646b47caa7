"""Webhooks: signed, in order, again until they are answered, and from where they were after a restart."""

import asyncio
import hashlib
import hmac
import json
from pathlib import Path

import httpx
import pytest

from placer.fleet.engine import Engine
from placer.fleet.protocol import Reader
from placer.fleet.service.http import webhooks
from placer.fleet.service.http.server import make_writer
from placer.fleet.service.http.webhooks import Webhook, webhook_maker
from placer.fleet.state.open_state import open_state
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import InputError

SECRET = b"0123456789abcdef"
KINDS = catalogue((3, 1.0)).kinds


class Receiver:
    """Fails so many times, then takes what comes."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.requests: list[tuple[str, bytes]] = []
        self.taken: list[int] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append((request.headers["placer-signature"], request.content))
        if self.failures:
            self.failures -= 1
            if self.failures % 2:
                raise httpx.ConnectError("cut")
            return httpx.Response(500)
        self.taken += [json.loads(line)["number"] for line in request.content.splitlines()]
        return httpx.Response(204)


async def follow(
    path: Path | str, receiver: Receiver, arrivals: int, until: int, transport: httpx.AsyncBaseTransport | None = None
) -> None:
    """Decide on arrivals, and send the log until it is sent up to this event."""
    with open_state(path, KINDS) as state:
        fleet = state.fleet if state.events else Fleet(KINDS)
        engine = Engine(fleet, [ToyOracle()], events=state.events)
        writer = make_writer(engine, Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of), state)
        hook = Webhook("http://127.0.0.1/x", SECRET, writer, transport or httpx.MockTransport(receiver))
        deciding, sending = asyncio.create_task(writer.run()), asyncio.create_task(hook.run())
        first = state.events
        for number in range(arrivals):
            event = {"event": "arrive", "id": f"{first + number}", "nf": "a", "sla_drop": 0.9}
            await writer.submit([json.dumps(event).encode()])
        async with asyncio.timeout(20):
            while hook.sent < until:
                await asyncio.sleep(0.005)
        writer.stop()
        await asyncio.gather(deciding, sending)


@pytest.mark.long
def test_every_event_arrives_in_order_and_a_restart_goes_on(place: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three failures first; after a restart only what is new is sent."""
    monkeypatch.setattr(webhooks, "FIRST_PAUSE_S", 0.01)
    receiver = Receiver(failures=3)
    asyncio.run(follow(place, receiver, arrivals=5, until=5))
    assert receiver.taken == [1, 2, 3, 4, 5]
    later = Receiver()
    asyncio.run(follow(place, later, arrivals=2, until=7))
    assert later.taken == [6, 7]


def test_a_request_is_signed_with_its_time(place: Path | str) -> None:
    """Anybody with the secret can compute it."""
    receiver = Receiver()
    asyncio.run(follow(place, receiver, arrivals=1, until=1))
    header, body = receiver.requests[0]
    at, given = (part.partition("=")[2] for part in header.split(","))
    assert given == hmac.new(SECRET, f"{at}.".encode() + body, hashlib.sha256).hexdigest()


class Dribbler(httpx.AsyncBaseTransport):
    """A receiver that never ends its answer, or fails in its own way; then one that takes what comes."""

    def __init__(self, failure: Exception | None) -> None:
        self.failure = failure
        self.calls = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.calls += 1
        if self.calls > 1:
            return httpx.Response(204)
        if self.failure is not None:
            raise self.failure
        await asyncio.sleep(60)
        raise AssertionError("it was waited for too long")


@pytest.mark.parametrize("failure", [None, httpx.InvalidURL("no port"), httpx.ReadTimeout("slow")])
def test_a_receiver_that_hangs_or_fails_gets_the_events_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failure: Exception | None
) -> None:
    """Within the seconds that it has; and the log says so."""
    monkeypatch.setattr(webhooks, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(webhooks, "REQUEST_SECONDS", 0.1)
    transport = Dribbler(failure)
    asyncio.run(follow(tmp_path / "s.db", Receiver(), arrivals=1, until=1, transport=transport))
    assert transport.calls == 2
    (line,) = [one for one in capsys.readouterr().err.splitlines() if "webhook" in one]
    assert json.loads(line)["log"] == "a webhook was not delivered"


async def test_the_lag_of_a_receiver_is_shown_until_it_has_everything(tmp_path: Path) -> None:
    """Events and seconds, in the metrics; none are left once it has all."""
    released = asyncio.Event()

    async def wait(request: httpx.Request) -> httpx.Response:
        await released.wait()
        return httpx.Response(204)

    with open_state(tmp_path / "s.db", KINDS) as state:
        engine = Engine(Fleet(KINDS), [ToyOracle()])
        writer = make_writer(engine, Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of), state)
        hook = Webhook("http://127.0.0.1/x", SECRET, writer, httpx.MockTransport(wait))
        assert hook.lag() == (0, 0.0)
        running = [asyncio.create_task(writer.run()), asyncio.create_task(hook.run())]
        for number in range(3):
            event = {"event": "arrive", "id": f"{number}", "nf": "a", "sla_drop": 0.9}
            await writer.submit([json.dumps(event).encode()])
        await asyncio.sleep(0.01)
        assert b"placer_webhook_lag_events 3.0" in writer.metrics.text() and hook.lag()[1] > 0
        released.set()
        async with asyncio.timeout(10):
            while hook.lag() != (0, 0.0):
                await asyncio.sleep(0.005)
        assert hook.sent == 3
        writer.stop()
        await asyncio.gather(*running)


NOT_SAFE = "no https:// address"


@pytest.mark.parametrize(
    ("address", "secret", "message"),
    [
        *((address, SECRET, NOT_SAFE) for address in (
            "http://inventory.example/x", "ftp://x", "x", "https:///x", "https://[::1",
        )),  # only https, or this machine
        ("https://me:hidden@inventory.example/x", SECRET, "password"),  # it would stand in the log and the state
        ("https://x.example/", b"short\n", "less than 16 bytes"),
        ("https://x.example/", None, "names no file"),
    ],
)  # fmt: skip
def test_what_is_not_safe_is_refused(tmp_path: Path, address: str, secret: bytes | None, message: str) -> None:
    """No password is shown."""
    (tmp_path / "secret").write_bytes(secret or b"")
    with pytest.raises(InputError, match=message) as error:
        webhook_maker(address, tmp_path / "secret" if secret else None)
    assert "hidden" not in str(error.value)
