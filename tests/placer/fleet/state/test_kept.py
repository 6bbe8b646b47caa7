"""Whatever was decided on: a state file keeps the fleet, its log gives the same answers, and agents agree."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line
from placer.fleet.events import Arrive, Change, Decision, DrainTogether, Expire, Fail, FleetEvent, Reserve
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE, REJECT
from placer.fleet.state.store import State
from placer.model.fleet import Fleet, NicKind, Tenant
from placer.model.oracle import Oracle
from placer.model.sla import Sla
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload
from tests.placer.fleet.loaded_oracle import LoadedOracle, loaded_kind
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
