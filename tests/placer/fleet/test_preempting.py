"""An arrival that may preempt takes the place of as few of lower priority as it needs; nobody else's, and nobody is
lost."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from placer.fleet.arriving import MOST_SEARCHED, preempt_victims
from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.events import Arrive, Decision, Depart, DryRun, Move
from placer.fleet.protocol import Reader
from placer.fleet.queued_fleet import QUEUE, REJECT, WHEN_FULL
from placer.fleet.state.store import State
from placer.model.fleet import Fleet, Tenant
from placer.model.groups import Constraints
from placer.model.sla import Sla
from placer.policy.preemption import Preemption, find_victims
from placer.policy.rejection import Cause
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import Workload
from tests.placer.fleet.state.postgres.agents import Agent, picture
from tests.postgres import Cluster


def tenant(identity: str, priority: int = 0, nf: str = "d", drop: float = 0.5, **groups: str) -> Tenant:
    constraints = Constraints(tuple(sorted(groups.items())))
    return Tenant(identity, Workload(nf, TOY_TRAFFIC), Sla(max_drop=drop), priority=priority, constraints=constraints)


def engine(*tenants: Tenant, count: int = 1, when_full: str = REJECT) -> Engine:
    """First fit on so many toy NICs of 8 cores, with these tenants; `d` takes 3 cores, `b` and `c` 2, `a` 1."""
    fleet = Engine(Fleet(catalogue((count, 1.0)).kinds), [ToyOracle()], FIRST_FIT, when_full=when_full)
    for one in tenants:
        assert fleet.handle(Arrive(one)).status == "placed"
    return fleet


def preempt(fleet: Engine, arrival: Tenant) -> Decision:
    return fleet.handle(Arrive(arrival, preempt=True))


FULL = (tenant("x", 1), tenant("y", 3), tenant("z", 0, "b"))


@pytest.mark.parametrize("when_full", WHEN_FULL)
def test_the_fewest_of_lower_priority_leave_the_lowest_first_and_are_queued(when_full: str) -> None:
    """`z` has too few cores for the arrival, so `x` leaves, and not `y`; whatever happens to arrivals, it is queued."""
    fleet = engine(*FULL, when_full=when_full)
    decision = preempt(fleet, tenant("high", 5))
    assert decision == Decision("placed", (Move("high", None, "nic-1"), Move("x", "nic-1", None)), queued=("x",))
    assert [*fleet.waiting.values()] == [FULL[0]] and fleet.fleet.nic_of("y") is not None
    assert fleet.handle(Depart("high")).moves[1:] == (Move("x", None, "nic-1"),)


def test_who_makes_room_and_stays_after_all_is_before_the_arrival() -> None:
    """As in the state, which has only the moves of those that leave; what is taken back leaves all in order, too."""
    fleet = engine(tenant("x"), tenant("y"), tenant("z", 9, "b"))
    nic = fleet.fleet.nics["nic-1"]
    journal = fleet.fleet.begin_journal()
    fleet.fleet.remove("x")
    fleet.fleet.journal = None
    journal.take_back()
    assert [*nic.tenants_by_id] == ["x", "y", "z"]
    found = Preemption(nic.kind, "nic-1", ("y", "x"), True, tenant("high", 5))
    assert preempt_victims(fleet, found).queued == ("y",)
    assert [*nic.tenants_by_id] == ["x", "z", "high"]


def test_who_leaves_moves_where_it_fits() -> None:
    """The arrival needs the cores of `x`; the other NIC has room for `x`, not for the arrival beside a tight SLA."""
    fleet = engine(tenant("x", nf="b"), tenant("y", 9, "d"), tenant("z", 9, "d"), tenant("t", 9, "a", 0.05), count=2)
    decision = preempt(fleet, tenant("high", 5, "c"))
    assert decision.moves == (Move("high", None, "nic-1"), Move("x", "nic-1", "nic-2")) and not decision.queued


@pytest.mark.parametrize("priority", [0, 1])
def test_nobody_of_equal_or_higher_priority_leaves(priority: int) -> None:
    fleet = engine(tenant("x", 1), tenant("y", 1), tenant("z", 1, "b"))
    decision = preempt(fleet, tenant("late", priority))
    assert decision.status == "rejected" and Cause.PRIORITY not in {reason.cause for reason in decision.reasons}


@pytest.mark.parametrize("when_full", WHEN_FULL)
def test_nobody_leaves_unless_that_is_asked_and_the_answer_says_who_would_have_to(when_full: str) -> None:
    fleet = engine(*FULL, when_full=when_full)
    decision = fleet.handle(Arrive(tenant("high", 5)))
    assert (decision.status, decision.moves) == ({REJECT: "rejected", QUEUE: "queued"}[when_full], ())
    first = decision.reasons[0]
    assert (first.cause, first.met, first.nics, len(first.co_location)) == (Cause.PRIORITY, ("x",), 1, 3)
    assert [reason.cause for reason in fleet.handle(Arrive(tenant("low", -1))).reasons].count(Cause.PRIORITY) == 0


def test_a_large_fleet_says_it_in_a_dry_run() -> None:
    """And nothing changes by that."""
    many = (tenant(f"a{at}", nf="a", drop=0.9) for at in range(MOST_SEARCHED + 8))
    fleet = engine(*many, count=MOST_SEARCHED // 8 + 1)
    assert fleet.handle(Arrive(tenant("d", 1))).reasons[0].cause == Cause.CORES
    expected = fleet.handle(DryRun(Arrive(tenant("d", 1), preempt=True)))
    answer = json.loads(decision_line(DryRun(Arrive(tenant("d", 1), preempt=True)), expected))
    assert len(answer["queued"]) == 3 and answer["nic"] == "nic-1"
    assert not fleet.waiting and fleet.fleet.tenants == MOST_SEARCHED + 8


def test_the_slas_of_all_that_stay_are_kept() -> None:
    """There are cores for `c`, but it takes more of `t` than its SLA allows: `t` leaves, not the lower `x`."""
    fleet = engine(tenant("t", 3, "a", 0.05), tenant("x", 0, "a"))
    assert preempt(fleet, tenant("high", 5, "c")).queued == ("t",)


def test_the_constraints_of_all_are_kept() -> None:
    """A member of the group leaves, although others have a lower priority and the cores."""
    fleet = engine(tenant("x", 1, spread="g"), tenant("y", 0))
    decision = preempt(fleet, tenant("high", 5, "a", spread="g"))
    assert decision.queued == ("x",)
    other = engine(tenant("x", 7, spread="g"), tenant("y", 0))
    assert preempt(other, tenant("high", 5, "a", spread="g")).status == "rejected"


def test_what_else_waits_gets_what_is_left_by_priority() -> None:
    """Two cores are left of the three that `x` had; `first` and `second` wait for them."""
    fleet = engine(*FULL, when_full=QUEUE)
    assert {fleet.handle(Arrive(one)).status for one in (tenant("second", -2, "a"), tenant("b", -1, "b"))} == {"queued"}
    decision = preempt(fleet, tenant("high", 5, "a"))
    assert decision.moves[1:] == (Move("z", "nic-1", None), Move("second", None, "nic-1"))


def test_an_empty_nic_is_opened_again_for_the_arrival() -> None:
    fleet = engine(tenant("x", 1, "c", 0.01))
    decision = preempt(fleet, tenant("high", 5, "c", 0.01))
    assert (decision.nic, decision.queued) == ("nic-1", ("x",))


def test_where_too_many_sets_would_be_compared_nobody_leaves_in_vain() -> None:
    """Of 40 small ones of different SLAs, those of the lowest priority leave, and all that can stay do."""
    fleet = Engine(Fleet([replace(catalogue((1, 1.0)).kinds[0], cores=40)]), [ToyOracle()], FIRST_FIT)
    for at in range(40):
        fleet.handle(Arrive(tenant(f"a{at}", at, "a", 0.9 - at / 1000)))
    found = find_victims(fleet.fleet, fleet.oracles, [tenant("high", 99, drop=0.9)])
    assert found is not None and found.ids == ("a0", "a1", "a2")


def test_an_event_and_its_line_say_that_it_may_preempt() -> None:
    reader = Reader(TOY_TRAFFIC, lambda workload: (), lambda identity: None)
    given = {"event": "arrive", "id": "a", "nf": "d", "sla_drop": 0.5, "preempt": True}
    event = reader.read(json.dumps(given))
    assert event == Arrive(tenant("a"), preempt=True) == reader.read(event_line(event))
    assert reader.read(json.dumps({**given, "preempt": False})) == Arrive(tenant("a"))
    with pytest.raises(Malformed, match="preempt: no tenant leaves a NIC that is named: leave out nic"):
        reader.read(json.dumps({**given, "nic": "nic-1"}))


EVENTS = (*map(Arrive, FULL), Arrive(tenant("high", 5), preempt=True), Arrive(tenant("more", 4), preempt=True))


def test_a_state_keeps_who_was_preempted(tmp_path: Path) -> None:
    """The fleet and the queue are as they were; deciding on the log once more gives the same."""
    of, fleet = catalogue((1, 1.0)).kinds, engine()
    with State(tmp_path / "s.db", of) as state:
        for event in EVENTS:
            state.record(event, fleet.handle(event), fleet.fleet)
    with State(tmp_path / "s.db", of) as state:
        again = Engine(Fleet(of), [ToyOracle()], FIRST_FIT)
        reader = Reader(TOY_TRAFFIC, lambda workload: (), again.workload_of, of_log=True)
        for line, answer in state.log():
            event = reader.read(line)
            assert decision_line(event, again.handle(event)) == answer
        assert [one.id for one in state.fleet.nics["nic-1"].tenants] == ["z", "high", "more"]
        assert [*again.waiting.values()] == [*fleet.waiting.values()] == state.waiting == [FULL[0], FULL[1]]


def test_agents_that_share_a_database_agree_on_who_was_preempted(postgres: Cluster) -> None:
    """The one that decides, the one that follows, and one that starts later."""
    of, address = catalogue((1, 1.0)).kinds, postgres.database()
    one, other = Agent.of(address, of), Agent.of(address, of)
    one.decide(*EVENTS)
    other.follow()
    later = Agent.of(address, of)
    pictures = [picture(agent.engine.fleet, agent.engine) for agent in (one, other, later)]
    assert pictures[0] == pictures[1] == pictures[2] and pictures[0]["waiting"] == [FULL[0], FULL[1]]
    for agent in (one, other, later):
        agent.state.close()
