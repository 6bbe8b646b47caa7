"""Whatever was decided on: a state file keeps the fleet, its log gives the same answers, and agents agree. Rates and
cores of tenants, also in states of the former version."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line
from placer.fleet.events import Arrive, Change, Decision, DrainTogether, Expire, Fail, FleetEvent, Reserve
from placer.fleet.learning.ledger import ProductionReading
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE, REJECT
from placer.fleet.state.backup import back_up, restore
from placer.fleet.state.postgres.state import SharedState
from placer.fleet.state.saved_learning import READING_COLUMNS, read_readings, reading_of, reading_row
from placer.fleet.state.store import State
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import InputError, Workload
from tests.placer.fleet.loaded_oracle import CORE_COUNTS, KPPS_PER_CORE, LoadedOracle, loaded_kind
from tests.placer.fleet.state.postgres.agents import Agent, picture
from tests.placer.fleet.toys import tenant
from tests.postgres import Cluster

ONE_NIC = catalogue((1, 1.0)).kinds


@dataclass(frozen=True)
class Case:
    """Events, and the status that each is answered with."""

    statuses: str
    events: Sequence[FleetEvent]
    when_full: str = QUEUE
    kinds: tuple[NicKind, ...] = ONE_NIC
    oracle: type[Oracle] = ToyOracle

    def engine(self, fleet: Fleet) -> Engine:
        return Engine(fleet, [self.oracle()], FIRST_FIT, when_full=self.when_full)


def arrivals(*tenants: Tenant) -> list[FleetEvent]:
    return [*map(Arrive, tenants)]


def lent(identity: str, until: float) -> Tenant:
    return replace(tenant(identity), owner="alice", labels=(("app", "web"),), reserved_until=until)


def taken(identity: str) -> Arrive:
    return Arrive(replace(lent(identity, 0.0), reserved_until=None))


EXACT = Sla(max_drop=0.0)
CASES = {
    "constraints": Case(
        "placed queued placed",
        arrivals(tenant("a", spread="g", apart="h"), tenant("b", spread="g"), tenant("c")),
    ),
    "limits": Case("placed", arrivals(tenant("x", "a", most_per_nic="2 web", exclusive="alice"))),
    "priorities": Case(
        "placed placed queued queued",
        arrivals(
            tenant("a", priority=3), tenant("b"), tenant("low", priority=-(2**31)), tenant("high", priority=2**31 - 1)
        ),
    ),
    "preempted": Case(
        "placed placed placed placed placed",
        [
            *arrivals(tenant("x", priority=1), tenant("y", priority=3), tenant("z", "b")),
            Arrive(tenant("high", priority=5), preempt=True), Arrive(tenant("more", priority=4), preempt=True),
        ],
        REJECT,
    ),
    "drained, also without tenants": Case(
        "placed placed placed placed draining",
        [
            Arrive(tenant("1"), "n1"), *(Arrive(tenant(at, nf), "n3") for at, nf in enumerate("ddb", start=2)),
            DrainTogether(("n1", "n2")),
        ],
        kinds=(replace(ONE_NIC[0], count=3, names=("n1", "n2", "n3")),),
    ),
    "reservations": Case(
        "reserved reserved placed expired unknown",
        [
            Reserve(lent("x", 160.123456789), ttl_s=60.123456789), Reserve(lent("y", 5.0), ttl_s=60), taken("x"),
            Expire("y"), Expire("y"),
        ],
    ),
    "reservations taken on a NIC and in the queue": Case(
        "reserved reserved placed failed queued",
        [Reserve(lent("x", 160.0), ttl_s=60), Reserve(lent("y", 1.0), ttl_s=60), taken("x"), Fail("nic-1"), taken("y")],
        REJECT,
    ),
    "loads": Case(
        "placed placed placed queued resized",
        [
            Arrive(Tenant("chosen", Workload("a", TOY_TRAFFIC, 150.0), EXACT)),
            Arrive(Tenant("given", Workload("b", TOY_TRAFFIC, 60.0, cores=1), EXACT)),
            Arrive(tenant("plain", "b")),
            Arrive(Tenant("waits", Workload("a", TOY_TRAFFIC, 390.0), EXACT)),
            Change("chosen", Workload("a", TOY_TRAFFIC, 250.0), given=("rate_kpps",)),
        ],
        kinds=(loaded_kind(count=1),),
        oracle=LoadedOracle,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_state_file_keeps_the_fleet_and_its_log_gives_the_same_answers(tmp_path: Path, case: Case) -> None:
    """Tenants are in the order in which they came, and so are those that wait; a log is read at any time."""
    with State(tmp_path / "s.db", case.kinds) as state:
        engine, found = case.engine(state.fleet), []
        for event in case.events:
            found.append(engine.handle(event))
            state.record(event, found[-1], engine.fleet)
    assert " ".join(decision.status for decision in found) == case.statuses
    with State(tmp_path / "s.db", case.kinds) as state:
        again = case.engine(Fleet(case.kinds))
        reader = Reader(TOY_TRAFFIC, lambda workload: (), again.workload_of, of_log=True, clock=lambda: 0.0)
        for line, answer in state.log():
            event = reader.read(line)
            assert decision_line(event, again.handle(event)) == answer
        assert state.waiting == [*engine.waiting.values()] == [*again.waiting.values()]
        for fleet in (state.fleet, again.fleet):
            assert picture(fleet) == picture(engine.fleet) and fleet.reservations == engine.fleet.reservations
            assert [nic.tenants for nic in fleet.all_nics()] == [nic.tenants for nic in engine.fleet.all_nics()]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_agents_that_share_a_database_have_the_same_fleet(postgres: Cluster, case: Case) -> None:
    """The one that decides, the one that follows and decides on the last event, and one that starts later."""
    address = postgres.database()
    one, other = (Agent.of(address, case.kinds, case.when_full, oracle=case.oracle) for _ in range(2))
    decisions = one.decide(*case.events[:-1])
    other.follow()
    decisions += other.decide(case.events[-1])
    assert " ".join(one.status for one in decisions if isinstance(one, Decision)) == case.statuses
    one.follow()
    agents = (one, other, Agent.of(address, case.kinds, case.when_full, oracle=case.oracle))
    pictures = [picture(agent.engine.fleet, agent.engine) for agent in agents]
    assert pictures[0] == pictures[1] == pictures[2]
    assert len({tuple(agent.engine.fleet.reservations.items()) for agent in agents}) == 1
    for agent in agents:
        agent.state.close()


LOADED_KINDS = (loaded_kind(count=1),)
NO_LOSS, PLAIN = Sla(max_drop=0.0), (float("inf"), 0, False)
COLUMNS = ("rate_kpps", "cores", "latency_us", "free_cores")
LOADED_EVENTS = (
    Arrive(Tenant("chosen", Workload("a", TOY_TRAFFIC, 150.0), NO_LOSS)),
    Arrive(Tenant("given", Workload("b", TOY_TRAFFIC, 60.0, cores=1), NO_LOSS)),
    Arrive(Tenant("plain", Workload("b", TOY_TRAFFIC), Sla(max_drop=0.5))),
    Arrive(Tenant("waits", Workload("a", TOY_TRAFFIC, 390.0), NO_LOSS)),
    Change("chosen", Workload("a", TOY_TRAFFIC, 250.0), given=("rate_kpps",)),
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with State(tmp_path / "s.db", LOADED_KINDS) as state:
        engine = Engine(state.fleet, [LoadedOracle()], when_full=QUEUE)
        statuses = []
        for event in LOADED_EVENTS:
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
    restore(saved, tmp_path / "copy.db", LOADED_KINDS, lambda workload: ())
    for path in (saved, tmp_path / "copy.db"):
        with State(path, LOADED_KINDS) as state:
            assert _loads(state.fleet) == {"chosen": (250.0, 4, True), "given": (60.0, 1, False), "plain": PLAIN}
            assert state.waiting == [LOADED_EVENTS[3].tenant]  # type: ignore[union-attr]


def test_a_queued_instance_has_the_cores_of_its_former_nic_after_a_change_of_its_sla_too(saved: Path) -> None:
    """In the engine that decides, and in one that is restarted."""
    with State(saved, LOADED_KINDS) as state:
        engine = Engine(state.fleet, [LoadedOracle()], when_full=QUEUE, waiting=state.waiting, events=state.events)
        for event in (Fail("nic-1"), Change("chosen", None, Sla(max_drop=0.1))):
            state.record(event, engine.handle(event), engine.fleet)
        waiting = [*engine.waiting.values()]
    assert {tenant.id: tenant.workload.cores for tenant in waiting}["chosen"] == 4
    with State(saved, LOADED_KINDS) as state:
        assert state.waiting == waiting


def test_a_state_of_the_former_version_is_continued(saved: Path) -> None:
    """All its tenants are saturated on their default cores."""
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.execute("DELETE FROM tenants WHERE id = 'waits'")
        for column in (*COLUMNS, "constraints", "priority", "reserved_until", "owner", "labels"):
            file.execute(f"ALTER TABLE tenants DROP COLUMN {column}")
    for _ in range(2):
        with State(saved, LOADED_KINDS) as state:
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
        State(saved, LOADED_KINDS)


def no_more_than_it_carries(workload: Workload) -> list[tuple[str, str]]:
    """What is wrong with an arriving `a`: it is offered more than it carries on the cores that it may have."""
    known = workload.nf == "b" or workload.cores in (0, *CORE_COUNTS["a"])
    too_much = KPPS_PER_CORE * (workload.cores or max(CORE_COUNTS["a"])) < workload.rate_kpps < float("inf")
    return [("cores", "are not profiled")] if not known else [("rate_kpps", "is too much")] if too_much else []


@pytest.mark.parametrize(("rate", "cores", "message"), [(250, 2, None), (401, 2, "is too much"), (90, 3, "profiled")])
def test_what_is_offered_more_than_its_cores_carry_is_read_again(
    saved: Path, rate: float, cores: int, message: str | None
) -> None:
    """An SLA may allow for that, or be at risk: with other cores the NF would carry it. So it is with readings."""
    running = Workload("a", TOY_TRAFFIC, rate, cores=cores)
    row = reading_row(ProductionReading("loaded-0", (running,), running, "x", 80.0, None, 1))
    refused = nullcontext() if message is None else pytest.raises(InputError, match=message)
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.execute("UPDATE tenants SET rate_kpps = ?, cores = ? WHERE id = 'chosen'", (rate, cores))
        file.execute(f"INSERT INTO readings ({READING_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        with refused:
            assert len([*read_readings(file, "s.db", no_more_than_it_carries)]) == 1
    with refused, State(saved, LOADED_KINDS, no_more_than_it_carries) as state:
        assert _loads(state.fleet)["chosen"] == (rate, cores, True)


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
    SharedState(address, LOADED_KINDS).close()
    with psycopg.connect(address, autocommit=True) as connection:
        for column in COLUMNS:
            connection.execute(f"ALTER TABLE tenants DROP COLUMN {column}".encode())
        connection.execute("UPDATE head SET layout = '1'")
        connection.execute("INSERT INTO agents VALUES ('former', 1, now())")
        with pytest.raises(InputError, match="is used by an agent of an earlier version"):
            SharedState(address, LOADED_KINDS)
        connection.execute("DELETE FROM agents")
    agent = Agent.of(address, LOADED_KINDS, oracle=LoadedOracle)
    agent.decide(LOADED_EVENTS[0])
    later = Agent.of(address, LOADED_KINDS)
    assert _loads(later.engine.fleet) == {"chosen": (150.0, 2, True)}
    for one in (agent, later):
        one.state.close()
