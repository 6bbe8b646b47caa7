"""Turns: long requests are decided on, and long questions answered, a little at a time, between those of others."""

import asyncio
import json
import math
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from placer.fleet import what_if as what_if_module
from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Change, Decision, Depart, FleetEvent, Rebalance
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import MOST_TRIED, TRIED_IN_ORDER
from placer.fleet.service.http import deciding
from placer.fleet.service.http import writer as turns
from placer.fleet.service.http.server import make_writer
from placer.fleet.service.http.tokens import SCOPES, AccessToken
from placer.fleet.service.http.turns import Part, Rebalancing, Submission, Turns
from placer.fleet.service.http.writer import MOST_QUESTIONS, Overloaded, Stopped, Writer
from placer.fleet.state.saved import KeptAnswer
from placer.fleet.state.store import State
from placer.fleet.what_if import ExpectedPlace, Steps, WhatIf, complete
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload
from tests.placer.fleet.service.http.toy_http import service

KINDS = catalogue((None, 1.0)).kinds


def tenant(identity: object, nf: str = "b", drop: float = 0.9) -> Tenant:
    return Tenant(f"{identity}", Workload(nf, TOY_TRAFFIC), Sla(max_drop=drop))


def line(identity: object, nf: str = "b") -> bytes:
    return json.dumps({"event": "arrive", "id": f"{identity}", "nf": nf, "sla_drop": 0.9}).encode()


@contextmanager
def writer_of(path: Path) -> Iterator[Writer]:
    with State(path, KINDS) as state:
        engine = Engine(Fleet(KINDS), [ToyOracle()])
        yield make_writer(engine, Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of), state)


def test_a_single_event_is_answered_before_a_long_batch_that_came_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn of no time has one event; the batch goes on behind others that came meanwhile, and keeps its order."""
    monkeypatch.setattr(turns, "LONGEST_TURN_S", 0.0)

    async def act(writer: Writer) -> tuple[int, list[str]]:
        running = asyncio.create_task(writer.run())
        batch = asyncio.create_task(writer.submit([line(number) for number in range(50)]))
        await asyncio.sleep(0)
        await writer.submit([line("single")])
        decided = writer.engine.events
        answers = [json.loads(answer.text)["id"] for answer in await batch]
        writer.stop()
        await running
        return decided, answers

    with writer_of(tmp_path / "s.db") as writer:
        decided, answers = asyncio.run(act(writer))
    assert decided < 10 and answers == [f"{number}" for number in range(50)]


def test_few_lines_are_read_again_where_turns_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 50 turns has one event of a batch, and reads at most 8 lines, not all that are left."""
    monkeypatch.setattr(turns, "LONGEST_TURN_S", 0.0)
    read = list[str | bytes]()

    class CountingReader(Reader):
        def read(self, line: str | bytes) -> FleetEvent:
            read.append(line)
            return super().read(line)

    async def act(writer: Writer) -> None:
        running = asyncio.create_task(writer.run())
        await writer.submit([line(number) for number in range(50)])
        writer.stop()
        await running

    with State(tmp_path / "s.db", KINDS) as state:
        engine = Engine(Fleet(KINDS), [ToyOracle()])
        reader = CountingReader(TOY_TRAFFIC, lambda workload: (), engine.workload_of)
        asyncio.run(act(make_writer(engine, reader, state)))
    assert 50 <= len(read) <= 50 * 8


def submission(token: AccessToken, lines: int, name: str = "") -> Submission:
    """A request of so many lines, which nobody reads."""
    given = [f"{token.name}{name} {number}".encode() for number in range(lines)]
    return Submission(given, None, None, token=token)  # type: ignore[arg-type]


LIGHT, HEAVY = (AccessToken(name, frozenset(SCOPES), weight) for name, weight in (("light", 1.0), ("heavy", 3.0)))


def taken(parts: Sequence[Part]) -> list[str]:
    """The lines of these parts, in order."""
    return [line.decode() for part in parts for line in part.of.lines[part.first : part.last]]


def count_turns(lines: Iterable[str]) -> tuple[int, int]:
    """Lines of the light token, and of the heavy one."""
    names = [line.split()[0] for line in lines]
    return names.count("light"), names.count("heavy")


def test_tokens_have_turns_in_proportion_to_their_weights() -> None:
    """A weight of 3 has 3 lines for each one of a weight of 1, in any 4; lines of a request keep their order."""
    queue = Turns()
    for token in (LIGHT, HEAVY):
        queue.add(submission(token, 100))
    lines = taken(queue.take(80))
    assert count_turns(lines) == (20, 60)
    assert all(count_turns(lines[first : first + 4]) == (1, 3) for first in range(0, 80, 4))
    assert [line for line in lines if line.startswith("light")] == [f"light {number}" for number in range(20)]


