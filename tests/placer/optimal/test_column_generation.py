"""Column generation: workers against exhaustive search, the bound in every round, and diving."""

import csv
import time
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placer.optimal.packing
from placer.model.nic_kind import NicKind
from placer.optimal.co_location_pricer import CoLocationPricer
from placer.optimal.column_generation import Column, PricedColumns, Task, dive, generate
from placer.optimal.knapsack_pricer import KnapsackPricer
from placer.optimal.packing import Packing, pack, read_vbp
from profiles.arrays import Floats, Ints
from tests.effort import examples
from tests.placer.optimal.instances import CrowdingOracle, ErraticOracle, TableOracle, tenant
from tests.placer.optimal.test_packing import faults_of, fewest_bins, packing_of

EVER = float("inf")


def alone_in_bins(needed: int) -> Task:
    """Every item once, in bins of cost 1 without limit."""
    return Task(np.ones(needed, dtype=np.int64), np.array([1]), np.array([needed]), exactly=False)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0, 1)), min_size=1, max_size=8),
    st.sampled_from([(1,), (3,), (300, 30_000)]),
)
@settings(max_examples=examples(100))
def test_no_set_is_worth_more_than_the_knapsack_bound(
    items: list[tuple[int, int, float]], widths: tuple[int, ...]
) -> None:
    """Sets that are returned fit and are worth more than a bin; none at all is worth more than the bound."""
    sizes = np.array([[a, b] for a, b, _ in items])
    prices = np.array([price for *_, price in items])
    priced = KnapsackPricer(np.array([12, 10]), sizes, widths)(prices, np.ones(len(items), dtype=np.int64), EVER)
    fitting = [
        rows
        for size in range(1, len(items) + 1)
        for rows in combinations(range(len(items)), size)
        if np.all(sizes[list(rows)].sum(axis=0) <= [12, 10])
    ]
    assert all(column.rows in fitting and prices[list(column.rows)].sum() > 1 for column in priced.columns)
    best = max((float(prices[list(rows)].sum()) for rows in fitting), default=0.0)
    assert best <= priced.most[0] + 1e-9
    if widths[-1] > 1000:
        assert bool(priced.columns) == (best > 1 + 1e-6)


def test_the_worker_returns_feasible_co_locations_in_order_of_worth() -> None:
    """ACL, NAT and NIDS together are worth most but violate an SLA, so pairs are the columns and give the bound."""
    kind = NicKind(0, "bluefield-2", 8, {"acl": 2, "nat": 2, "nids": 4})
    oracle = TableOracle({"acl nat nids": [50, 100, 100]})
    classes = [tenant(nf, nf, drop=0.1) for nf in ("acl", "nat", "nids")]
    worker = CoLocationPricer(classes, [kind], [oracle], np.array([1]))
    priced = worker(np.array([0.7, 0.6, 0.5]), np.ones(3, dtype=np.int64), EVER)
    assert priced.columns == [Column(0, (0, 1)), Column(0, (0, 2)), Column(0, (1, 2))]
    assert priced.most == pytest.approx([1.3])


def test_without_queries_the_worth_is_bounded_by_cores() -> None:
    """After the deadline nothing is queried, and the bound is the worth of the best co-location within the cores."""
    kind = NicKind(0, "bluefield-2", 4, {"acl": 2})
    worker = CoLocationPricer([tenant("a", "acl", drop=0.1)], [kind], [TableOracle({"acl acl": [1, 1]})], np.array([1]))
    assert worker(np.array([0.8]), np.array([5]), 0.0).most == pytest.approx([1.6])
    assert worker(np.array([0.8]), np.array([5]), EVER).most == pytest.approx([1.0])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=7), st.lists(st.floats(0, 1), min_size=7, max_size=7))
@settings(max_examples=examples(60))
def test_the_bound_is_valid_at_any_prices(sizes: list[int], prices: list[float]) -> None:
    """Whatever the prices, no packing has fewer bins than the bound that they prove."""
    packing = packing_of([10], [[size] for size in sizes])
    worker = KnapsackPricer(packing.capacities, packing.sizes)
    task = alone_in_bins(len(sizes))
    priced = worker(np.array(prices[: len(sizes)]), task.needed, EVER)
    assert task.bound(np.array(prices[: len(sizes)]), priced.most) <= fewest_bins(packing) + 1e-6


