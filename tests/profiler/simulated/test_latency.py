"""Latency of packets through the cores of a chain, checked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.simulated.server_testbed import CoreTime, follow, pass_packets, random_times


def passed(
    arrived: list[float], *, batch_us: float = 0.0, batch: int = 32, ring: int = 1024
) -> tuple[list[int], list[float]]:
    kept, left = pass_packets(np.array(arrived), np.ones(len(arrived)), batch_us, batch, ring)
    return kept.tolist(), left.tolist()


def test_packets_that_come_slowly_are_passed_one_by_one() -> None:
    """Each takes its own time of 1 us."""
    assert passed([0.0, 5.0, 10.0]) == ([0, 1, 2], [1.0, 6.0, 11.0])


def test_packets_that_wait_are_taken_as_a_batch() -> None:
    """Two arrive while the first is served, and leave together after 2 us; each batch costs half a us more."""
    assert passed([0.0, 0.5, 0.9], batch_us=0.5) == ([0, 1, 2], [1.5, 4.0, 4.0])


def test_a_batch_has_a_largest_size() -> None:
    """Of three that wait, two are taken first."""
    assert passed([0.0, 0.5, 0.6, 0.7], batch=2) == ([0, 1, 2, 3], [1.0, 3.0, 3.0, 4.0])


def test_a_packet_that_finds_the_ring_full_is_lost() -> None:
    """Of three that come while the first is served, a ring of two holds two."""
    assert passed([0.0, 0.5, 0.6, 0.7, 9.0], ring=2) == ([0, 1, 2, 4], [1.0, 3.0, 3.0, 10.0])


def test_latency_of_rare_packets_is_the_time_of_all_cores() -> None:
    """Two cores of 2 and 3 us, and half a us per batch on the first; nobody waits."""
    cores = [CoreTime(2.0, 0.0, 0.5), CoreTime(3.0, 0.0, 0.0)]
    rng = np.random.default_rng(0)
    latency = follow(cores, random_times(1e-6, 1000, rng), 32, 1024, rng).latency
    assert (latency.mean, latency.p50, latency.p99) == pytest.approx((5.5, 5.5, 5.5))


def test_one_core_at_half_load_waits_as_a_queue_with_constant_service() -> None:
    """M/D/1 at half load: half a service time of waiting in the mean (Pollaczek and Khinchine); one packet a batch."""
    rng = np.random.default_rng(0)
    latency = follow([CoreTime(1.0, 0.0, 0.0)], random_times(0.5, 60_000, rng), 1, 10**6, rng).latency
    assert latency.mean == pytest.approx(1.5, rel=0.03)
    assert latency.p50 < latency.mean < latency.p99 < latency.max


def test_the_share_that_is_not_lost_is_counted() -> None:
    """Four packets at once meet a ring of two."""
    found = follow([CoreTime(1.0, 0.0, 0.0)], np.zeros(4), 32, 2, np.random.default_rng(0))
    assert (found.kept, found.latency.max) == (0.5, 2.0)
