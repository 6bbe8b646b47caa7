"""Counts of violations and alarms."""

from __future__ import annotations

import pytest

from placer.fleet.events import JudgedInstance, Learned
from placer.fleet.simulated.fleet_life import AlarmTally, SlaTally
from placer.fleet.simulated.monitor import TrueDrift
from placer.fleet.simulated.outcome import DriftAlarm
from tests.placer.fleet.simulated.toy_world import nic_of, tenant, truth_of


def below(identity: str) -> Learned:
    """A measurement that shows the instance below its SLA."""
    return Learned("noted", instances=(JudgedInstance(identity, 1.0, None, None, True),))


def test_who_was_below_the_sla_once_is_counted_although_it_recovers() -> None:
    """`c` loses 16 % beside `c`, more than 10; alone again it keeps its SLA."""
    slas = SlaTally(truth_of())
    slas.judge([nic_of(tenant("1", "c"), tenant("2", "c", 0.2))], 1)
    assert (slas.now, slas.violated) == ({"1"}, {"1"})
    slas.judge([nic_of(tenant("1", "c"))], 2)
    assert (slas.now, slas.violated) == (set(), {"1"})


def test_who_leaves_is_no_longer_below_its_sla() -> None:
    """But was."""
    slas = SlaTally(truth_of())
    slas.judge([nic_of(tenant("1", "c"), tenant("2", "c", 0.2))], 1)
    slas.left("1")
    assert (slas.now, slas.violated) == (set(), {"1"})


def test_repeats_are_nics_that_violate_only_after_the_place_was_measured() -> None:
    """Two NICs before the measurement do not count, one after it does; other co-locations do not."""
    slas = SlaTally(truth_of())

    def violate(name: str, *more: str) -> None:
        nic = nic_of(tenant(f"{name}-1", "c"), tenant(f"{name}-2", "c", 0.2), *(tenant(one, "a") for one in more))
        nic.id = name
        slas.judge([nic], 1)
        if name == "second":
            slas.note_measurement(nic, below("second-1"))

    violate("first")
    violate("second")
    assert slas.count_repeated() == 0
    violate("third")
    violate("fourth", "x")
    assert slas.count_repeated() == 1


def test_a_wrong_reading_starts_no_repeats() -> None:
    """It is not the ground truth that says so."""
    slas = SlaTally(truth_of())
    nic = nic_of(tenant("1", "c"))
    slas.judge([nic], 1)
    slas.note_measurement(nic, below("1"))
    assert slas.count_repeated() == 0


@pytest.mark.parametrize(("nf", "event", "false"), [("a", 9, True), ("a", 10, False), ("b", 10, True)])
def test_an_alarm_is_false_unless_the_nf_has_changed(nf: str, event: int, false: bool) -> None:
    """Before its drift, or of another NF."""
    alarms = AlarmTally(truth_of(TrueDrift("a", 10, None, 0.5)))
    alarms.note_factors(event, {nf: 0.5})
    assert [alarm.false for alarm in alarms.alarms] == [false]


def test_readings_are_counted_from_the_drift_on() -> None:
    """Three readings of `a` after it, not the two before; those of `b` go on."""
    alarms = AlarmTally(truth_of(TrueDrift("a", 10, None, 0.5)))
    alarms.read(["a", "a", "b"])
    alarms.turn(10)
    alarms.read(["a", "a", "a", "b"])
    alarms.note_factors(12, {"a": 0.5, "b": 0.9})
    assert alarms.alarms == [DriftAlarm(12, "a", 0.5, 3, False), DriftAlarm(12, "b", 0.9, 2, True)]
