"""Priorities in a running fleet: the queue is in their order, and every state keeps them. An arrival that may preempt
takes the place of as few of lower priority as it needs; nobody else's, and nobody is lost."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from placer.fleet.arriving import MOST_SEARCHED, preempt_victims
from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.events import Arrive, Decision, Depart, DryRun, Move, Refused
from placer.fleet.queued_fleet import MOST_TRIED, QUEUE, REJECT, WHEN_FULL
from placer.fleet.state.postgres.state import SharedState
from placer.fleet.state.store import State
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.policy.preemption import Preemption, find_victims
from placer.policy.rejection import Cause
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import ToyOracle, catalogue
from profiles import InputError
from tests.placer.fleet.state.postgres.agents import Agent
from tests.placer.fleet.toys import READER, engine, read_arrival, tenant
from tests.postgres import Cluster

KINDS = catalogue((1, 1.0)).kinds
LOWEST, HIGHEST = -(2**31), 2**31 - 1


def fill(fleet: Engine, *tenants: Tenant) -> list[str]:
    return [fleet.handle(Arrive(one)).status for one in tenants]


def moved(decision: Decision) -> list[tuple[str, str | None]]:
    return [(move.id, move.target) for move in decision.moves if move.source is None]


def test_the_queue_is_in_the_order_of_priority_then_of_arrival() -> None:
    fleet = engine(when_full=QUEUE)
    fill(fleet, tenant("x"), tenant("y"))
    waiting = [tenant("low", priority=-1), tenant("first"), tenant("second"), tenant("high", priority=7)]
    assert fill(fleet, *waiting) == ["queued"] * 4
    order = []
    for leaving in ("x", "y", "high", "first"):
        order += moved(fleet.handle(Depart(leaving)))
    assert order == [(name, "nic-1") for name in ("high", "first", "second", "low")]


def test_many_that_fit_nowhere_block_no_lower_priority_and_a_higher_one_that_fits_comes_first() -> None:
    """An event tries the first 8 of 32, and 8 elsewhere: the highest is placed before the lowest, which waits no longer
    than four rounds."""
    fleet = engine(when_full=QUEUE)
    fill(fleet, tenant("x"), tenant("y"), tenant("z", nf="b"))
    picky = [tenant(f"p{at}", "a", at / 10**4, priority=9) for at in range(1, 2 * MOST_TRIED)]
    assert set(fill(fleet, tenant("low", "a", priority=1), *picky, tenant("top", priority=10, drop=0.06))) == {"queued"}
    assert moved(fleet.handle(Depart("y"))) == []
    placed, events = moved(fleet.handle(Depart("z"))), 0
    assert placed[0] == ("top", "nic-1")
    while "low" in fleet.waiting and events < 12:
        fill(fleet, tenant("t", nf="a"))
        placed, events = moved(fleet.handle(Depart("t"))), events + 1
    assert placed[-1] == ("low", "nic-1")


def test_a_restarted_engine_goes_on_in_a_long_queue_where_the_former_one_would(tmp_path: Path) -> None:
    """32 of which no event tries all, and one behind them that fits once there is room."""
    picky = [tenant(f"p{at}", "a", at / 10**4, priority=9) for at in range(1, 2 * MOST_TRIED)]
    arrivals = [tenant("x"), tenant("y"), tenant("z", nf="b"), *picky, tenant("low", "a", priority=1)]
    events = [*map(Arrive, arrivals), Depart("y"), Depart("z"), *([Arrive(tenant("t", nf="a")), Depart("t")] * 4)]
    never_restarted, found = engine(when_full=QUEUE), list[list[Decision]]()
    for event in events:
        with State(tmp_path / "s.db", KINDS) as state:
            fleet = state.fleet if state.events else Fleet(KINDS)
            kept: dict[str, Any] = {"waiting": state.waiting, "events": state.events}
            restarted = Engine(fleet, [ToyOracle()], FIRST_FIT, when_full=QUEUE, **kept)
            found.append([decider.handle(event) for decider in (restarted, never_restarted)])
            state.record(event, found[-1][0], restarted.fleet)
    assert [moved(decision) for decision, _ in found] == [moved(decision) for _, decision in found]
    assert "low" not in never_restarted.waiting


@pytest.mark.parametrize("given", [LOWEST, -1, 0, 7.0, HIGHEST])
@pytest.mark.parametrize("more", [{}, {"nic": "nic-1"}, {"rate_kpps": 5, "spread": "g"}])
def test_an_event_and_its_line_have_the_priority(given: float, more: dict[str, object]) -> None:
    assert read_arrival(priority=given, **more).priority == given


def test_a_line_without_priority_is_as_before() -> None:
    assert read_arrival().priority == 0
    assert "priority" not in event_line(Arrive(read_arrival())) + event_line(Arrive(read_arrival(), "nic-1"))


@pytest.mark.parametrize("given", [1.5, "7", None, True, HIGHEST + 1, LOWEST - 1])
def test_what_is_no_priority_is_refused_with_its_key(given: object) -> None:
    with pytest.raises(Malformed, match=r"^(arrive\.)?priority: "):
        read_arrival(priority=given)


def test_the_same_instance_with_another_priority_is_refused() -> None:
    fleet = engine(when_full=QUEUE)
    fill(fleet, tenant("a", priority=3))
    with pytest.raises(Refused, match="'a' already exists with priority 3; send a depart first"):
        fleet.handle(Arrive(tenant("a", priority=4)))
    assert fleet.handle(Arrive(tenant("a", priority=3))).nic == "nic-1"


TENANTS = [tenant("a", priority=3), tenant("b"), tenant("low", priority=LOWEST), tenant("high", priority=HIGHEST)]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A state with two tenants on a NIC and two that wait."""
    fleet = engine(when_full=QUEUE)
    with State(tmp_path / "s.db", KINDS) as state:
        for one in TENANTS:
            state.record(Arrive(one), fleet.handle(Arrive(one)), fleet.fleet)
    return tmp_path / "s.db"