def test_the_bound_allows_for_columns_that_are_hardly_worth_more() -> None:
    """Two share a NIC and are worth 4e-7 more than it: ten thousand need 5,000 NICs, the prices do not prove 5,001."""
    kind = NicKind(0, "bluefield-2", 4, {"acl": 2})
    worker = CoLocationPricer([tenant("a", "acl", drop=0.1)], [kind], [TableOracle({})], np.array([1]))
    task = Task(np.array([10_000]), np.array([1]), np.array([10_000]), exactly=True)
    prices = np.array([0.5 + 2e-7])
    assert task.bound(prices, worker(prices, task.needed, EVER).most) <= 5_000


def test_two_kinds_at_different_cost() -> None:
    """Two small jobs and a large one: the owned NIC that costs nothing is used up, the rest is bought."""
    fits = [Column(0, (0,)), Column(0, (1,)), Column(1, (0, 1)), Column(1, (1,)), Column(1, (2,))]

    def worker(prices: Floats, needed: Ints, deadline: float) -> PricedColumns:
        worth = [(float(prices[list(column.rows)].sum()), column) for column in fits]
        most = [max(w for w, column in worth if column.kind == kind) for kind in (0, 1)]
        return PricedColumns([c for w, c in worth if w > c.kind + 1e-6], np.maximum(most, [0, 1]))

    task = Task(np.array([1, 1, 1]), np.array([0, 1]), np.array([1, 3]), exactly=True)
    generated = generate(task, [], worker, enough=100, deadline=time.monotonic() + 5)
    plan, _ = dive(task, generated.columns, worker, below=100, deadline=time.monotonic() + 5)
    assert plan is not None and (generated.bound, sum(column.kind for column in plan)) == (2, 2)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=7))
@settings(max_examples=examples(60))
def test_generated_packings_agree_with_exhaustive_search(sizes: list[tuple[int, int]]) -> None:
    """Without a list of all sets, the packing is valid, and the bound is not above the optimum."""
    packing = packing_of([7, 7], [list(size) for size in sizes])
    with patch.multiple(placer.optimal.packing, FEW_SETS=0, MOST_SETS=0):
        packed = pack(packing)
    assert list(faults_of(packed, packing)) == []
    assert packed.lower_bound <= fewest_bins(packing) <= len(packed.assignment)


@pytest.mark.parametrize("oracle", [ErraticOracle(3), CrowdingOracle(3)])
def test_generating_columns_again_changes_nothing(oracle: ErraticOracle | CrowdingOracle) -> None:
    """Once all useful co-locations were generated, another run changes neither columns nor bound."""
    kind = NicKind(0, "bluefield-2", 6, {"acl": 2, "nat": 2, "nids": 3})
    classes = [tenant(nf, nf, drop=0.3) for nf in ("acl", "nat", "nids")]
    task = Task(np.array([3, 2, 2]), np.array([1]), np.array([7]), exactly=True)
    worker = CoLocationPricer(classes, [kind], [oracle], np.array([1]))
    first = generate(task, [], worker, enough=7, deadline=time.monotonic() + 5)
    again = generate(task, first.columns, worker, enough=7, deadline=time.monotonic() + 5)
    assert (again.bound, len(again.columns)) == (first.bound, len(first.columns))


@pytest.mark.slow
def test_no_packing_is_above_the_best_published_heuristic(shared_data: Path) -> None:
    """All published instances: at the optimum, and none above the best of a hundred published heuristics."""
    with (shared_data / "vectorpack" / "optima.csv").open() as rows:
        for row in csv.DictReader(rows):
            packing: Packing = read_vbp(shared_data / "vectorpack" / f"{row['instance']}.vbp")
            packed = pack(packing)
            assert list(faults_of(packed, packing)) == []
            assert len(packed.assignment) <= int(row["best_heuristic_published"]), row["instance"]
            assert packed.lower_bound <= int(row["optimum"]) <= len(packed.assignment), row["instance"]
