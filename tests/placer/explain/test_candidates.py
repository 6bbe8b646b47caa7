"""Explanations and waste, on cases worked by hand."""

from __future__ import annotations

import json

import pytest

from placer.explain.candidates import Explanation, explain
from placer.explain.waste import Waste, waste_of
from placer.model.arrival import Arrival
from placer.policy.rules import FIRST_FIT
from placer.report.text.explanation import explanation_json, explanation_table, waste_json, waste_table
from profiles import InputError
from tests.toy import ToyOracle, arrival, catalogue


def explained(arrivals: list[Arrival], only: str, count: int | None = None) -> Explanation:
    """Why one of the arrivals went where it went."""
    return next(iter(explain(arrivals, catalogue((count, 1.0)).kinds, [ToyOracle()], FIRST_FIT, only)))


TRACE = [
    arrival("1", 0, "c", 0.04),  # loses 2 x 0.05 beside b
    arrival("2", 1, "b", 0.5),
    arrival("3", 2, "d", 0.5),  # with it, c would lose 2 x 0.03
    arrival("4", 3, "d", 0.5),
    arrival("5", 4, "b", 0.5),
]


def test_every_class_has_its_verdict() -> None:
    """c breaks beside b, and a NIC with b and two d has no cores for another b, so the last opens a NIC."""
    told = explained(TRACE, "5")
    by_nic = {verdict.nics: verdict for verdict in told.verdicts}
    assert told.nic == "nic-3"
    assert (by_nic["nic-1",].cause, by_nic["nic-1",].breaks) == ("contention", TRACE[0].workload)
    assert [(seat.kpps, seat.required_kpps) for seat in by_nic["nic-1",].seats if seat.workload.nf == "c"] == [
        (pytest.approx(360.0), pytest.approx(384.0))
    ]
    assert (by_nic["nic-2",].cause, by_nic["nic-2",].free_cores) == ("cores", 0)
    assert by_nic[()].fits
    assert by_nic[()].chosen


def test_a_fleet_without_nics_left_says_so() -> None:
    """With two NICs the last is rejected: a new one would do, but none is left."""
    told = explained(TRACE, "5", count=2)
    assert told.nic is None
    assert told.verdicts[-1].cause == "none left"


def test_departures_are_gone_when_the_arrival_comes() -> None:
    """c left before b came, so b shares with nobody."""
    told = explained([arrival("1", 0, "c", 0.04, departure=1), arrival("2", 1, "b", 0.5)], "2")
    assert [verdict.nics for verdict in told.verdicts] == [()]


def test_an_unknown_arrival_is_refused() -> None:
    """There is nothing to explain."""
    with pytest.raises(InputError, match="'9' is not among"):
        explained(TRACE, "9")


def test_explanations_are_told_to_people_and_programs() -> None:
    """The table names the NIC, who breaks and on what; JSON holds every class."""
    told = explained(TRACE, "5")
    table = explanation_table(told)
    assert "went to nic-3; it fits 0 of 2 NICs" in table
    assert "c breaks on contention" in table
    parsed = json.loads(explanation_json(told))
    assert [verdict["breaks"] for verdict in parsed["verdicts"]] == ["c", None, None]


@pytest.mark.parametrize(
    ("trace", "idle"),
    [
        ([arrival("1", 0, "d"), arrival("2", 1, "d")], {"cores": 2 / 8}),  # two cores, everybody takes three
        ([arrival("1", 0, "b", 0.0), arrival("2", 1, "b", 0.0)], {"SLA too tight to share": 12 / 8}),
        # each bears one like itself, not two; with the third alone, somebody could have been
        ([arrival(str(i), i, "c", 0.2) for i in range(3)], {"order of arrival": 6 / 8, "contention": 4 / 8}),
        ([arrival("1", 0, "c", 0.5)], {"order of arrival": 6 / 8}),  # another c could have come
    ],
)
def test_idle_room_is_split_by_cause(trace: list[Arrival], idle: dict[str, float]) -> None:
    """Each NIC's idle cores are laid to the mildest thing that somebody of the trace would have broken there."""
    waste = waste_of(trace, catalogue().kinds, [ToyOracle()], FIRST_FIT)
    assert waste.idle == idle
    assert waste.filled + sum(waste.idle.values()) == pytest.approx(waste.nics)


def test_waste_is_told() -> None:
    """In NICs and percent."""
    waste = Waste(4, 3.5, {"cores": 0.5})
    assert "12.5" in waste_table(waste)
    assert json.loads(waste_json(waste)) == {"nics": 4, "filled": 3.5, "idle": {"cores": 0.5}}
