"""An arrival that may preempt takes the place of as few of lower priority as it needs; nobody else's, and nobody is
lost."""

import json
from dataclasses import replace

import pytest

from placer.fleet.arriving import MOST_SEARCHED, preempt_victims
from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line, event_line
from placer.fleet.event_shapes import Malformed
from placer.fleet.events import Arrive, Decision, Depart, DryRun, Move
from placer.fleet.queued_fleet import QUEUE, REJECT, WHEN_FULL
from placer.model.fleet import Fleet, Tenant
from placer.policy.preemption import Preemption, find_victims
from placer.policy.rejection import Cause
from placer.policy.rules import FIRST_FIT
from placer.testing.strategies import ToyOracle, catalogue
from tests.placer.fleet.toys import READER, engine, tenant


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
