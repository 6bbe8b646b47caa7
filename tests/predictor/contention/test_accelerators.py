"""Queues served round robin: small cases by hand, and water-filling against a search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from predictor.contention.accelerators import AcceleratorUse, ServiceTime, equilibrium, limits, time_next_to_bench
from predictor.contention.execution import COMPOSITIONS, PIPELINE, RUN_TO_COMPLETION, drops_on_accelerators


def _row(*values: float) -> np.ndarray:
    return np.array([values], dtype=np.float64)


def test_equilibrium_by_hand() -> None:
    """Equation 2: queues 1 and 2 with 1 and 2 ms share a turn of 5 ms."""
    assert_allclose(equilibrium([1, 2], [1.0, 2.0]), [0.2, 0.4])


@pytest.mark.parametrize(
    ("service", "queues", "demand", "expected"),
    [
        ((0.5, 2.0), (1, 1), (9, 9), [0.4, 0.4]),  # one queue each: the same whatever a request costs (Tomur, figure 4)
        ((1.0, 2.0), (1, 1), (9, 0.1), [0.8]),  # 2 ms of 0.1 kpps leave 0.8 of the time: 0.8 kpps at 1 ms (equation 8)
        ((1.0, 1.0), (1, 1), (0.01, 9), [0.5]),  # the limit of an NF that only the accelerator limits, not its demand
        ((1.0, 0.0), (1, 0), (9, 9), [1.0, np.inf]),  # zero queues: no limit, and no share in the turn of another NF
    ],
)
def test_limits_by_hand(service, queues, demand, expected) -> None:  # type: ignore[no-untyped-def]
    assert_allclose(limits(_row(*service), _row(*queues), _row(*demand))[0, : len(expected)], expected)


@given(st.lists(st.tuples(st.floats(0.1, 3), st.integers(1, 4), st.floats(0.01, 5)), min_size=1, max_size=5))
def test_water_filling_uses_the_accelerator_exactly(members: list[tuple[float, int, float]]) -> None:
    """At the limit of member i, its own turns and min(n u, demand) of the others fill the accelerator's time."""
    service, queues, demand = (np.array([part], dtype=np.float64) for part in zip(*members, strict=True))
    for i, allowed in enumerate(limits(service, queues, demand)[0]):
        others = np.arange(len(members)) != i
        taken = (np.minimum(queues * (allowed / queues[0, i]), demand) * service)[0, others].sum()
        assert allowed * service[0, i] + taken == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("queues", "service", "rate", "expected"),
    [
        (1, 0.0, np.nan, 1.0),  # no competitor
        (1, 2.0, np.nan, 3.0),  # saturating: t + S
        (2, 2.0, np.nan, 2.0),  # two queues wait once for both: t + S/2
        (1, 2.0, 0.1, 1.25),  # light: t / (1 - 0.2)
        (1, 2.0, 0.49, 3.0),  # offers more than its turn: as saturating
        (1, 2.0, 0.0, 1.0),  # offers nothing
    ],
)
def test_time_beside_a_bench(queues: int, service: float, rate: float, expected: float) -> None:
    """Equations 2 and 8 around an own service time of 1 ms."""
    assert_allclose(time_next_to_bench(np.ones(1), queues, np.array([service]), np.array([rate])), expected)


def test_turns_of_equal_time() -> None:
    """Two of an NF's queues beside one of a bench: two thirds of the time, whatever a request of either takes."""
    own, bench, slice_ms = 0.7, np.array([1.5]), 3.0
    time = time_next_to_bench(np.array([own]), 2, bench, np.array([np.nan]), slice_ms)
    assert_allclose(time, own * 1.5)
    uses = [AcceleratorUse("engine", queues, ServiceTime(()), slice_ms) for queues in (2, 1)]
    requests = [float(use.requests(service)[0]) for use, service in zip(uses, (np.array([own]), bench), strict=True)]
    assert_allclose(limits(_row(own, 1.5), _row(*requests), _row(9, 9)), _row(2 / 3 / own, 1 / 3 / 1.5))


def test_bench_formula_and_co_location_formula_agree() -> None:
    """One saturating competitor: the formula for sums and the one for co-locations agree."""
    time = time_next_to_bench(np.array([0.7]), 2, np.array([1.5]), np.array([np.nan]))
    assert_allclose(limits(_row(0.7, 1.5), _row(2, 1), _row(9, 9))[0, 0], 1 / time[0])


def test_service_time_is_linear_in_matches() -> None:
    """Equation 5 with a term for size: 0.1 + 0.001 * 600, and never negative."""
    traffic = np.array([[1.0, 1500.0, 600.0], [1.0, 1500.0, 0.0]])
    assert_allclose(ServiceTime((("constant", 0.1), ("mtbr", 0.001)))(traffic), [0.7, 0.1])
    assert_allclose(ServiceTime((("constant", -0.1), ("mtbr", 0.001)))(traffic), [0.5, 0.0])


SOLO = np.array([100.0])


@pytest.mark.parametrize(
    ("name", "drops", "expected"),
    [
        ("pipeline", [20.0, 50.0], 50.0),  # the larger drop
        ("run-to-completion", [20.0, 50.0], 1 / (1 / 80 + 1 / 50 - 1 / 100)),  # equation 7
        ("run-to-completion", [20.0], 80.0),  # one resource: no correction
        ("run-to-completion", [20.0, 0.0], 80.0),  # a resource without contention changes nothing
        ("sum", [20.0, 50.0], 30.0),
        ("sum", [60.0, 50.0], 0.0),  # never below nothing
        ("min", [20.0, 50.0], 50.0),
    ],
)
def test_compositions_by_hand(name: str, drops: list[float], expected: float) -> None:
    """Throughput of a solo throughput of 100 kpps."""
    assert_allclose(COMPOSITIONS[name](SOLO, np.array([drops])), [expected])


def test_pipeline_loses_only_what_is_above_the_limit() -> None:
    """A pipeline at 100 kpps: limits of 150 and 80 cost 0 and 20."""
    drops = drops_on_accelerators(PIPELINE, SOLO, np.array([[0.001, 0.002]]), np.array([[150.0, 80.0]]))
    assert_allclose(drops, [[0.0, 20.0]])


def test_run_to_completion_loses_by_waiting() -> None:
    """0.01 ms a packet, and 0.005 ms of waiting beyond the 0.005 ms of service: 1 / 0.015."""
    drops = drops_on_accelerators(RUN_TO_COMPLETION, SOLO, np.array([[0.005]]), np.array([[100.0]]))
    assert_allclose(SOLO - drops[:, 0], [1 / 0.015])


def test_run_to_completion_ignores_accelerators_it_does_not_use() -> None:
    """A limit of infinity stands for an accelerator that is not used."""
    assert_allclose(drops_on_accelerators(RUN_TO_COMPLETION, SOLO, np.zeros((1, 1)), np.full((1, 1), np.inf)), 0.0)
