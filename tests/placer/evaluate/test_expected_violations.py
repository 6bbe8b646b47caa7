"""SLA violations to expect of a plan, on cases worked by hand."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from placer.evaluate.expected_violations import expected_violations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.plan import Placement, Plan
from placer.testing.strategies import SOLO_KPPS, arrival, catalogue
from profiles import Workload


class Tenths:
    """A predictor by which every instance falls short with a tenth per instance on its NIC beyond the first."""

    def solo(self, workloads: Sequence[Workload]) -> np.ndarray:
        return np.array([SOLO_KPPS[one.nf] for one in workloads])

    def shortfall(self, co_locations: Sequence[Sequence[Workload]], required: Any) -> list[np.ndarray]:
        return [np.full(len(one), 0.1 * (len(one) - 1)) for one in co_locations]


def _catalogue() -> Catalogue:
    models = cast("Any", SimpleNamespace(predictors={"toy": Tenths()}))
    return Catalogue(catalogue().kinds, (models,), (None,))


def _plan(*placed: tuple[Arrival, str | None]) -> Plan:
    kind = catalogue().kinds[0]
    return Plan("toy", "toy", tuple(Placement(one, nic, kind if nic else None) for one, nic in placed), 0.0)


def test_three_on_one_nic_and_one_alone() -> None:
    """Three at two tenths and one at none: 0.6 of four, 15 %. Rejected arrivals do not count."""
    plan = _plan(
        (arrival("1", 0, "a"), "x"), (arrival("2", 1, "b"), "x"), (arrival("3", 2, "c"), "x"),
        (arrival("4", 3, "d"), "y"), (arrival("5", 4, "d"), None),
    )  # fmt: skip
    assert expected_violations(plan, _catalogue(), "toy").mean_pct == pytest.approx(15.0)


def test_the_worst_moment_of_a_stay_counts() -> None:
    """Two share a NIC until one leaves: both were at a tenth, whatever comes afterwards."""
    plan = _plan((arrival("1", 0, "a", departure=5), "x"), (arrival("2", 1, "b"), "x"), (arrival("3", 6, "c"), "y"))
    assert expected_violations(plan, _catalogue(), "toy").mean_pct == pytest.approx(100 * 0.2 / 3)


def test_repeated_co_locations_spread_more() -> None:
    """Four NICs with the same pair fail together; four different pairs do not. The expectation is the same."""
    same = [(arrival(f"{nic}{nf}", 0, nf), f"nic-{nic}") for nic in range(4) for nf in "ab"]
    pairs = ("aa", "bb", "cc", "dd")
    different = [
        (arrival(f"{nic}{at}", 0, nf), f"nic-{nic}") for nic, pair in enumerate(pairs) for at, nf in enumerate(pair)
    ]
    alike, apart = (expected_violations(_plan(*one), _catalogue(), "toy") for one in (same, different))
    assert alike.mean_pct == pytest.approx(apart.mean_pct)
    assert alike.spread_pct == pytest.approx(2**0.5 * apart.spread_pct)


def test_an_empty_plan_violates_nothing() -> None:
    """Zero of zero."""
    assert expected_violations(_plan(), _catalogue(), "toy").mean_pct == 0.0