def test_a_long_request_leaves_room_for_the_single_events_behind_it() -> None:
    """Three that came later are in its batch of 64; of a hundred, as many as four of its lines leave room for."""
    for behind, of_long in ((3, 61), (100, 4)):
        queue = Turns()
        for lines in (200, *[1] * behind):
            queue.add(submission(LIGHT, lines))
        parts = queue.take(64)
        assert [part.last - part.first for part in parts] == [of_long, *[1] * (64 - of_long)]
        assert {len(part.of.lines) for part in parts[1:]} == {1}
        rest = queue.take(64)
        assert rest[0 if behind == 3 else 40].of is parts[0].of


@pytest.mark.parametrize("decided", [1, 3, 7])
def test_turns_that_were_not_used_do_not_count(decided: int) -> None:
    """Of 64 lines that are taken, a few are decided on before time is up; the others wait again, in their order."""
    queue, lines = Turns(), list[str]()
    for token in (LIGHT, HEAVY):
        queue.add(submission(token, 400))
    for _ in range(60):
        parts, left = queue.take(64), decided
        for at, part in enumerate(parts):
            used = min(left, part.last - part.first)
            lines += taken([Part(part.of, part.first, part.first + used)])
            left -= used
            if part.first + used < part.last:
                queue.put_back([Part(part.of, part.first + used, part.last), *parts[at + 1 :]], begun=used > 0)
                break
    light, heavy = count_turns(lines)
    assert light + heavy == 60 * decided
    assert abs(heavy - 3 * light) <= 3
    for name, count in (("light", light), ("heavy", heavy)):
        assert [line for line in lines if line.startswith(name)] == [f"{name} {number}" for number in range(count)]


def test_a_token_gains_nothing_by_waiting_and_loses_nothing_to_a_long_request() -> None:
    """When the heavy token comes, it has its share from then on; the turns that it let pass are gone."""
    queue = Turns()
    queue.add(submission(LIGHT, 1_000))
    queue.take(500)
    queue.add(submission(HEAVY, 100))
    assert count_turns(taken(queue.take(40))) == (10, 30)


def test_nics_that_a_rebalancing_looks_at_are_turns() -> None:
    """After 16 of them the other token has 48 lines, at three times the weight, before both go on."""
    queue, rebalancing = Turns(), submission(LIGHT, 1)
    for request in (rebalancing, submission(HEAVY, 100)):
        queue.add(request)
    parts = queue.take(1)
    queue.charge(rebalancing, 16)
    queue.put_back(parts, begun=True)
    assert count_turns(taken(queue.take(49))) == (1, 48)


@contextmanager
def writer_on_a_clock(path: Path, monkeypatch: pytest.MonkeyPatch, line_s: Callable[[], float]) -> Iterator[Writer]:
    """A writer of which each line takes so long, and is its own answer; of one that begins with `r`, in a third turn of
    a rebalancing."""
    now, turns_of = 0.0, Counter[Submission]()

    def answer(submission: Submission, line: bytes, *_: object) -> KeptAnswer | None:
        nonlocal now
        now += line_s()
        turns_of[submission] += 1
        waits = line.startswith(b"r") and turns_of[submission] % 3 != 0
        submission.rebalancing = Rebalancing(Rebalance(1), [], None) if waits else None  # type: ignore[arg-type]
        return None if waits else KeptAnswer(b"", 200, line.decode())

    with writer_of(path) as writer:
        monkeypatch.setattr(turns, "time", SimpleNamespace(perf_counter=lambda: now))
        monkeypatch.setattr(writer, "_read", lambda submission, line: line)
        monkeypatch.setattr(writer, "_answer", answer)
        yield writer


@pytest.mark.parametrize("line_s", [0.0005, 0.005])
def test_long_requests_have_one_short_time_of_a_turn_with_single_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line_s: float
) -> None:
    """Behind a single event, those of two tokens have four lines together: 2 ms, or the least number."""
    with writer_on_a_clock(tmp_path / "s.db", monkeypatch, lambda: line_s) as writer:
        for request in (submission(LIGHT, 1), submission(LIGHT, 100), submission(HEAVY, 100)):
            writer._waiting.add(request)
        decided = taken(writer._decide_all(writer._waiting.take(64)))
    assert decided[0] == "light 0" and len(decided) == 1 + 4