def test_a_state_file_of_the_former_version_has_priority_0(saved: Path) -> None:
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        for column in ("priority", "reserved_until", "owner", "labels"):
            file.execute(f"ALTER TABLE tenants DROP COLUMN {column}")
    with State(saved, KINDS) as state:
        assert {one.priority for one in (*state.fleet.all_tenants(), *state.waiting)} == {0}


@pytest.mark.parametrize("value", ["'x'", "1.5", str(HIGHEST + 1)])
def test_a_priority_that_makes_no_sense_is_refused(saved: Path, value: str) -> None:
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.execute(f"UPDATE tenants SET priority = {value} WHERE id = 'b'")
    with pytest.raises(InputError, match=r"tenants 'b': priority .* is not a whole number"):
        State(saved, KINDS)


def test_a_database_of_the_former_version_is_brought_up_to_date(postgres: Cluster) -> None:
    address = postgres.database()
    SharedState(address, KINDS).close()
    with psycopg.connect(address, autocommit=True) as connection:
        for column in ("priority", "reserved_until", "owner", "labels"):
            connection.execute(f"ALTER TABLE tenants DROP COLUMN {column}".encode())
        connection.execute("UPDATE head SET layout = '3'")
        connection.execute("DELETE FROM agents")
    agent = Agent.of(address, KINDS)
    agent.decide(Arrive(TENANTS[0]))
    later = Agent.of(address, KINDS)
    assert later.engine.fleet.nics["nic-1"].tenants == (TENANTS[0],)
    for one in (agent, later):
        one.state.close()


def preempt(fleet: Engine, arrival: Tenant) -> Decision:
    return fleet.handle(Arrive(arrival, preempt=True))


FULL = (tenant("x", priority=1), tenant("y", priority=3), tenant("z", "b"))


@pytest.mark.parametrize("when_full", WHEN_FULL)
def test_the_fewest_of_lower_priority_leave_the_lowest_first_and_are_queued(when_full: str) -> None:
    """`z` has too few cores for the arrival, so `x` leaves, and not `y`; whatever happens to arrivals, it is queued."""
    fleet = engine(*FULL, when_full=when_full)
    decision = preempt(fleet, tenant("high", priority=5))
    assert decision == Decision("placed", (Move("high", None, "nic-1"), Move("x", "nic-1", None)), queued=("x",))
    assert [*fleet.waiting.values()] == [FULL[0]] and fleet.fleet.nic_of("y") is not None
    assert fleet.handle(Depart("high")).moves[1:] == (Move("x", None, "nic-1"),)


def test_who_makes_room_and_stays_after_all_is_before_the_arrival() -> None:
    """As in the state, which has only the moves of those that leave; what is taken back leaves all in order, too."""
    fleet = engine(tenant("x"), tenant("y"), tenant("z", "b", priority=9))
    nic = fleet.fleet.nics["nic-1"]
    journal = fleet.fleet.begin_journal()
    fleet.fleet.remove("x")
    fleet.fleet.journal = None
    journal.take_back()
    assert [*nic.tenants_by_id] == ["x", "y", "z"]
    found = Preemption(nic.kind, "nic-1", ("y", "x"), True, tenant("high", priority=5))
    assert preempt_victims(fleet, found).queued == ("y",)
    assert [*nic.tenants_by_id] == ["x", "z", "high"]


def test_who_leaves_moves_where_it_fits() -> None:
    """The arrival needs the cores of `x`; the other NIC has room for `x`, not for the arrival beside a tight SLA."""
    fleet = engine(
        tenant("x", nf="b"),
        tenant("y", "d", priority=9),
        tenant("z", "d", priority=9),
        tenant("t", "a", 0.05, priority=9),
        count=2,
    )
    decision = preempt(fleet, tenant("high", "c", priority=5))
    assert decision.moves == (Move("high", None, "nic-1"), Move("x", "nic-1", "nic-2")) and not decision.queued


