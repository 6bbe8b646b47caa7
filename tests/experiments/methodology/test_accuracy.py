"""Error metrics and their verdicts, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.methodology.accuracy import errors_pct, is_worse, score_table, scores, with_means


def test_scores_are_the_mape_and_the_shares_within_5_and_10_percent() -> None:
    """Errors of 4, 8 and 12 %: MAPE 8 %, one in three within 5 %, two in three within 10 %."""
    errors = errors_pct(np.array([96.0, 108.0, 112.0]), np.full(3, 100.0))
    assert scores(errors) == pytest.approx((8.0, 100 / 3, 200 / 3))


def test_the_verdict_names_the_worse_metrics() -> None:
    """A MAPE above and a share below the published one are worse; the same at the published decimal is not."""
    table = score_table(
        {("NAT", "tomur", "simulated"): np.array([4.0, 8.0, 12.0])}, {("NAT", "tomur"): (7.0, 33.3, 80.0)}
    )
    assert table["verdict"].tolist() == ["worse: MAPE, ±10 %"]


def test_every_testbed_has_its_own_means() -> None:
    """Errors of 2 and 4 % on one card and 9 % on another: means of 3 and 9 %, each beside the published one."""
    errors = {
        ("NAT", "tomur", "one"): np.array([2.0]),
        ("ACL", "tomur", "one"): np.array([4.0]),
        ("NAT", "tomur", "two"): np.array([9.0]),
    }
    table = with_means(score_table(errors, {}), {"tomur": (3.7, 70.8, 95.9)})
    means = table[table["nf"] == "mean"].set_index("testbed")
    assert means["mape_pct"].to_dict() == pytest.approx({"one": 3.0, "two": 9.0})
    assert means["published_mape_pct"].tolist() == [3.7, 3.7]


@pytest.mark.parametrize(
    ("ours", "published", "higher_is_better", "worse"),
    [
        (1.04, 1.0, False, False),  # the same at one decimal
        (1.06, 1.0, False, True),
        (99.0, 100.0, True, True),
        (5.0, float("nan"), False, False),  # no published number
    ],
)
def test_worse_is_decided_at_the_published_decimal(
    ours: float, published: float, higher_is_better: bool, worse: bool
) -> None:
    """Numbers are compared at one decimal, and only where one is published."""
    assert is_worse(ours, published, higher_is_better=higher_is_better) == worse