def test_a_long_request_that_no_time_is_left_for_keeps_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one is next, before a third one that came later."""
    with writer_on_a_clock(tmp_path / "s.db", monkeypatch, lambda: turns.LONGEST_TURN_S / 2) as writer:
        for name in ("-first", "-second", "-third"):
            writer._waiting.add(submission(LIGHT, 2, name))
        for name in ("-first", "-second", "-third"):
            decided = taken(writer._decide_all(writer._waiting.take(64)))
            assert decided == [f"light{name} 0", f"light{name} 1"]


@pytest.mark.parametrize("seed", range(20))
def test_each_line_is_answered_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whatever comes when, and however long lines take; some turns are decided on twice, as after others' events."""
    rng = random.Random(seed)
    sent, turns_taken = list[Submission](), 0
    with writer_on_a_clock(tmp_path / "s.db", monkeypatch, lambda: rng.choice((0, 1e-4, 1e-3, 6e-3))) as writer:
        while len(sent) < 40 or writer._waiting:
            for _ in range(rng.randrange(4) if len(sent) < 40 else 0):
                kind = "r" if rng.random() < 0.2 else "e"
                lines = [f"{kind} {len(sent)} {number}".encode() for number in range(rng.choice((1, 1, 1, 3, 40)))]
                reader = writer.reader
                sent.append(Submission(lines, None, reader, token=rng.choice((LIGHT, HEAVY))))  # type: ignore[arg-type]
                writer._waiting.add(sent[-1])
            writer._batch = writer._decide_all(writer._waiting.take(writer._most_decided))
            if rng.random() < 0.3 and not any(part.of.lines[0].startswith(b"r") for part in writer._batch):
                for part in writer._batch:
                    del part.of.answers[part.first :]
                writer._batch = writer._decide_all(writer._batch)
            turns_taken += 1
            assert turns_taken < 5_000
    for request in sent:
        assert [answer.text for answer in request.answers] == [line.decode() for line in request.lines]


def test_within_a_token_the_rest_of_a_long_request_goes_behind_the_others() -> None:
    """A single line that came later waits for one commit."""
    queue = Turns()
    queue.add(submission(LIGHT, 10, "-long"))
    queue.add(submission(LIGHT, 1, "-single"))
    assert taken(queue.take(4)) == [f"light-long {number}" for number in range(4)]
    assert taken(queue.take(3)) == ["light-single 0", "light-long 4", "light-long 5"]


def test_batches_of_two_tokens_are_decided_on_by_their_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the time: of the first 80 events in the log, the light token has 20."""
    monkeypatch.setattr(turns, "LONGEST_TURN_S", math.inf)

    async def act(writer: Writer) -> list[KeptAnswer]:
        batches = [
            asyncio.create_task(writer.submit([line(f"{token.name} {number}") for number in range(60)], token=token))
            for token in (LIGHT, HEAVY)
        ]
        await asyncio.sleep(0)
        running = asyncio.create_task(writer.run())
        answers = [answer for batch in batches for answer in await batch]
        writer.stop()
        await running
        return answers

    with writer_of(tmp_path / "s.db") as writer:
        assert len(asyncio.run(act(writer))) == 120
        logged = [json.loads(event)["id"] for _, event, *_ in writer.state.log_after(0, 80)]
    assert count_turns(logged) == (20, 60)


def test_questions_take_turns_with_events_and_too_many_are_refused(tmp_path: Path) -> None:
    """Events that come while questions are answered are decided on between their steps."""
    seen: list[int] = []

    def steps(writer: Writer) -> Steps[int]:
        while writer.version < 5:
            seen.append(writer.version)
            yield
        return writer.version

    async def act(writer: Writer) -> list[int]:
        running = asyncio.create_task(writer.run())
        questions = [asyncio.create_task(writer.work_through(steps(writer))) for _ in range(MOST_QUESTIONS)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await writer.work_through(steps(writer))
        for number in range(5):
            await writer.submit([line(number)])
        found = await asyncio.gather(*questions)
        assert await writer.work_through(steps(writer)) == 5, "there is room again"
        writer.stop()
        await running
        return found

    with writer_of(tmp_path / "s.db") as writer:
        assert asyncio.run(act(writer)) == [5] * MOST_QUESTIONS
    assert len(set(seen)) > 1


def test_a_question_goes_on_while_the_disk_writes_and_is_answered_after_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that waits for all steps of the question; its answer rests on the event of that commit."""
    stepped, order = threading.Event(), list[str]()

    def steps(writer: Writer) -> Steps[int]:
        while not writer.version:
            yield
        for _ in range(3):
            yield
        stepped.set()
        return writer.version

    async def act(writer: Writer) -> int:
        commit = writer.state.commit

        def commit_late() -> None:
            assert stepped.wait(20), "no step was taken while the disk wrote"
            commit()
            order.append("committed")

        monkeypatch.setattr(writer.state, "commit", commit_late)
        running = asyncio.create_task(writer.run())
        question = asyncio.create_task(writer.work_through(steps(writer)))
        event = asyncio.create_task(writer.submit([line(1)]))
        found = await question
        order.append("answered")
        await event
        writer.stop()
        await running
        return found

    with writer_of(tmp_path / "s.db") as writer:
        assert asyncio.run(act(writer)) == 1
    assert order[:2] == ["committed", "answered"]


