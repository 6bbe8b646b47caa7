"""The forecast, in cases that are priced by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from placer.model.fleet import NicKind
from placer.model.oracle import CoLocation, Oracle
from placer.policy.forecast import arrival_prices, recent_arrivals_forecast
from placer.policy.kernels import Forecast, Scratch, expected_value, mark_reachable
from placer.policy.pattern_table import PatternTable
from profiles import TrafficProfile, Workload

BIG, SMALL = (Workload(nf, TrafficProfile(1, 64)) for nf in ("big", "small"))
KIND = NicKind(0, "toy", 4, {"big": 3, "small": 1})


class SmallSlowsSmall(Oracle):
    """No contention, except that small NFs lose 20 % where they share a NIC."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            [80.0 if w == SMALL and co_location.count(SMALL) > 1 else 100.0 for w in co_location]
            for co_location in co_locations
        ]


TABLE = PatternTable(KIND, [BIG, SMALL], SmallSlowsSmall())


def forecast_of(*recent: tuple[int, int, float]) -> Forecast:
    """The forecast from recent arrivals: how many, of which column, and the throughput (kpps) that they require."""
    found = recent_arrivals_forecast(TABLE, [(column, kpps) for count, column, kpps in recent for _ in range(count)])
    assert found is not None
    return found


def value_of(forecast: Forecast, big: int, small: int, *, required: tuple[float, float] = (0.0, 0.0)) -> float:
    """The expected value of a NIC with these tenants, which require these throughputs (kpps)."""
    pattern = TABLE.counts.tolist().index([big, small])
    above, reachable = TABLE.above(pattern), np.zeros(len(TABLE.counts), dtype=np.bool_)
    mark_reachable(pattern, above, TABLE.members, TABLE.kpps, np.array(required), reachable)
    scratch = Scratch(np.zeros(len(reachable), dtype=np.int32), np.zeros(len(reachable)))
    return float(expected_value(pattern, above, reachable, TABLE.arrays, forecast, 0.98, scratch))


def test_prices_add_up_to_the_nics_that_arrivals_need() -> None:
    """Four small NFs share a NIC if each accepts 80 %, a quarter each; one with a tight SLA takes a whole NIC."""
    column = np.ones(10, dtype=np.intp)
    assert arrival_prices(TABLE, column, np.full(10, 50.0)) == pytest.approx(np.full(10, 0.25))
    assert arrival_prices(TABLE, column, np.full(10, 90.0)) == pytest.approx(np.ones(10))


def test_a_full_nic_has_no_expected_value_and_an_empty_one_almost_that_of_a_nic() -> None:
    """A little less, because arrivals may cease."""
    forecast = forecast_of((10, 1, 50.0))
    assert value_of(forecast, 1, 1) == 0.0
    assert value_of(forecast, 0, 4) == 0.0
    assert 0.9 < value_of(forecast, 0, 0) < 1.0
    assert 0.4 < value_of(forecast, 0, 2) < 0.5


def test_free_cores_that_no_arrival_can_use_have_no_expected_value() -> None:
    """A small NF that requires 90 kpps can share only with a big NF, and no big NF arrives."""
    forecast = forecast_of((10, 1, 50.0))
    assert value_of(forecast, 0, 1, required=(0.0, 90.0)) == 0.0
    assert value_of(forecast_of((5, 0, 50.0), (5, 1, 50.0)), 0, 1, required=(0.0, 90.0)) > 0.3


def test_free_cores_are_worth_more_to_arrivals_that_are_hard_to_place() -> None:
    """The core next to a big NF is worth most to small NFs with a tight SLA, which cannot share with each other."""
    tight, loose = forecast_of((5, 0, 50.0), (40, 1, 90.0)), forecast_of((40, 0, 50.0), (5, 1, 50.0))
    assert value_of(tight, 1, 0) > 0.9
    assert value_of(loose, 1, 0) < 0.1


def test_without_feasible_arrivals_there_is_no_forecast() -> None:
    """Neither from no arrivals, nor from those whose SLA is not met even alone."""
    assert recent_arrivals_forecast(TABLE, []) is None
    assert recent_arrivals_forecast(TABLE, [(0, 101.0)]) is None
