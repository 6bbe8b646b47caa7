"""Reservations: a place is held for an instance until it arrives, or until a time that an event of the log notes."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.events import Arrive, Change, Decision, Depart, DryRun, Expire, Fail, Lookup, Refused, Reserve, Where
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.service.expiring import expire_due
from placer.fleet.service.http.expirer import Expirer
from placer.fleet.service.jsonlines import serve
from placer.fleet.state.store import State
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from tests.placer.fleet.service.http.toy_http import service
from tests.placer.fleet.test_measured import arrive, engine_of, measure
from tests.placer.fleet.toys import engine as toy_engine

KINDS = catalogue((1, 1.0)).kinds
DEMAND = {"id": "x", "nf": "d", "sla_drop": 0.5, "owner": "alice", "labels": {"app": "web"}, "priority": 2}


def read(engine: Engine, now: float = 100.0, *, of_log: bool = False, **event: Any) -> Any:
    reader = Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of, of_log=of_log, clock=lambda: now)
    return reader.read(json.dumps(event))


def decide(engine: Engine, now: float = 100.0, **event: Any) -> Decision:
    return engine.handle(read(engine, now, **event))


def reserve(engine: Engine, **more: Any) -> Decision:
    return decide(engine, event="reserve", ttl_s=60, **{**DEMAND, **more})


def test_a_reservation_holds_a_place_and_the_arrival_of_that_id_takes_it() -> None:
    engine = toy_engine()
    assert reserve(engine).nic == "nic-1" and reserve(engine, id="y").status == "reserved"
    assert decide(engine, event="arrive", id="other", nf="d", sla_drop=0.5).status == "rejected"
    assert decision_line(Where("x"), engine.handle(Where("x"))) == (
        '{"ok": true, "event": "where", "id": "x", "status": "reserved", "nic": "nic-1", "until": 160.0, "moves": []}'
    )
    event = read(engine, event="arrive", **DEMAND)
    assert decision_line(event, engine.handle(event)) == (
        '{"ok": true, "event": "arrive", "id": "x", "status": "placed", "nic": "nic-1", "moves": []}'
    )
    assert isinstance(engine.handle(event), Lookup) and engine.due_reservations(1e9) == ["y"]
    assert engine.handle(Expire("x")).status == "unknown" and engine.fleet.tenants == 2


def test_a_reservation_sent_again_does_not_last_longer() -> None:
    engine = toy_engine()
    first = reserve(engine)
    again = decide(engine, 130.0, event="reserve", ttl_s=60, **DEMAND)
    assert isinstance(again, Lookup) and (again.status, again.until, first.until) == ("reserved", 160.0, 160.0)
    assert engine.events == 1


def test_an_arrival_that_asks_for_something_else_is_refused_with_all_that_differs() -> None:
    engine = toy_engine()
    reserve(engine, spread="s")
    wrong = {**DEMAND, "sla_drop": 0.4, "traffic": {"flows": 7}, "owner": "bob", "labels": {}}
    with pytest.raises(Refused) as refused:
        decide(engine, event="arrive", **wrong)
    assert str(refused.value) == (
        "'x' is reserved with flows 1000, not 7; sla_drop 0.5, not 0.4; spread s, not none; owner alice, not bob; "
        "labels app=web, not none"
    )
    with pytest.raises(Refused, match="'x' is reserved on nic-1; leave out nic"):
        decide(engine, event="arrive", **DEMAND, spread="s", nic="nic-2")
    assert decide(engine, event="arrive", **DEMAND, spread="s", nic="nic-1").status == "placed"
    with pytest.raises(Refused, match="'x' already exists, and needs no reservation"):
        reserve(engine, spread="s")


def test_a_place_is_free_again_when_the_time_has_ended_and_the_queue_gets_it() -> None:
    engine = toy_engine(when_full=QUEUE)
    reserve(engine)
    reserve(engine, id="y")
    assert decide(engine, event="arrive", id="waiting", nf="d", sla_drop=0.5).status == "queued"
    assert reserve(engine, id="z").status == "rejected" and "z" not in engine.waiting
    assert (engine.due_reservations(159.9), engine.due_reservations(160.0)) == ([], ["x", "y"])
    decision = engine.handle(Expire("x"))
    assert decision.status == "expired"
    assert [(move.id, move.source, move.target) for move in decision.moves] == [
        ("x", "nic-1", None), ("waiting", None, "nic-1"),
    ]  # fmt: skip


def test_a_reservation_departs_changes_and_loses_its_nic_as_an_instance_does() -> None:
    engine = toy_engine()
    reserve(engine)
    engine.handle(Change("x", None, Sla(max_drop=0.6)))
    assert engine.handle(Fail("nic-1")).queued == ("x",)
    assert engine.due_reservations(160.0) == ["x"]
    with pytest.raises(Refused, match=r"sla_drop 0\.6, not 0\.5"):
        decide(engine, event="arrive", **DEMAND)
    assert decide(engine, event="arrive", **{**DEMAND, "sla_drop": 0.6}).status == "queued"
    assert engine.due_reservations(1e9) == [] and engine.handle(Depart("x")).status == "left"
    engine = toy_engine()
    reserve(engine)
    engine.handle(Fail("nic-1"))
    assert engine.handle(Expire("x")).status == "expired" and not engine.waiting


def test_a_dry_run_is_what_the_reservation_then_is() -> None:
    engine = toy_engine()
    event = read(engine, event="reserve", ttl_s=60, **DEMAND)
    expected = engine.handle(DryRun(event))
    assert not engine.fleet.reservations and decision_line(DryRun(event), expected) == decision_line(
        event, engine.handle(event)
    )


def test_nothing_is_learnt_of_a_nic_that_does_not_run_all_of_its_tenants() -> None:
    engine = engine_of()
    arrive(engine, "runs", "a")
    engine.handle(read(engine, event="reserve", ttl_s=60, id="x", nf="a", sla_drop=0.5, nic="nic-1"))
    with pytest.raises(Refused, match="nic-1 does not run all that is predicted of it; reserved is 'x'"):
        measure(engine, "nic-1", runs=100.0)
    engine.handle(read(engine, event="arrive", id="x", nf="a", sla_drop=0.5))
    assert measure(engine, "nic-1", runs=100.0).status == "noted"


def test_the_line_of_a_reservation_has_its_end_and_is_read_back_from_a_log_alone() -> None:
    engine = toy_engine()
    event = read(engine, event="reserve", ttl_s=60, **DEMAND)
    line = json.loads(event_line(event))
    assert (line["ttl_s"], line["until"], line["owner"], line["labels"]) == (60.0, 160.0, "alice", {"app": "web"})
    assert read(engine, 7e9, of_log=True, **line) == event
    assert read(engine, of_log=True, **json.loads(event_line(Expire("x")))) == Expire("x")
    with pytest.raises(Malformed, match="until: unknown key"):
        read(engine, **line)
    with pytest.raises(Malformed, match="expire"):
        read(engine, event="expire", id="x")
    with pytest.raises(Malformed, match="preempt"):
        read(engine, event="reserve", ttl_s=60, **DEMAND, preempt=True)
    with pytest.raises(Malformed, match="ttl_s: 0 is below"):
        read(engine, event="reserve", ttl_s=0, **DEMAND)


RESERVED = Tenant(
    "x", read(toy_engine(), event="arrive", **DEMAND).tenant.workload, Sla(max_drop=0.5), owner="alice",
    labels=(("app", "web"),), reserved_until=160.0, priority=2,
)  # fmt: skip


def test_a_state_file_keeps_reservations_owners_and_labels(tmp_path: Path) -> None:
    """What was due while no service ran is ended at the next start."""
    path = tmp_path / "s.db"
    with State(path, KINDS) as state:
        engine = toy_engine(when_full=QUEUE)
        for event in (Reserve(RESERVED, ttl_s=60), *(Arrive(read_arrival(name)) for name in "abc")):
            state.record(event, engine.handle(event), engine.fleet)
    with State(path, KINDS) as state:
        assert state.fleet.nics["nic-1"].tenants[0] == RESERVED
        assert (state.fleet.reservations, state.fleet.owned) == ({"x": 160.0}, {"alice": (1, 3)})
        engine = Engine(state.fleet, [ToyOracle()], waiting=state.waiting)
        expire_due(engine, state, 159.0)
        expire_due(engine, state, 161.0)
        assert [json.loads(line)["event"] for line, _ in state.log()] == ["reserve", "arrive", "arrive", "arrive"]
    with State(path, KINDS) as state:
        assert state.events == 5 and "x" not in {tenant.id for tenant in state.fleet.all_tenants()}


def read_arrival(identity: str) -> Tenant:
    found: Tenant = read(toy_engine(), event="arrive", id=identity, nf="d", sla_drop=0.5).tenant
    return found


def test_the_service_over_lines_ends_what_is_due_before_the_events_that_come(tmp_path: Path) -> None:
    """The arrival that comes too late is placed as any other; the log has the end of the reservation before it."""
    now = [100.0]
    with State(tmp_path / "s.db", KINDS) as state:
        engine = toy_engine()
        reader = Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of, clock=lambda: now[0])
        reading, writing = os.pipe()
        answers_read, answers_written = os.pipe()
        with os.fdopen(reading, "rb") as source, os.fdopen(answers_written, "w") as sink:
            serving = threading.Thread(target=serve, args=(source, sink, engine, reader, state))
            serving.start()
            with os.fdopen(writing, "wb", buffering=0) as lines, os.fdopen(answers_read) as answers:
                for at, event in ((100.0, "reserve"), (170.0, "arrive")):
                    now[0] = at
                    more = {"ttl_s": 60} if event == "reserve" else {}
                    lines.write(json.dumps({"event": event, **DEMAND, **more}).encode() + b"\n")
                    answer = json.loads(answers.readline())
                    assert answer["nic"] == "nic-1"
                    ended = [{"id": "x", "from": "nic-1", "to": None}]
                    assert [end["moves"] for end in answer.get("expired", [])] == ([] if at < 160 else [ended])
            serving.join()
        assert [json.loads(line)["event"] for line, _ in state.log()] == ["reserve", "expire", "arrive"]


def test_the_service_over_http_ends_reservations_by_itself(tmp_path: Path) -> None:
    with service(tmp_path / "s.db") as one:
        reserved = one.event(event="reserve", ttl_s=0.01, **DEMAND).json()
        assert (reserved["status"], reserved["nic"]) == ("reserved", "nic-1")
        found = one.client.get("/v1/tenants/x").json()
        assert found["reserved_until"] == reserved["until"] <= time.time() + 0.01
        assert (found["owner"], found["labels"]) == ("alice", {"app": "web"})
        one.arrive("bobs", "a", owner="bob")
        listed = one.client.get("/v1/tenants", params={"owner": "alice"}).json()["tenants"]
        assert [tenant["id"] for tenant in listed] == ["x"]
        assert one.client.portal is not None
        while one.engine.fleet.reservations:
            one.client.portal.call(Expirer(one.writer).end_due)
        assert [row["event"]["event"] for row in one.log()] == ["reserve", "arrive", "expire"]


def test_an_instance_that_is_placed_when_a_reservation_ends_is_seen_where_others_are(tmp_path: Path) -> None:
    """In lists, of instances and of NICs, in numbers, and in the log, which webhooks post."""
    with service(tmp_path / "s.db", count=1) as one:
        one.engine.when_full = QUEUE
        one.event(event="reserve", ttl_s=0.01, **DEMAND)
        assert [one.arrive(name)["status"] for name in ("x1", "waits")] == ["placed", "queued"]
        assert one.client.portal is not None
        while one.engine.fleet.reservations:
            one.client.portal.call(Expirer(one.writer).end_due)
        listed = one.client.get("/v1/tenants", params={"state": "placed"}).json()["tenants"]
        assert {tenant["id"]: tenant["nic"] for tenant in listed} == {"x1": "nic-1", "waits": "nic-1"}
        on_nic = one.client.get("/v1/nics/nic-1").json()["tenants"]
        assert [tenant["id"] for tenant in on_nic] == ["x1", "waits"]
        assert (summary := one.client.get("/v1/summary").json())["queued"] == 0 and summary["tenants"] == 2
        moves = one.log()[-1]["answer"]["moves"]
        assert [(move["id"], move["to"]) for move in moves] == [("x", None), ("waits", "nic-1")]
