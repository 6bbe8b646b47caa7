"""The parts of the simulated card, checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.simulated.card import BLUEFIELD_2
from profiler.simulated.demand import hits, pressure_step, private_hits
from profiler.simulated.solve import turns_step, waiting_step


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)[:, np.newaxis]


def test_one_structure_larger_than_the_cache_hits_by_its_share() -> None:
    """Of a table of 400 lines in a cache of 100, a quarter of the accesses hit."""
    assert private_hits([400], [3], 100) == pytest.approx([0.25])


def test_structures_that_fit_always_hit() -> None:
    """Nothing misses when everything fits."""
    assert private_hits([60, 40], [3, 1], 100) == [1.0, 1.0]


def test_a_structure_touched_more_often_holds_more() -> None:
    """Two equal tables share the cache by access rate, and together fill it."""
    often, seldom = private_hits([100, 100], [4, 1], 100)
    assert often > 0.5 > seldom
    assert 100 * often + 100 * seldom == pytest.approx(100)


def test_steps_of_the_shared_cache_reach_the_same_answer() -> None:
    """The vectorised steps converge to what the private cache computes for the same structures."""
    lines, rates, pressure = column(300, 700, 50), column(5, 2, 1), np.zeros(1)
    for _ in range(20):
        pressure = pressure_step(pressure, lines, rates, 400)
    assert hits(pressure, lines, rates)[:, 0] == pytest.approx(private_hits([300, 700, 50], [5, 2, 1], 400))


@pytest.mark.parametrize(
    ("offered", "served"),
    [
        # The others offer nothing, so all time is for the first.
        ((9, 0, 0), 1.0),
        # The second takes its 0.2 requests/us of 1 us each, the third its 0.1 of 2 us.
        ((9, 0.2, 0.1), 0.6),
        # All queues full: each is served once in 1 + 1 + 2 us.
        ((9, 9, 9), 0.25),
        # The second full, the third offers 0.1: 0.8 of the time is halved.
        ((9, 9, 0.1), 0.4),
    ],
)
def test_round_robin_serves_full_queues_equally_often(offered: tuple[float, ...], served: float) -> None:
    """A full queue gets the time that light ones leave, divided by turns and not by time."""
    turns = np.full((3, 1), 1e6)
    for _ in range(6):
        turns = turns_step(turns, column(*offered), np.ones((3, 1)), column(1, 1, 2))
    assert turns[0, 0] == pytest.approx(served)


def test_two_queues_get_two_turns() -> None:
    """A load with two full queues next to one with one full queue is served twice as often."""
    turns = np.full((2, 1), 1e6)
    for _ in range(4):
        turns = turns_step(turns, column(9, 9), column(2, 1), column(1, 1))
    assert turns[:, 0] == pytest.approx([1 / 3, 1 / 3])


def test_waiting_at_half_load_is_one_queue_time() -> None:
    """A channel at half its bandwidth makes accesses wait for 1 / (1 - 1/2) - 1 = 1 queue time."""
    waiting = np.zeros(1)
    for _ in range(30):
        waiting = waiting_step(BLUEFIELD_2, waiting, np.full(1, BLUEFIELD_2.dram_gbps / 2), np.zeros(1))
    assert waiting[0] == pytest.approx(BLUEFIELD_2.dram_queue_ns)


@pytest.mark.parametrize(("mtbr", "service_us"), [(330.2259, 1 / 1.1762088), (628.0342, 1 / 0.6738936)])
def test_regex_service_time_is_the_measured_one(mtbr: float, service_us: float) -> None:
    """At both match rates measured on a BlueField-2, 1518-byte packets take the published time."""
    assert BLUEFIELD_2.engines["regex"].service_us(1518, mtbr) == pytest.approx(service_us, rel=0.002)
