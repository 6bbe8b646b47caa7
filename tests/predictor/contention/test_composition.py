"""Drops on single resources, composed: equation 7 by hand, and the strawmen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from predictor.contention.execution import COMPOSITIONS, PIPELINE, RUN_TO_COMPLETION, drops_on_accelerators

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
