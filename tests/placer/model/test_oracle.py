"""Oracles remember what they were asked, within bounds."""

from __future__ import annotations

import pytest

from placer.model import oracle
from placer.model.oracle import co_location_of
from profiles import Workload
from placer.testing.toy import TRAFFIC, ToyOracle

A, B, C, D = (co_location_of([Workload(nf, TRAFFIC)]) for nf in "abcd")


def test_a_company_is_asked_about_once() -> None:
    """Whether it comes twice in one question or in two."""
    asked = ToyOracle()
    assert asked.throughput([A, B, A]) == [(100.0,), (200.0,), (100.0,)]
    assert asked.throughput([B, C]) == [(200.0,), (400.0,)]
    assert asked.queries == 3


def test_only_answers_of_late_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """With generations of two, asking for a third forgets nothing yet, and what was asked again outlives the others."""
    monkeypatch.setattr(oracle, "GENERATION", 2)
    asked = ToyOracle()
    for co_location in (A, B, C, A, D):
        asked.throughput([co_location])
    assert asked.queries == 4
    asked.throughput([A])
    assert asked.queries == 4
    asked.throughput([B])
    assert asked.queries == 5
