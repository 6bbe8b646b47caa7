"""The benchmark of feedback in production, on few arrivals: its rows hold what they are named after."""

from __future__ import annotations

import pytest

from benches.production import Play, drift_row, lie_rows, steady_row
from placer.inputs.production import SLA_PROMISED


@pytest.fixture(scope="module")
def play() -> Play:
    """Sixty arrivals at a given risk, by the recorded models."""
    return Play("simulated", None, 60, 0, [], risk=0.3)


@pytest.mark.long
def test_a_drifting_nf_is_compared_with_models_corrected_by_hand(play: Play) -> None:
    """NICs in percent of those by hand; every arrival is measured after."""
    row = drift_row(play, "drift", SLA_PROMISED, play.nfs[0])
    assert (row["testbed"], row["case"], row["nf"]) == ("simulated", "drift", play.nfs[0])
    assert isinstance(row["nics"], int) and isinstance(row["nics_by_hand"], int)
    assert row["more_nics_pct"] == pytest.approx(100 * (row["nics"] / row["nics_by_hand"] - 1), abs=0.01)
    assert row["measurements"] == 60


@pytest.mark.long
def test_without_drift_there_is_no_fleet_by_hand(play: Play) -> None:
    """Only feedback and none are compared."""
    row = steady_row(play)
    assert {"without_pct", "pct", "repeated"} <= set(row) and "nics_by_hand" not in row


@pytest.mark.long
def test_every_lie_is_compared_with_honest_readings() -> None:
    """Of the same fleet."""
    few = Play("simulated", None, 20, 0, [], risk=0.3)
    rows = list(lie_rows(few))
    assert [row["case"] for row in rows] == ["outliers", "unsaturated", "liar, half", "liar, more", "all"]
    assert len({row["honest_pct"] for row in rows}) == len({row["nics_honest"] for row in rows}) == 1