def test_a_question_ends_when_the_service_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No step is taken after that: the fleet may be anything."""
    steps_after = list[int]()

    def steps(writer: Writer) -> Steps[int]:
        while True:
            steps_after.extend([1] if writer.failure else [])
            yield

    async def act(writer: Writer) -> None:
        monkeypatch.setattr(writer.state, "write", lambda: 1 / 0)
        running = asyncio.create_task(writer.run())
        question = asyncio.create_task(writer.work_through(steps(writer)))
        with pytest.raises(Stopped):
            await writer.submit([line(1)])
        with pytest.raises(ZeroDivisionError):
            await running
        with pytest.raises(Stopped):
            await question

    with writer_of(tmp_path / "s.db") as writer:
        asyncio.run(act(writer))
    assert not steps_after


@pytest.mark.long
def test_a_rebalancing_takes_turns_and_its_log_leads_to_the_same_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 NICs with one tenant each: two NICs are looked at per turn, and all that fits together comes together."""
    monkeypatch.setattr(deciding, "NICS_PER_TURN", 2)
    with service(tmp_path / "s.db", count=None) as one:
        for number in range(60):
            one.arrive(f"{number}", "b", nic=f"nic-{number + 1}") if number else one.arrive("0", "b")
        one.event(event="join", nic="spare", nic_model=one.engine.fleet.kinds[0].model)
        for number in range(200):
            one.arrive(f"more {number}", "b")
        for number in range(200):
            if number % 4:
                one.event(event="depart", id=f"more {number}")
        before = len(one.engine.fleet.nics)
        given = one.event(event="rebalance", budget=500).json()
        assert given["status"] == "rebalanced" and given["budget"] == 500
        logged = [row for row in one.log() if row["event"]["event"] == "rebalance"]
        assert [move for row in logged for move in row["answer"]["moves"]] == given["moves"]
        assert len(logged) > 1 and all(len(row["event"]["nics"]) <= 2 for row in logged)
        assert len(one.engine.fleet.nics) < before
        assert one.event(event="rebalance", budget=500).json()["status"] == "as-it-was"
        lines = [row["event"] for row in one.log()]
        fleet = {nic.id: sorted(nic.tenants_by_id) for nic in one.engine.fleet.nics.values()}
    again = Engine(Fleet(catalogue((None, 1.0)).kinds), [ToyOracle()])
    reader = Reader(TOY_TRAFFIC, lambda workload: (), again.workload_of, of_log=True)
    for event in lines:
        again.handle(reader.read(json.dumps(event)))
    assert {nic.id: sorted(nic.tenants_by_id) for nic in again.fleet.nics.values()} == fleet


