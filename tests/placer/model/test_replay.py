"""The events of a trace, and the loop that lets them happen, on cases worked by hand."""

from placer.model.arrival import settle_running
from placer.model.fleet import Fleet
from placer.model.nic_kind import NicKind
from placer.model.plan import Event, Placement, Plan, events_of, replay, replay_plan
from placer.testing.strategies import CORES_BY_NF, arrival

KIND = NicKind(0, "toy", 8, CORES_BY_NF)


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


def test_what_already_runs_begins_before_all_and_leaves_at_its_departure() -> None:
    """Whatever its time, 2 is there before the first arrival; it leaves at 3 s, at the moment that 3 arrives."""
    trace = [arrival("1", 0, "a"), arrival("2", 1, "b", departure=3, nic="n"), arrival("3", 3, "c")]
    assert [(event.index, event.departs) for event in events_of(trace)] == [
        (1, False),
        (0, False),
        (1, True),
        (2, False),
    ]
    plan = Plan("by hand", None, tuple(Placement(one, "n", KIND) for one in trace), 0.0)
    seen = [[[one.nf for one in nic.co_location] for nic in nics] for _, nics in replay_plan(plan, Fleet([KIND]))]
    assert seen == [[["b"]], [["a", "b"]], [["a", "c"]]]


def test_nothing_is_chosen_for_what_the_fleet_has() -> None:
    """The choice of 1 is asked for, and opens a second NIC; 2 stays where it is."""
    trace = [arrival("1", 0, "a"), arrival("2", 1, "b", nic="n")]
    fleet = Fleet([KIND])
    settle_running(trace, fleet)
    asked: list[int] = []

    def choose(index: int) -> NicKind:
        asked.append(index)
        return KIND

    assert [nic.id for _, nic in replay(trace, fleet, choose) if nic] == ["n", "nic-2"] and asked == [0]