@pytest.mark.parametrize("priority", [0, 1])
def test_nobody_of_equal_or_higher_priority_leaves(priority: int) -> None:
    fleet = engine(tenant("x", priority=1), tenant("y", priority=1), tenant("z", "b", priority=1))
    decision = preempt(fleet, tenant("late", priority=priority))
    assert decision.status == "rejected" and Cause.PRIORITY not in {reason.cause for reason in decision.reasons}


@pytest.mark.parametrize("when_full", WHEN_FULL)
def test_nobody_leaves_unless_that_is_asked_and_the_answer_says_who_would_have_to(when_full: str) -> None:
    fleet = engine(*FULL, when_full=when_full)
    decision = fleet.handle(Arrive(tenant("high", priority=5)))
    assert (decision.status, decision.moves) == ({REJECT: "rejected", QUEUE: "queued"}[when_full], ())
    first = decision.reasons[0]
    assert (first.cause, first.met, first.nics, len(first.co_location)) == (Cause.PRIORITY, ("x",), 1, 3)
    assert [reason.cause for reason in fleet.handle(Arrive(tenant("low", priority=-1))).reasons].count(
        Cause.PRIORITY
    ) == 0


def test_a_large_fleet_says_it_in_a_dry_run() -> None:
    """And nothing changes by that."""
    many = (tenant(f"a{at}", nf="a", drop=0.9) for at in range(MOST_SEARCHED + 8))
    fleet = engine(*many, count=MOST_SEARCHED // 8 + 1)
    assert fleet.handle(Arrive(tenant("d", priority=1))).reasons[0].cause == Cause.CORES
    expected = fleet.handle(DryRun(Arrive(tenant("d", priority=1), preempt=True)))
    answer = json.loads(decision_line(DryRun(Arrive(tenant("d", priority=1), preempt=True)), expected))
    assert len(answer["queued"]) == 3 and answer["nic"] == "nic-1"
    assert not fleet.waiting and fleet.fleet.tenants == MOST_SEARCHED + 8


def test_the_slas_of_all_that_stay_are_kept() -> None:
    """There are cores for `c`, but it takes more of `t` than its SLA allows: `t` leaves, not the lower `x`."""
    fleet = engine(tenant("t", "a", 0.05, priority=3), tenant("x", "a"))
    assert preempt(fleet, tenant("high", "c", priority=5)).queued == ("t",)


def test_the_constraints_of_all_are_kept() -> None:
    """A member of the group leaves, although others have a lower priority and the cores."""
    fleet = engine(tenant("x", priority=1, spread="g"), tenant("y"))
    decision = preempt(fleet, tenant("high", "a", priority=5, spread="g"))
    assert decision.queued == ("x",)
    other = engine(tenant("x", priority=7, spread="g"), tenant("y"))
    assert preempt(other, tenant("high", "a", priority=5, spread="g")).status == "rejected"


def test_what_else_waits_gets_what_is_left_by_priority() -> None:
    """Two cores are left of the three that `x` had; `first` and `second` wait for them."""
    fleet = engine(*FULL, when_full=QUEUE)
    assert {
        fleet.handle(Arrive(one)).status for one in (tenant("second", "a", priority=-2), tenant("b", "b", priority=-1))
    } == {"queued"}
    decision = preempt(fleet, tenant("high", "a", priority=5))
    assert decision.moves[1:] == (Move("z", "nic-1", None), Move("second", None, "nic-1"))


def test_an_empty_nic_is_opened_again_for_the_arrival() -> None:
    fleet = engine(tenant("x", "c", 0.01, priority=1))
    decision = preempt(fleet, tenant("high", "c", 0.01, priority=5))
    assert (decision.nic, decision.queued) == ("nic-1", ("x",))


def test_where_too_many_sets_would_be_compared_nobody_leaves_in_vain() -> None:
    """Of 40 small ones of different SLAs, those of the lowest priority leave, and all that can stay do."""
    fleet = Engine(Fleet([replace(catalogue((1, 1.0)).kinds[0], cores=40)]), [ToyOracle()], FIRST_FIT)
    for at in range(40):
        fleet.handle(Arrive(tenant(f"a{at}", "a", 0.9 - at / 1000, priority=at)))
    found = find_victims(fleet.fleet, fleet.oracles, [tenant("high", priority=99, drop=0.9)])
    assert found is not None and found.ids == ("a0", "a1", "a2")


def test_an_event_and_its_line_say_that_it_may_preempt() -> None:
    given = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.5, "preempt": True}
    event = READER.read(json.dumps(given))
    assert event == Arrive(tenant("a"), preempt=True) == READER.read(event_line(event))
    assert READER.read(json.dumps({**given, "preempt": False})) == Arrive(tenant("a"))
    with pytest.raises(Malformed, match="preempt: no tenant leaves a NIC that is named: leave out nic"):
        READER.read(json.dumps({**given, "nic": "nic-1"}))
