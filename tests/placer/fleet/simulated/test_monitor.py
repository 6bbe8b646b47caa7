"""Measurements of a simulated production: noise, lost and wrong readings, too little offered, lies."""

from __future__ import annotations

from itertools import chain
from math import log
from statistics import fmean, pstdev

import pytest

from placer.fleet.events import Measure, MeasuredInstance
from placer.fleet.learning.ledger import SATURATED_OFFER
from placer.fleet.simulated.monitor import Monitor, TrueDrift
from placer.inputs.production import LiarTable, MonitorTable
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC
from profiles import Workload
from tests.placer.fleet.simulated.toy_world import KINDS, nic_of, tenant, truth_of

EVENTS = range(1, 1001)


def fleet_of(nics: int) -> Fleet:
    """So many NICs with one `b` each, which has 200 kpps."""
    fleet = Fleet(KINDS)
    for number in range(nics):
        fleet.place(tenant(str(number), "b"), fleet.open(KINDS[0]))
    return fleet


def measured(settings: MonitorTable, *liars: LiarTable, nics: int = 1, seed: int = 1) -> list[Measure]:
    """A thousand events' measurements."""
    fleet, monitor = fleet_of(nics), Monitor(settings, liars, truth_of(), seed)
    return list(chain.from_iterable(monitor.measure(event, fleet) for event in EVENTS))


def readings(settings: MonitorTable, *liars: LiarTable) -> list[MeasuredInstance]:
    return [one for event in measured(settings, *liars) for one in event.instances]


def is_capacity(one: MeasuredInstance) -> bool:
    return one.offered_kpps is not None and one.offered_kpps >= SATURATED_OFFER * one.throughput_kpps


def test_readings_scatter_around_the_truth_as_much_as_they_should() -> None:
    """2 % around 200 kpps; more than that is offered."""
    logs = [log(one.throughput_kpps / 200.0) for one in readings(MonitorTable(noise_pct=2.0)) if is_capacity(one)]
    assert len(logs) == 1000
    assert fmean(logs) == pytest.approx(0.0, abs=0.003)
    assert pstdev(logs) == pytest.approx(0.02, rel=0.1)


def test_the_share_of_nics_is_measured_every_so_many_events_at_least_one() -> None:
    """A fifth of ten NICs is two, a hundredth still one."""
    two = measured(MonitorTable(every=100, share=0.2), nics=10)
    assert len(two) == 20 and len({one.nic for one in two}) > 5
    assert len(measured(MonitorTable(every=100, share=0.01), nics=10)) == 10


def test_lost_wrong_and_unsaturated_readings_are_as_frequent_as_they_should_be() -> None:
    """3 in 10 are lost, 1 in 5 of the others is wrong by 1.5 at least, 1 in 2 of the rest is a lower bound."""
    settings = MonitorTable(noise_pct=0.0, lost_pct=30, outliers_pct=20, unsaturated_pct=50)
    found = readings(settings)
    wrong = [one for one in found if is_capacity(one) and abs(log(one.throughput_kpps / 200.0)) > log(1.49)]
    low = [one for one in found if not is_capacity(one)]
    assert len(found) == pytest.approx(700, abs=50)
    assert len(wrong) == pytest.approx(0.2 * len(found), abs=45)
    assert len(low) == pytest.approx(0.4 * len(found), abs=55)
    assert all(one.throughput_kpps <= 200.0 for one in low)
    assert {one.throughput_kpps > 200.0 for one in wrong} == {True, False}


def test_nothing_is_measured_above_what_was_offered() -> None:
    """The engine would refuse it."""
    settings = MonitorTable(noise_pct=10, outliers_pct=30, unsaturated_pct=30)
    assert all(one.throughput_kpps <= (one.offered_kpps or 0.0) for one in readings(settings))


def test_a_liar_reports_its_factor_of_the_truth_and_others_do_not() -> None:
    """By name, or as a share of all, always the same ones."""
    quiet = MonitorTable(noise_pct=0.0, share=1.0)
    assert {one.throughput_kpps for one in readings(quiet, LiarTable(tenant="0", factor=0.5))} == {100.0}
    assert {one.throughput_kpps for one in readings(quiet, LiarTable(tenant="1", factor=0.5))} == {200.0}
    half = measured(MonitorTable(noise_pct=0.0, share=1.0, every=500), LiarTable(share=0.5, factor=2.0), nics=40)
    lying = {one.nic for one in half if one.instances[0].throughput_kpps == 400.0}
    honest = {one.nic for one in half if one.instances[0].throughput_kpps == 200.0}
    assert len(lying) + len(honest) == 40 and 10 < len(lying) < 30


def test_a_reading_does_not_depend_on_who_else_is_measured() -> None:
    """Fleets that place differently still read alike; another seed reads otherwise."""
    settings = MonitorTable(share=1.0)
    alone = measured(settings)
    beside = [event for event in measured(settings, nics=2) if event.nic == "nic-1"]
    assert [one.instances for one in alone] == [one.instances for one in beside]
    assert measured(settings, seed=2) != alone


def test_what_drifted_is_measured() -> None:
    """Half from the second event on."""
    monitor = Monitor(MonitorTable(noise_pct=0.0), (), truth_of(TrueDrift("b", 2, None, 0.5)), 1)
    fleet = fleet_of(1)
    kpps = [one.instances[0].throughput_kpps for event in (1, 2) for one in monitor.measure(event, fleet)]
    assert kpps == pytest.approx([200.0, 100.0])


def test_a_drift_holds_from_its_first_event_up_to_its_end() -> None:
    """The event of its end is the first without it."""
    truth = truth_of(TrueDrift("a", 10, 20, 0.5))
    assert [truth.factor("a", event) for event in (9, 10, 19, 20)] == [1.0, 0.5, 0.5, 1.0]
    assert [truth.turns(event) for event in (9, 10, 19, 20)] == [False, True, False, True]
    assert [truth.last_turn("a", event) for event in (9, 10, 19, 20)] == [None, 10, 10, 20]
    assert truth.factor("b", 10) == 1.0 and truth.last_turn("b", 10) is None


def test_drifts_of_one_nf_multiply() -> None:
    """Half of half is a quarter."""
    truth = truth_of(TrueDrift("a", 1, None, 0.5), TrueDrift("a", 5, None, 0.5))
    assert [truth.factor("a", event) for event in (1, 5)] == [0.5, 0.25]


def test_an_nf_drifts_alone_and_beside_others_and_leaves_them_as_they_are() -> None:
    """`c` has 400 kpps alone and 4 % less beside one `a`, which has 8 % less than its 100."""
    truth = truth_of(TrueDrift("c", 2, None, 0.5))
    nic = nic_of(tenant("1", "c"), tenant("2", "a"))
    a, c = Workload("a", TOY_TRAFFIC), Workload("c", TOY_TRAFFIC)
    assert truth.throughput(nic, 1) == pytest.approx({a: 92.0, c: 384.0})
    assert truth.throughput(nic, 2) == pytest.approx({a: 92.0, c: 192.0})
    assert [truth.solo(KINDS[0], c, event) for event in (1, 2)] == [400.0, 200.0]
