"""Rates, cores and promised latencies of tenants: kept in a file and in a database, also of the former version."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive, Change, Fail
from placer.fleet.learning.ledger import ProductionReading
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.state.backup import back_up, restore
from placer.fleet.state.postgres.state import SharedState
from placer.fleet.state.saved_learning import reading_of, reading_row
from placer.fleet.state.store import State
from placer.model.fleet import Fleet, Tenant
from placer.model.sla import Sla
from placer.testing.strategies import TOY_TRAFFIC
from profiles import InputError, Workload
from tests.placer.fleet.loaded_oracle import LoadedOracle, loaded_kind
from tests.placer.fleet.state.postgres.agents import Agent
from tests.postgres import Cluster

KINDS = (loaded_kind(count=1),)
EXACT, PLAIN = Sla(max_drop=0.0), (float("inf"), 0, False)
COLUMNS = ("rate_kpps", "cores", "latency_us", "free_cores")
EVENTS = (
    Arrive(Tenant("chosen", Workload("a", TOY_TRAFFIC, 150.0), EXACT)),
    Arrive(Tenant("given", Workload("b", TOY_TRAFFIC, 60.0, cores=1), EXACT)),
    Arrive(Tenant("plain", Workload("b", TOY_TRAFFIC), Sla(max_drop=0.5))),
    Arrive(Tenant("waits", Workload("a", TOY_TRAFFIC, 390.0), EXACT)),
    Change("chosen", Workload("a", TOY_TRAFFIC, 250.0), given=("rate_kpps",)),
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with State(tmp_path / "s.db", KINDS) as state:
        engine = Engine(state.fleet, [LoadedOracle()], when_full=QUEUE)
        statuses = []
        for event in EVENTS:
            decision = engine.handle(event)
            statuses.append(decision.status)
            state.record(event, decision, engine.fleet)
    assert statuses == ["placed", "placed", "placed", "queued", "resized"]
    return tmp_path / "s.db"


def _loads(fleet: Fleet) -> dict[str, tuple[float, int, bool]]:
    found = ((one.id, one.workload, one.free_cores) for one in fleet.all_tenants())
    return {identity: (workload.rate_kpps, workload.cores, free) for identity, workload, free in found}


def test_a_reopened_state_has_loads_and_says_which_cores_were_given(saved: Path, tmp_path: Path) -> None:
    """And so has its copy, and a state that becomes the copy again."""
    back_up(saved, tmp_path / "copy.db")
    restore(saved, tmp_path / "copy.db", KINDS, lambda workload: ())
    for path in (saved, tmp_path / "copy.db"):
        with State(path, KINDS) as state:
            assert _loads(state.fleet) == {"chosen": (250.0, 4, True), "given": (60.0, 1, False), "plain": PLAIN}
            assert state.waiting == [EVENTS[3].tenant]  # type: ignore[union-attr]


def test_a_queued_instance_has_the_cores_of_its_former_nic_after_a_change_of_its_sla_too(saved: Path) -> None:
    """In the engine that decides, and in one that is restarted."""
    with State(saved, KINDS) as state:
        engine = Engine(state.fleet, [LoadedOracle()], when_full=QUEUE, waiting=state.waiting, events=state.events)
        for event in (Fail("nic-1"), Change("chosen", None, Sla(max_drop=0.1))):
            state.record(event, engine.handle(event), engine.fleet)
        waiting = [*engine.waiting.values()]
    assert {tenant.id: tenant.workload.cores for tenant in waiting}["chosen"] == 4
    with State(saved, KINDS) as state:
        assert state.waiting == waiting


def test_a_state_of_the_former_version_is_continued(saved: Path) -> None:
    """All its tenants are saturated on their default cores."""
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.execute("DELETE FROM tenants WHERE id = 'waits'")
        for column in (*COLUMNS, "constraints", "priority", "reserved_until", "owner", "labels"):
            file.execute(f"ALTER TABLE tenants DROP COLUMN {column}")
    for _ in range(2):
        with State(saved, KINDS) as state:
            assert set(_loads(state.fleet).values()) == {PLAIN}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("rate_kpps = -1", "rate_kpps -1.0 is not a number above 0"),
        ("cores = 0", "cores 0 is not a whole number"),
        ("cores = 3", "nf 'a' does not run on a loaded-0"),
        ("rate_kpps = 540", "its tenants take more than its port carries"),
        ("free_cores = 7", "free_cores 7 is not 1"),
    ],
)
def test_a_load_that_makes_no_sense_is_refused(saved: Path, change: str, message: str) -> None:
    """With the row that has it."""
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.execute(f"UPDATE tenants SET {change} WHERE id = 'chosen'")
    with pytest.raises(InputError, match=message):
        State(saved, KINDS)


def test_readings_keep_the_loads_of_their_co_location() -> None:
    """Those of plain workloads are written as before."""
    plain, loaded = Workload("b", TOY_TRAFFIC), Workload("a", TOY_TRAFFIC, 90.0, cores=2, latency_us=50.0)
    reading = ProductionReading("loaded-0", (loaded, plain), loaded, "x", 80.0, 90.0, 1)
    row = reading_row(reading)
    assert reading_of(row) == reading
    assert row[2] == '[["a", 1000, 1500, 0, 90.0, 2, 50.0], ["b", 1000, 1500, 0]]'


def test_a_database_of_the_former_version_is_brought_up_to_date_once_nobody_uses_it(postgres: Cluster) -> None:
    """An agent that is alive does not know of loads."""
    address = postgres.database()
    SharedState(address, KINDS).close()
    with psycopg.connect(address, autocommit=True) as connection:
        for column in COLUMNS:
            connection.execute(f"ALTER TABLE tenants DROP COLUMN {column}".encode())
        connection.execute("UPDATE head SET layout = '1'")
        connection.execute("INSERT INTO agents VALUES ('former', 1, now())")
        with pytest.raises(InputError, match="is used by an agent of an earlier version"):
            SharedState(address, KINDS)
        connection.execute("DELETE FROM agents")
    agent = Agent.of(address, KINDS, oracle=LoadedOracle)
    agent.decide(EVENTS[0])
    later = Agent.of(address, KINDS)
    assert _loads(later.engine.fleet) == {"chosen": (150.0, 2, True)}
    for one in (agent, later):
        one.state.close()
