"""The events of a trace, and the loop that lets them happen, on cases worked by hand."""

from __future__ import annotations

from placer.model.fleet import Fleet, NicKind
from placer.model.plan import Placement, Plan
from placer.model.replay import Event, events_of, replay, replay_plan
from placer.testing.toy import CORES, arrival

KIND = NicKind(0, "toy", 8, CORES)


def test_at_one_time_departures_come_first() -> None:
    trace = [arrival("1", 0, "a", departure=2), arrival("2", 2, "a")]
    assert list(events_of(trace)) == [Event(0, 0, False), Event(2, 0, True), Event(2, 1, False)]


def test_a_rejected_arrival_changes_no_nic_and_does_not_depart() -> None:
    fleet = Fleet([KIND])
    trace = [arrival("1", 0, "a", departure=2), arrival("2", 1, "a")]
    steps = list(replay(trace, fleet, lambda index: None if index == 0 else KIND))
    assert [(event.index, nic.id if nic else None) for event, nic in steps] == [(0, None), (1, "nic-1"), (0, None)]
    assert list(fleet.nics) == ["nic-1"]


def test_a_plan_is_replayed_moment_by_moment() -> None:
    """At 1 s one tenant leaves and two arrive: one step, with the co-location that stands after it."""
    first, second, third = arrival("1", 0, "a", departure=1), arrival("2", 1, "b"), arrival("3", 1, "c")
    plan = Plan("by hand", None, tuple(Placement(one, "n", KIND) for one in (first, second, third)), 0.0)
    seen = [
        (time, [[one.nf for one in nic.co_location] for nic in nics]) for time, nics in replay_plan(plan, Fleet([KIND]))
    ]
    assert seen == [(0, [["a"]]), (1, [["b", "c"]])]


def test_an_empty_plan_has_no_moments() -> None:
    """Nothing arrives, so nothing is replayed."""
    assert list(replay_plan(Plan("by hand", None, (), 0.0), Fleet([KIND]))) == []
