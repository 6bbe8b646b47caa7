"""The ledger: one vote per tenant, lower bounds never lower a prediction, and what is near is found."""

from math import log
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.fleet.learning.ledger import Ledger, ProductionReading, agree_on
from placer.model.oracle import co_location_of
from placer.testing.strategies import TOY_TRAFFIC
from profiles import Workload

A, B, C, D = (Workload(nf, TOY_TRAFFIC) for nf in "abcd")
MODEL = "toy-0"


def reading(
    *beside: Workload,
    of: Workload = A,
    tenant: str = "1",
    kpps: float = 90.0,
    offered: float | None = 200.0,
    event: int = 1,
) -> ProductionReading:
    return ProductionReading(MODEL, co_location_of([of, *beside]), of, tenant, kpps, offered, event)


def votes(*readings: ProductionReading, predicted: float = 100.0) -> list[float]:
    """Votes of the entry of all these readings."""
    ledger = Ledger()
    for one in readings:
        entry = ledger.add(one)
    return entry.votes(predicted).exact


def test_an_instance_to_which_little_more_is_offered_is_not_known_to_lose_packets() -> None:
    """From 1.02 times its throughput on it is."""
    assert [reading(offered=offered).is_capacity for offered in (None, 90.0, 91.7, 91.8)] == [False, False, False, True]


def test_whether_an_sla_is_kept_is_known_only_where_as_much_was_offered() -> None:
    """90 kpps were reached."""
    for offered, required, below in [(None, 90.0, False), (None, 95.0, None), (94.0, 95.0, None), (95.0, 95.0, True)]:
        assert reading(offered=offered).is_below(required) is below


def test_every_tenant_has_one_vote() -> None:
    """The median of its own readings, however many."""
    many = [reading(B, tenant="1", kpps=kpps) for kpps in (50.0, 90.0, 90.0, 90.0, 10.0)]
    assert votes(*many, reading(B, tenant="2", kpps=80.0)) == pytest.approx([log(0.9), log(0.8)])


def test_a_lower_bound_never_lowers_a_prediction() -> None:
    """Below the prediction it says nothing, above it raises it."""
    assert votes(reading(B, offered=None)) == []
    assert votes(reading(B, offered=None), predicted=60.0) == pytest.approx([log(1.5)])


def test_two_tenants_agree_on_the_lesser_change_and_three_on_the_median() -> None:
    """So that one that reports false readings moves nothing."""
    assert agree_on([]) == 0.0 and agree_on([-0.7, -0.1]) == -0.1
    assert agree_on([-0.7, -0.1, 0.0]) == -0.1


def test_lower_bounds_count_against_what_is_less() -> None:
    """By hand after Kaplan and Meier: of -0.9, -0.8 and 1.0 with bounds at -0.4, -0.1 and -0.02, two thirds lie above
    -0.8, and the median is between the last bound and 1. Bounds at -2 say nothing."""
    assert agree_on([-0.9, -0.8, 1.0]) == -0.8 and agree_on([-0.9, -0.8, 1.0], [-0.4, -0.1, -0.02]) == 0.0
    assert agree_on([-0.9, -0.8, -0.01], [-0.4, -0.1, -0.02]) == -0.01
    assert agree_on([-0.9, -0.8, -0.7], [-0.4, -0.1, -0.02, -0.01]) == 0.0
    assert agree_on([-0.9, -0.8, 1.0], [-2.0, -2.0, -2.0]) == -0.8
    assert agree_on([-0.5], [-0.3]) == -0.3 and agree_on([-0.5], [-0.7]) == -0.5
    assert agree_on([0.2], [-0.3]) == 0.2


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=9))
@pytest.mark.long
def test_without_lower_bounds_three_or_more_agree_on_their_median(votes: list[float]) -> None:
    assert agree_on(votes) == pytest.approx(median(votes))


def test_entries_are_found_by_all_but_one_of_their_competitors() -> None:
    """Also where that one is of the same workload; the exact competitors are another question."""
    ledger = Ledger()
    for beside in [(), (B,), (B, B), (B, C), (C, D), (B, C, D)]:
        ledger.add(reading(*beside))
    found = {(): [(B,)], (B,): [(B, B), (B, C)], (C,): [(B, C), (C, D)], (B, D): [(B, C, D)], (D, D): []}
    for competitors, entries in found.items():
        assert [one.competitors for one in ledger.with_one_more(MODEL, A, competitors)] == entries


def test_the_noise_of_what_tenants_agree_on_falls_with_their_readings() -> None:
    """1 % of one reading, a quarter of that of 16, and more where readings differ more."""
    ledger = Ledger()
    entry = ledger.add(reading(B))
    assert entry.standard_error() == pytest.approx(0.01)
    for _ in range(15):
        ledger.add(reading(B))
    assert entry.standard_error() == pytest.approx(0.0025)
    for _ in range(16):
        ledger.add(reading(B, kpps=80.0))
    assert entry.standard_error() > 0.01


def test_readings_from_before_a_drift_are_forgotten() -> None:
    """Of that NF; those of others stay."""
    ledger = Ledger()
    for event in (1, 5):
        ledger.add(reading(B, event=event))
        ledger.add(reading(A, of=B, event=event))
    ledger.forget(MODEL, "a", 5)
    assert {workload.nf: len(entry.readings) for _, workload, entry in ledger.entries()} == {"a": 1, "b": 2}
