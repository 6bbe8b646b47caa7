"""The forecast, in cases that are priced by hand. Prices for the last arrivals of a trace. Frequencies that are
smoothed as far as they differ by chance only."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placer.policy.dual_simplex import OpenClass, PatternProgram
from placer.policy.forecast import (
    FINER_LEVELS,
    PRICED_LEVELS,
    SLA_LEVELS,
    SLA_QUANTILES,
    PriceForecast,
    Prices,
    alike,
    core_shares,
    levels_of,
    smooth,
)
from placer.policy.kernels import free_capacity_value, mark_reachable
from placer.policy.pattern_table import PatternTable
from placer.strategies.contention_aware import ContentionAware
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, arrival, catalogue
from profiles import Workload
from tests.placer.policy.test_pattern_table import TABLE


def prices_of(*recent: tuple[int, int, float]) -> Prices:
    """Prices from recent arrivals: how many, of which column, and the throughput (kpps) that they require."""
    forecast = PriceForecast(TABLE)
    for count, column, kpps in recent:
        for _ in range(count):
            forecast.observe(column, kpps)
    forecast.renew()
    while forecast.renewing:
        prices = forecast.advance(1)
    assert prices is not None
    return prices


def pattern_of(big: int, small: int) -> int:
    return TABLE.counts.tolist().index([big, small])


def value_of(prices: Prices, big: int, small: int, *, required: tuple[float, float] = (0.0, 0.0)) -> float:
    """The value of the free capacity of a NIC with these tenants, which require these throughputs (kpps)."""
    pattern = pattern_of(big, small)
    above, reachable = TABLE.above(pattern), np.zeros(len(TABLE.counts), dtype=np.bool_)
    mark_reachable(pattern, above, TABLE.members, TABLE.kpps, np.array(required), reachable)
    counts, members, then = TABLE.counts, TABLE.members, np.zeros((2, SLA_LEVELS))
    return float(free_capacity_value(pattern, above, reachable, counts, members, prices.level, prices.worth, then))


def test_prices_add_up_to_the_nics_that_arrivals_need() -> None:
    """Four small NFs share a NIC if each accepts 80 %, a quarter each; next to others with a tight SLA, none can."""
    assert prices_of((1_000, 1, 50.0)).worth[pattern_of(0, 4), 1] == pytest.approx(0.25, abs=1e-3)
    tight = prices_of((1_000, 1, 90.0))
    assert tight.worth[pattern_of(0, 1), 1] == pytest.approx(1.0, abs=2e-3)
    assert tight.worth[pattern_of(0, 4), 1] == 0.0


def test_no_pattern_is_worth_more_than_a_nic() -> None:
    """Prices are a solution of the dual program, also for a mix of workloads and SLAs."""
    worth = prices_of((40, 0, 50.0), (30, 1, 90.0), (30, 1, 60.0)).worth
    assert (worth * TABLE.counts).sum(axis=1).max() <= 1.001
    assert (worth * TABLE.counts).sum(axis=1).max() > 0.8


def test_a_full_nic_has_no_value_and_an_empty_one_that_of_a_nic() -> None:
    """In between, it is worth what the best pattern adds."""
    prices = prices_of((1_000, 1, 50.0))
    assert value_of(prices, 1, 1) == 0.0 and value_of(prices, 0, 4) == 0.0
    assert value_of(prices, 0, 0) == pytest.approx(1.0, abs=1e-3)
    assert value_of(prices, 0, 2) == pytest.approx(0.5, abs=1e-3)


def test_free_cores_that_no_arrival_can_use_have_no_value() -> None:
    """A small NF that requires 90 kpps can share only with a big NF."""
    only_small = prices_of((1_000, 1, 50.0))
    assert value_of(only_small, 0, 1) == pytest.approx(0.75, abs=1e-3)
    assert value_of(only_small, 0, 1, required=(0.0, 90.0)) <= value_of(only_small, 0, 0) - 0.25 + 1e-3
    assert value_of(prices_of((500, 0, 50.0), (500, 1, 50.0)), 0, 1, required=(0.0, 90.0)) > 0.7


def test_free_cores_are_worth_more_to_arrivals_that_are_hard_to_place() -> None:
    """The core next to a big NF is worth most to small NFs with a tight SLA, which cannot share with each other."""
    tight, loose = prices_of((50, 0, 50.0), (400, 1, 90.0)), prices_of((400, 0, 50.0), (50, 1, 50.0))
    assert value_of(tight, 1, 0) > 0.9 and value_of(loose, 1, 0) < 0.1


def test_prices_do_not_depend_on_the_steps_in_which_they_are_computed() -> None:
    """A pivot at a time, or all at once."""
    forecast = PriceForecast(TABLE)
    for _ in range(20):
        forecast.observe(0, 60.0)
        forecast.observe(1, 90.0)
    forecast.renew()
    at_once = forecast.advance(10_000)
    assert at_once is not None
    assert (at_once.worth == prices_of(*[(1, 0, 60.0), (1, 1, 90.0)] * 20).worth).all()


def test_without_feasible_arrivals_there_is_no_forecast() -> None:
    """Neither from no arrivals, nor from those whose SLA is not met even alone."""
    forecast = PriceForecast(TABLE)
    forecast.observe(0, 101.0)
    forecast.renew()
    assert not forecast.renewing and forecast.advance(10) is None


def test_without_forecast_instances_are_worth_their_cores() -> None:
    """A big NF takes three of four cores."""
    prices = core_shares(TABLE)
    assert prices.worth[pattern_of(1, 1)].tolist() == [0.75, 0.25] and value_of(prices, 0, 1) == 0.75


@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(0.05, 1.0) | st.sampled_from([0.8, 0.9])), min_size=1, max_size=300)
)
def test_levels_are_those_of_weighted_shares(arrivals: list[tuple[int, float]]) -> None:
    """To the bit, by NumPy workload by workload: own shares weigh 1, and as much as they are worth those of all."""
    columns, shares, solo = (
        np.array([at for at, _ in arrivals]),
        np.array([one for _, one in arrivals]),
        np.arange(1.0, 4),
    )
    levels, probability = levels_of(columns.tobytes(), shares.tobytes(), len(arrivals), solo.tobytes())
    pooled = np.quantile(shares[-256:], (np.arange(SLA_QUANTILES) + 0.5) / SLA_QUANTILES)
    likely, worth = alike(columns, shares, pooled, 3)
    for column, kpps in enumerate(solo.tolist()):
        own = shares[columns == column]
        share = np.concatenate([own, pooled])
        weight = np.concatenate([np.ones(len(own)), np.full(SLA_QUANTILES, worth / SLA_QUANTILES)])
        order = np.argsort(share, kind="stable")
        share, weight = share[order], weight[order]
        below = np.cumsum(weight) - weight
        at = np.searchsorted(below, np.linspace(0.0, weight.sum(), SLA_LEVELS, endpoint=False), side="right") - 1
        assert levels[column].tolist() == (share[at] * kpps).tolist()
        mass = np.diff(np.append(below[np.searchsorted(share, share[at[::FINER_LEVELS]])], weight.sum()))
        assert probability[column].tolist() == (likely[column] * mass / weight.sum()).tolist()
    assert probability.shape == (3, PRICED_LEVELS)


def _prices(classes: list[OpenClass], arrivals: float) -> np.ndarray:
    # workload d takes three of eight cores, and any SLA accepts a drop of a half: at most two fit on a NIC
    table = PatternTable(catalogue().kinds[0], [Workload("d", TOY_TRAFFIC)], ToyOracle(), lambda workload, solo: 0.5)
    program = PatternProgram(table.counts, table.members, 1)
    program.restart(np.where(table.counts > 0, 0, -1).astype(np.int32), classes)
    program.demand(np.array([[arrivals]]))
    program.pivot(100)
    return program.prices()


HALF_FULL = OpenClass(1, np.array([2]), 4)  # four NICs with one free slot each


@pytest.mark.parametrize(
    ("classes", "arrivals", "price"),
    [
        ([], 6.0, 0.5),  # two d fit on a new NIC, so each is worth half of one
        ([HALF_FULL], 3.0, 0.0),  # where open NICs suffice
        ([HALF_FULL], 5.0, 0.5),
        ([], 0.0, 0.0),
    ],
)
def test_slots_cost_what_open_nics_do_not_offer(classes: list[OpenClass], arrivals: float, price: float) -> None:
    assert _prices(classes, arrivals) == pytest.approx(
        np.array([[price]]), rel=1e-3, abs=1e-3 if classes and not price else 1e-12
    )


def test_the_last_arrivals_fill_open_nics() -> None:
    """At the end of a trace a NIC is opened only where no NIC in use fits: 30 d in a row need 15 NICs."""
    trace = [arrival(f"{number:02}", number, "d", 0.5) for number in range(30)]
    plan = ContentionAware(catalogue(), "toy", oracles=[ToyOracle()]).place(trace)
    assert len({one.nic for one in plan.placements}) == 15


def test_what_differs_by_chance_is_taken_for_alike() -> None:
    """Of 100 arrivals of five equally likely workloads, counts scatter by chance: all stay within 4 % of a fifth."""
    likely, _ = smooth(np.array([[17.0, 24.0, 21.0, 18.0, 20.0]]), np.full(5, 0.2))
    assert np.abs(likely[0] - 0.2).max() < 0.008


def test_what_differs_by_more_than_chance_is_believed() -> None:
    """Of 100 arrivals, 80 of one workload: it stays above 76 %."""
    likely, _ = smooth(np.array([[80.0, 5.0, 5.0, 5.0, 5.0]]), np.full(5, 0.2))
    assert likely[0, 0] > 0.76


def test_groups_that_are_alike_are_pooled() -> None:
    """What is expected of all is worth more arrivals where groups are alike than where each has its own."""
    alike = np.array([[5.0, 6.0, 5.0, 4.0], [6.0, 5.0, 4.0, 5.0]])
    apart = np.array([[20.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 20.0]])
    assert smooth(alike, np.full(4, 0.25))[1] > 10 * smooth(apart, np.full(4, 0.25))[1]


def test_without_arrivals_the_expectation_is_returned() -> None:
    expected = np.array([0.7, 0.3])
    assert np.allclose(smooth(np.zeros((1, 2)), expected)[0], expected)