def test_places_that_are_found_in_steps_are_checked_again_where_the_fleet_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the steps others take places that were found; those of the answer are all there to be had."""
    monkeypatch.setattr(what_if_module, "LONGEST_STEP_S", 0.0)
    monkeypatch.setattr(what_if_module, "LEAST_COPIES", 4)
    engine = Engine(Fleet(catalogue((40, 1.0)).kinds), [ToyOracle()], expected=[tenant(nf, nf) for nf in "abcd"])
    for number in range(12):
        engine.handle(Arrive(tenant(number, "d")))
    what_if = WhatIf(engine)
    at_once = complete(what_if.places(tenant("x", "b"), count=30))
    steps = with_events_between(
        engine,
        what_if.places(tenant("x", "b"), count=30),
        lambda number: Arrive(tenant(f"between {number}", "d", 0.0)),
    )
    found = complete(steps)
    assert len(at_once) == len(found) == 30
    for number, place in enumerate(found):
        named = place.nic if engine.fleet.find(place.nic) else None
        assert engine.handle(Arrive(tenant(f"x{number}", "b"), named)).status == "placed"


@pytest.mark.parametrize("first", product("abcd", (0.02, 0.1, 0.3)), ids=str)
def test_a_question_names_the_nic_that_an_arrival_then_gets(first: tuple[str, float]) -> None:
    """Also where tables lack what the NIC becomes, as their SLAs are less loose, and no other is left."""
    for second in product("abcd", (0.1, 0.5)):
        engine = Engine(Fleet(catalogue((1, 1.0)).kinds), [ToyOracle()])
        engine.handle(Arrive(tenant("x", *first)))
        arrival = tenant("y", *second)
        found = [place.nic for place in complete(WhatIf(engine).places(arrival))]
        assert found == [nic for nic in [engine.handle(Arrive(arrival)).nic] if nic is not None]


def test_a_question_loses_no_more_places_than_others_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each step of four places, another arrival takes the first of them; the others stay found."""
    monkeypatch.setattr(what_if_module, "LONGEST_STEP_S", 0.0)
    monkeypatch.setattr(what_if_module, "LEAST_COPIES", 4)
    engine = Engine(Fleet(catalogue((40, 1.0)).kinds), [ToyOracle()])
    for number in range(10):
        engine.handle(Arrive(tenant(number, "c")))
    what_if, taken = WhatIf(engine), list[str]()

    def take_the_best(number: int) -> Arrive:
        taken.append(complete(what_if.places(tenant("y")))[0].nic)
        return Arrive(tenant(f"between {number}"), taken[-1] if engine.fleet.nics.find(taken[-1]) else None)

    found = complete(with_events_between(engine, what_if.places(tenant("x"), count=31), take_the_best))
    assert len(found) == 31 and len(taken) == 9  # four, then nine times four less the one that was taken


def with_events_between(
    engine: Engine, steps: Steps[list[ExpectedPlace]], event_of: Callable[[int], FleetEvent]
) -> Steps[list[ExpectedPlace]]:
    """The steps of an answer, after each of which the engine decides on an event, at most a hundred times."""
    for number in range(100):
        try:
            next(steps)
        except StopIteration as end:
            assert number > 1
            found: list[ExpectedPlace] = end.value
            return found
        assert engine.handle(event_of(number)).status == "placed"
        yield
    raise AssertionError("no answer")


class Counted(Engine):
    """An engine that counts how many tenants it tries to place per event."""

    tried = 0

    def handle(self, event: FleetEvent) -> Decision:
        self.tried = 0
        return super().handle(event)

    def place(self, tenant: Tenant):  # type: ignore[no-untyped-def]
        self.tried += 1
        return super().place(tenant)


def full_nic(queue: int) -> Counted:
    """One NIC of eight cores with two `d` and a `c`, and so many `d` in the queue, with an SLA of its own each."""
    engine = Counted(Fleet(catalogue((1, 1.0)).kinds), [ToyOracle()], when_full="queue")
    for identity, nf in (("d1", "d"), ("d2", "d"), ("c", "c")):
        assert engine.handle(Arrive(tenant(identity, nf))).status == "placed"
    for number in range(queue):
        assert engine.handle(Arrive(tenant(f"w{number}", "d", 0.9 - number / 1000))).status == "queued"
    return engine


def test_who_needs_fewer_cores_is_placed_behind_a_long_queue_that_needs_more() -> None:
    """`c` leaves two cores: each `d` needs three, and none of them is tried; `b` needs two."""
    engine = full_nic(100)
    assert engine.handle(Arrive(tenant("last", "b"))).status == "queued"
    assert [move.id for move in engine.handle(Depart("c")).moves] == ["c", "last"] and engine.tried == 1


def test_a_long_queue_is_tried_a_few_at_a_time_and_in_the_end_whole() -> None:
    """None of 100 `a` accepts what three of `c` and `d` take from it; the last one does, and is placed by and by: the
    first 8 are tried at every event, the others in fewer than three rounds of 8."""
    engine = full_nic(0)
    for number in range(100):
        assert engine.handle(Arrive(tenant(f"a{number}", "a", number / 1e6))).status == "queued"
    assert engine.handle(Arrive(tenant("last", "b", 0.9))).status == "queued"
    events = 0
    engine.handle(Depart("d1"))
    while "last" in engine.waiting:
        events += 1
        assert engine.tried == MOST_TRIED
        engine.handle(Change("d2", None, Sla(max_drop=0.9)))
    assert events < 3 * 100 / (MOST_TRIED - TRIED_IN_ORDER)
