"""A log of which only a part is kept: its numbers stay, keys outlive it, and a webhook gets what it has not had."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from placer.fleet.service.http import webhooks, writer
from placer.fleet.state import retention, store
from placer.fleet.state.open_state import is_address, open_state
from placer.fleet.state.retention import Retention
from placer.fleet.state.store import State
from placer.testing.strategies import catalogue
from profiles import InputError
from tests.placer.fleet.service.http.test_webhooks import Receiver, follow
from tests.placer.fleet.service.http.toy_http import Service, service

ARRIVAL = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.9}
DAY = 86_400
KINDS = catalogue((3, 1.0)).kinds
HOOK = webhooks.row_of("http://127.0.0.1/x")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state is looked after at once."""
    monkeypatch.setattr(writer, "MAINTAINED_EVERY_S", 0.02)
    monkeypatch.setattr(retention, "MARK_SECONDS", 0)


class Clock:
    """The time of day, as states see it."""

    def __init__(self) -> None:
        self.now = 1e9

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return time.monotonic()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    from placer.fleet.state.postgres import schema
    from placer.fleet.state.postgres import state as shared

    one = Clock()
    for module in (store, shared):
        monkeypatch.setattr(module, "time", one)
        monkeypatch.setattr(module, "MARK_SECONDS", 0)
    monkeypatch.setattr(schema, "BEAT_SECONDS", 0.02)
    yield one


def begins_with(one: Service, number: int) -> None:
    """Wait until the log begins with this event."""
    for _ in range(400):
        one.event(event="where", id="a")  # an agent looks after its database when it has work
        if one.client.get("/v1/summary").json()["log_from"] == number:
            return
        time.sleep(0.02)
    raise AssertionError(f"the log begins with {one.client.get('/v1/summary').json()['log_from']}")


def in_and_out(one: Service, times: int) -> None:
    """Two events, so many times; the state knows when they were."""
    for _ in range(times):
        one.arrive("b")
        one.event(event="depart", id="b")
    time.sleep(0.1)
    one.event(event="where", id="a")


def test_the_last_events_are_kept_and_their_numbers_and_all_keys_stay(place: Path | str, clock: Clock) -> None:
    """An older `after` is 410; a request that is sent again gets its answer from before."""
    with service(place) as one:
        one.writer.state.retention = Retention(events=4)
        first = one.event({"Idempotency-Key": "k"}, **ARRIVAL)
        in_and_out(one, 5)
        begins_with(one, 8)
        gone = one.client.get("/v1/log", params={"after": 6})
        assert (gone.status_code, gone.json()["log_from"]) == (410, 8)
        assert one.client.get("/v1/log").status_code == 410
        assert [row["number"] for row in one.log(7)] == [8, 9, 10, 11]
        assert one.event({"Idempotency-Key": "k"}, **ARRIVAL).text == first.text
    with service(place) as one:
        assert one.client.get("/v1/summary").json()["log_from"] == 8 and one.arrive("c")["version"] == 12
        assert one.event(event="where", id="a").json()["nic"] == "nic-1"


def test_events_are_kept_for_days(place: Path | str, clock: Clock) -> None:
    """Those of which the time is not known count as of the first time that is."""
    with service(place) as one:
        one.writer.state.retention = Retention(seconds=2 * DAY)
        one.arrive("a")
        in_and_out(one, 1)
        begins_with(one, 1)
        clock.now += 1.5 * DAY
        in_and_out(one, 1)
        clock.now += DAY
        begins_with(one, 4)
        clock.now += DAY
        begins_with(one, 6)
        assert one.log(5) == []
    if not is_address(place):
        with State(Path(place), KINDS) as state:
            assert (state.events, state.log_from) == (5, 6)
    with service(place) as one:
        assert one.arrive("c")["version"] == 6


def test_what_a_webhook_has_not_had_is_kept_for_seven_days(place: Path | str, clock: Clock) -> None:
    """Then it is deleted all the same."""
    with service(place) as one:
        one.writer.state.note(HOOK, 2)
        one.writer.state.commit()
        one.writer.state.retention = Retention(events=1, webhook=HOOK)
        one.arrive("a")
        in_and_out(one, 2)
        begins_with(one, 3)
        clock.now += 8 * DAY
        one.arrive("c")
        begins_with(one, 6)


@pytest.mark.parametrize("had", [2, 0])
def test_a_webhook_that_was_away_for_too_long_goes_on_and_what_it_lost_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, had: int
) -> None:
    """Two events are gone, or four of one that never had any; it gets the next ones. They are counted once, however
    often these are sent."""
    monkeypatch.setattr(webhooks, "FIRST_PAUSE_S", 0.01)
    path = tmp_path / "s.db"
    asyncio.run(follow(path, Receiver(9 - 3 * had), arrivals=2, until=had))
    with service(path) as one:
        in_and_out(one, 2)
        one.writer.state.retention = Retention(events=2)
        begins_with(one, 5)
    receiver = Receiver(failures=2)
    asyncio.run(follow(path, receiver, arrivals=0, until=6))
    assert receiver.taken == [5, 6]
    shown = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["events"] for line in shown if line["log"].startswith("events were not kept")] == [4 - had]


@pytest.mark.parametrize("text", ["0", "-5", "30", "x", "d", "1.5d", "0d", "3w", "", "²"])
def test_what_keep_log_takes(text: str) -> None:
    """A number of events, days or hours; else it says what it takes."""
    if text == "30":
        assert Retention.read("30", None) == Retention(events=30)
        assert Retention.read("30d", "w") == Retention(seconds=30 * DAY, webhook="w")
        assert Retention.read("12h", None) == Retention(seconds=DAY // 2)
    else:
        with pytest.raises(InputError, match="no number of events or days"):
            Retention.read(text, None)


def pages(path: Path) -> int:
    """The size of a state."""
    return path.stat().st_size // 4096


@pytest.mark.long
def test_a_file_of_many_events_becomes_small_in_steps_while_it_is_used(tmp_path: Path) -> None:
    """20,000 events, of which 100 are kept: at most the pages that may be free are."""
    path = tmp_path / "s.db"
    with service(path) as one:
        lines = "\n".join(
            json.dumps({**ARRIVAL, "id": f"{number // 2}"} if number % 2 == 0 else
                       {"event": "depart", "id": f"{number // 2}"}) for number in range(20_000)
        )  # fmt: skip
        assert one.client.post("/v1/events:batch", content=lines).status_code == 200
        before = pages(path)
        one.writer.state.retention = Retention(events=100)
        begins_with(one, 19_901)
        for _ in range(400):
            if pages(path) < before / 5:
                break
            time.sleep(0.02)
            one.arrive("a")
        assert pages(path) < before / 5
    with open_state(path, KINDS) as state:
        assert state.events >= 20_000
