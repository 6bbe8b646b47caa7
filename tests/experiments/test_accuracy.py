"""The error metrics and the verdicts, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.methodology.accuracy import errors_pct, is_worse, score_table, scores
from experiments.methodology.workloads import UNPUBLISHED, Fact


def test_scores_by_hand() -> None:
    """Errors of 4, 8 and 12 %: 8 on average, a third within 5 %, two thirds within 10 %."""
    errors = errors_pct(np.array([96.0, 108.0, 112.0]), np.full(3, 100.0))
    assert scores(errors) == pytest.approx((8.0, 100 / 3, 200 / 3))


def test_worse_names_the_metrics() -> None:
    """MAPE above the published one and a share below it are worse; equal at the published decimal is not."""
    table = score_table(
        {("NAT", "tomur", "simulated"): np.array([4.0, 8.0, 12.0])}, {("NAT", "tomur"): (7.0, 33.3, 80.0)}
    )
    assert table["worse"].tolist() == ["MAPE, ±10 %"]


@pytest.mark.parametrize(
    ("ours", "published", "higher_is_better", "worse"),
    [
        (1.04, 1.0, False, False),  # the same at one decimal
        (1.06, 1.0, False, True),
        (99.0, 100.0, True, True),
        (5.0, float("nan"), False, False),  # nothing is published
    ],
)
def test_is_worse(ours: float, published: float, higher_is_better: bool, worse: bool) -> None:
    """Worse is told at the one decimal that is published, and only where something is."""
    assert is_worse(ours, published, higher_is_better=higher_is_better) == worse


@pytest.mark.parametrize(
    ("fact", "verdict"),
    [
        (Fact("an error", 5.0, 4.0, kind="error"), "worse"),
        (Fact("an error", 3.0, 4.0, kind="error"), ""),
        (Fact("an effect", 27.0, 30.0), ""),  # within a quarter
        (Fact("an effect", 20.0, 30.0), "differs"),
        (Fact("no effect", 1.5, 0.0), ""),  # within two points
        (Fact("no effect", 2.5, 0.0), "differs"),
        (Fact("drawn only", 5.0, UNPUBLISHED), ""),
    ],
)
def test_verdicts(fact: Fact, verdict: str) -> None:
    """An error may be smaller, an effect has to be the same."""
    assert fact.verdict == verdict
