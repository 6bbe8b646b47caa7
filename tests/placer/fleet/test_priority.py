"""Priorities in a running fleet: the queue is in their order, and every state keeps them."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import event_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.events import Arrive, Decision, Depart, Refused
from placer.fleet.queued_fleet import MOST_TRIED, QUEUE
from placer.fleet.state.postgres.state import SharedState
from placer.fleet.state.store import State
from placer.model.fleet import Fleet, Tenant
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import ToyOracle, catalogue
from profiles import InputError
from tests.placer.fleet.state.postgres.agents import Agent
from tests.placer.fleet.toys import engine, read_arrival, tenant
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
