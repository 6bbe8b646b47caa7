"""Queues of a GPU server, on cases that can be followed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predictor.gpu.batching import Bursts
from predictor.gpu.sharing import KernelShare, as_arrays
from predictor.gpu.tandem import (
    BATCH_DONE,
    BATCH_RETURNED,
    BATCH_TAKEN,
    KERNEL_BEGIN,
    KERNEL_END,
    ON_BUS,
    BatchDemand,
    sample,
    serve,
)

MANY = 1_000_000
EVEN = Bursts(1.0, 0.0)


def _serve(
    ready: list[list[float]], shares: list[KernelShare], *, orders: list[float], window: int = MANY, bus: float = 10.0
) -> np.ndarray:  # type: ignore[type-arg]
    """What becomes of these batches; worker, return and post take nothing, kernels their time."""
    counts = [len(one) for one in ready]
    first = np.cumsum([0, *counts])
    taken = np.array([[0.0], [bus], [1.0], [0.0], [0.0]]) * np.ones((5, first[-1]))
    at = np.zeros((8, first[-1]))
    flat = np.concatenate([np.array(one) for one in ready])
    serve(first, np.array(orders), window, flat, taken, np.zeros(len(ready)), *as_arrays(shares), at)
    return at


def test_a_bus_is_never_interrupted_and_then_serves_by_order() -> None:
    """NF 1 has the bus at 0; of NF 2 at 1 and NF 0 at 2, NF 0 is next."""
    alone = KernelShare((1.0,))
    at = _serve([[2.0], [0.0], [1.0]], [alone] * 3, orders=[0, 1, 2])
    assert at[ON_BUS].tolist() == [10.0, 0.0, 20.0]


def test_batches_of_equal_order_are_served_as_they_come() -> None:
    alone = KernelShare((1.0,))
    at = _serve([[2.0], [0.0], [1.0]], [alone] * 3, orders=[0, 0, 0])
    assert at[ON_BUS].tolist() == [20.0, 0.0, 10.0]


def test_a_kernel_waits_for_the_one_before() -> None:
    """The second batch is on the card at 20, the first kernel ends at 40."""
    at = _serve([[0.0, 1.0]], [KernelShare((30.0,))], orders=[0])
    assert at[KERNEL_BEGIN].tolist() == [10.0, 40.0] and at[KERNEL_END].tolist() == [40.0, 70.0]


def test_a_worker_takes_no_more_batches_than_its_window() -> None:
    at = _serve([[0.0, 1.0, 2.0]], [KernelShare((30.0,))], orders=[0], window=1)
    assert at[BATCH_TAKEN].tolist() == [0.0, 40.0, 80.0] and at[BATCH_DONE].tolist() == [40.0, 80.0, 120.0]


def test_a_kernel_is_slowed_only_while_its_sharer_runs() -> None:
    """NF 0 runs from 10; NF 1 from 20 to 30, and halves its speed: 20 us of work end at 35."""
    slowed = KernelShare((20.0,), ({1: 1.0},))
    at = _serve([[0.0], [10.0]], [slowed, KernelShare((10.0,))], orders=[0, 1])
    assert at[KERNEL_END].tolist() == [pytest.approx(35.0), pytest.approx(30.0)]


def test_the_longest_minibatch_ends_the_kernel() -> None:
    at = _serve([[0.0]], [KernelShare((20.0, 35.0, 5.0))], orders=[0])
    assert at[BATCH_RETURNED].tolist() == [45.0]


def _demand(**changes: object) -> BatchDemand:
    base = BatchDemand(101, 1000.0, EVEN, 0.0, 8.0, 10.0, 5.0, KernelShare((30.0,)))
    return replace(base, **changes)  # type: ignore[arg-type]


def test_latency_alone_is_the_sum_of_the_stages() -> None:
    """50 us for half a batch at random, and 53 for the rest."""
    (one,) = sample([_demand()], window=MANY)
    assert one.stages[0] == pytest.approx(50, rel=0.02)
    assert one.stages[1:] == pytest.approx((8, 0, 10, 0, 30, 5), abs=0.2)
    assert one.mean == pytest.approx(sum(one.stages))
    assert one.mean < one.p99 < 53 + 101 * 1.4


def test_the_first_in_order_waits_for_half_a_transfer_of_the_other() -> None:
    """One batch has the bus for a fifth of the time, 20 us; who meets it waits for half of that: 2 us."""
    first, other = _demand(order=0.0), _demand(order=1.0, transfer=20.0, rate_kpps=1010.0)
    waits = [one.stages[2] for one in sample([first, other], window=MANY)]
    assert waits[0] == pytest.approx(2.0, rel=0.25)
    assert waits[1] == pytest.approx(0.5, rel=0.35)


def test_the_same_co_location_has_the_same_latency() -> None:
    pair = [_demand(), _demand(order=1.0)]
    assert sample(pair, window=4) == sample(pair, window=4)


def test_more_bursts_mean_a_longer_tail_and_no_longer_wait() -> None:
    (even,), (bursty,) = sample([_demand()], window=MANY), sample([_demand(bursts=Bursts(20.0))], window=MANY)
    assert bursty.p99 > 1.2 * even.p99
    assert bursty.stages[0] == pytest.approx(even.stages[0], rel=0.1)
