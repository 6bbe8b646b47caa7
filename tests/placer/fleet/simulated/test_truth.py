"""The drifting ground truth: what holds when."""

from __future__ import annotations

import pytest

from placer.fleet.simulated.monitor import TrueDrift
from placer.testing.strategies import TOY_TRAFFIC
from profiles import Workload
from tests.placer.fleet.simulated.toy_world import KINDS, nic_of, tenant, truth_of


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
