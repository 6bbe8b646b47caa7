"""The outlook, on worlds small enough to be priced by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from placer.model.fleet import NicKind
from placer.model.oracle import CoLocation, Oracle
from placer.policy.forecast import Forecast, arrival_prices, recent_arrivals_forecast
from placer.policy.kernels import becomes, expects
from placer.policy.patterns import Patterns, too_many
from profiles import TrafficProfile, Workload

BIG, SMALL = (Workload(nf, TrafficProfile(1, 64)) for nf in ("big", "small"))
KIND = NicKind(0, "toy", 4, {"big": 3, "small": 1})


class Quiet(Oracle):
    """Company costs nothing, except that small beside small loses 20 %."""

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return [
            [80.0 if w == SMALL and co_location.count(SMALL) > 1 else 100.0 for w in co_location]
            for co_location in co_locations
        ]


PATTERNS = Patterns(KIND, [BIG, SMALL], Quiet())


def forecast_of(*seen: tuple[int, int, float]) -> Forecast:
    """The outlook of so many arrivals of a column that require so many kpps."""
    found = recent_arrivals_forecast(PATTERNS, [(column, kpps) for count, column, kpps in seen for _ in range(count)])
    assert found is not None
    return found


def pattern_of(big: int, small: int) -> int:
    """The number of a company."""
    return PATTERNS.counts.tolist().index([big, small])


def worth_of(forecast: Forecast, big: int, small: int, *, required: tuple[float, float] = (0.0, 0.0)) -> float:
    """What a NIC with these expects, when those there require so many kpps."""
    pattern = pattern_of(big, small)
    over, able = PATTERNS.over(pattern), np.zeros(len(PATTERNS.counts), dtype=np.bool_)
    becomes(pattern, over, PATTERNS.members, PATTERNS.kpps, np.array(required), able)
    scratch = np.zeros(len(able), dtype=np.int32), np.zeros(len(able))
    return float(
        expects(
            pattern, over, able, PATTERNS.counts, PATTERNS.joined,
            forecast.likely, forecast.bears, forecast.rewards, 0.98, *scratch,
        )
    )  # fmt: skip


def test_all_companies_that_fit_are_known_with_the_empty_one_first() -> None:
    """Four cores hold up to four small ones, or a big one with or without a small one."""
    rows = [tuple(row) for row in PATTERNS.counts.tolist()]
    assert rows[0] == (0, 0)
    assert sorted(rows) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1)]
    assert PATTERNS.over(rows.index((1, 0))).tolist() == [rows.index((1, 0)), rows.index((1, 1))]
    assert PATTERNS.kpps[rows.index((0, 2))].tolist() == [0.0, 80.0]


def test_prices_add_up_to_the_nics_that_arrivals_need() -> None:
    """Four small ones share a NIC when they bear 80 %, so each takes a quarter; a tight one takes a whole NIC."""
    column = np.ones(10, dtype=np.intp)
    assert arrival_prices(PATTERNS, column, np.full(10, 50.0)) == pytest.approx(np.full(10, 0.25))
    assert arrival_prices(PATTERNS, column, np.full(10, 90.0)) == pytest.approx(np.ones(10))


def test_a_full_nic_expects_nothing_and_an_empty_one_almost_a_whole() -> None:
    """Patience ends at some time, so a little less."""
    forecast = forecast_of((10, 1, 50.0))
    assert worth_of(forecast, 1, 1) == 0.0
    assert worth_of(forecast, 0, 4) == 0.0
    assert 0.9 < worth_of(forecast, 0, 0) < 1.0
    assert 0.4 < worth_of(forecast, 0, 2) < 0.5


def test_whom_nobody_may_join_expects_nothing() -> None:
    """A small one that requires 90 kpps can be joined by a big one alone, and big ones do not come."""
    forecast = forecast_of((10, 1, 50.0))
    assert worth_of(forecast, 0, 1, required=(0.0, 90.0)) == 0.0
    assert worth_of(forecast_of((5, 0, 50.0), (5, 1, 50.0)), 0, 1, required=(0.0, 90.0)) > 0.3


def test_room_is_worth_more_to_those_who_are_hard_to_place() -> None:
    """The core beside a big one is worth more when small ones need it, since they bear no company of their kind."""
    tight, loose = forecast_of((5, 0, 50.0), (40, 1, 90.0)), forecast_of((40, 0, 50.0), (5, 1, 50.0))
    assert worth_of(tight, 1, 0) > 0.9
    assert worth_of(loose, 1, 0) < 0.1


def test_nothing_is_foreseen_of_nobody() -> None:
    """Nor of those who cannot be served even alone."""
    assert recent_arrivals_forecast(PATTERNS, []) is None
    assert recent_arrivals_forecast(PATTERNS, [(0, 101.0)]) is None


def test_too_many_workloads_are_counted_and_not_enumerated() -> None:
    """Fifty-nine workloads of a core each form more companies on twelve cores than anybody would ask for."""
    kind = NicKind(0, "wide", 12, {"small": 1})
    many = [Workload("small", TrafficProfile(i, 64)) for i in range(1, 60)]
    assert too_many(kind, many)
    assert not too_many(kind, many[:3])
    assert not too_many(KIND, [BIG, SMALL], most=7)
    assert too_many(KIND, [BIG, SMALL], most=6)
