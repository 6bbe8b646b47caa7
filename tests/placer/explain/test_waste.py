"""Unused capacity by cause, in cases computed by hand."""

import json

import pytest

from placer.explain.waste import Waste, waste_of
from placer.model.arrival import Arrival
from placer.policy.rejection import Cause
from placer.policy.rules import FIRST_FIT
from placer.report.text.explanation import CAUSE_TEXTS, cause_text, waste_json, waste_table
from placer.testing.strategies import ToyOracle, arrival, catalogue


@pytest.mark.parametrize(
    ("trace", "idle"),
    [
        ([arrival("1", 0, "d"), arrival("2", 1, "d")], {"cores": 2 / 8}),  # two cores are free, d takes three
        ([arrival("1", 0, "b", 0.0), arrival("2", 1, "b", 0.0)], {"SLA too tight to share": 12 / 8}),
        # the SLA of each is met next to one other, not two; on the second NIC there is one c, and another would fit
        ([arrival(str(i), i, "c", 0.2) for i in range(3)], {"order of arrival": 6 / 8, "contention": 4 / 8}),
        ([arrival("1", 0, "c", 0.5)], {"order of arrival": 6 / 8}),  # another c would fit
    ],
)
def test_unused_cores_have_the_cause_of_the_smallest_violation(trace: list[Arrival], idle: dict[str, float]) -> None:
    """Of all violations that an arrival of the trace would have caused on the NIC."""
    waste = waste_of(trace, catalogue().kinds, [ToyOracle()], FIRST_FIT)
    assert waste.idle == idle and waste.filled + sum(waste.idle.values()) == pytest.approx(waste.nics)


def test_waste_is_of_the_peak() -> None:
    """When most NICs are in use, the first of the later equal moments does not count."""
    trace = [arrival("1", 0, "d", 0.0, departure=5), arrival("2", 1, "d", 0.0), arrival("3", 6, "a", 0.5)]
    waste = waste_of(trace, catalogue().kinds, [ToyOracle()], FIRST_FIT)
    assert (waste.nics, waste.filled) == (2, pytest.approx(6 / 8))


def test_waste_is_printed_in_nics_and_percent() -> None:
    """For people with the cause in words."""
    waste = Waste(4, 3.0, {"cores": 0.5, "regex": 0.5})
    table = waste_table(waste)
    assert "12.5" in table and "too few free cores" in table and "contention for regex" in table
    assert json.loads(waste_json(waste)) == {"nics": 4, "filled": 3.0, "idle": {"cores": 0.5, "regex": 0.5}}


def test_every_cause_has_words_for_people() -> None:
    """A resource of contention has its name."""
    assert set(CAUSE_TEXTS) == set(Cause) and cause_text("contention") == "contention"


def test_a_fleet_without_unused_capacity_gets_a_sentence() -> None:
    assert waste_table(Waste(1, 1.0, {})) == "1 NIC in use at the peak; every core is used.\n"
