"""Oracles cache their answers, within limits."""

import pytest

from placer.model import oracle
from placer.model.oracle import co_location_of
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle
from profiles import Workload

A, B, C, D = (co_location_of([Workload(nf, TOY_TRAFFIC)]) for nf in "abcd")


def test_a_co_location_is_queried_once() -> None:
    """Whether it occurs twice in one query or in two."""
    cached = ToyOracle()
    assert cached.throughput([A, B, A]) == [(100.0,), (200.0,), (100.0,)]
    assert cached.throughput([B, C]) == [(200.0,), (400.0,)] and cached.queries == 3


def test_only_recent_answers_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """With two answers per generation, a third drops none yet, and an answer used again outlives the others."""
    monkeypatch.setattr(oracle, "CACHED_ANSWERS", 2)
    cached = ToyOracle()
    for co_location in (A, B, C, A, D):
        cached.throughput([co_location])
    assert cached.queries == 4
    cached.throughput([A])
    assert cached.queries == 4
    cached.throughput([B])
    assert cached.queries == 5
