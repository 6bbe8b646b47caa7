"""The tables behind the charts agree with the run."""

from __future__ import annotations

import pytest

from placer.report.html import run
from placer.report.text.recommendation import plan_name
from placer.run import Comparison


def test_the_curve_over_time_peaks_at_the_nics_that_are_reported(comparison: Comparison) -> None:
    """The maximum of every curve is the number of NICs of the strategy."""
    peaks = run.nics_over_time(comparison).groupby("strategy")["nics"].max()
    assert {plan_name(one): one.nics for one in comparison.evaluations} == peaks.to_dict()


def test_a_curve_of_many_moments_keeps_its_peak(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """A curve reduced to ten points still has its peak."""
    monkeypatch.setattr(run, "MOST_CURVE_POINTS", 10)
    curves = run.nics_over_time(comparison)
    assert curves.groupby("strategy").size().max() <= 11
    assert curves.groupby("strategy")["nics"].max().to_dict() == {
        plan_name(one): one.nics for one in comparison.evaluations
    }


def test_co_locations_add_up_to_the_nics_in_use(comparison: Comparison) -> None:
    """The NICs of all co-locations are those of the peak, and the average NIC uses at most its cores."""
    for one in comparison.evaluations:
        assert run.co_locations(one.plan)["NICs"].sum() == one.nics
    assert run.occupancy(comparison).groupby("strategy")["cores"].sum().max() <= 8


def test_every_sla_violation_is_listed(comparison: Comparison) -> None:
    """A row per violation, each with less throughput than required."""
    for one in comparison.evaluations:
        if one.violated:
            table = run.violations(one)
            assert len(table) == one.violated
            assert (table["true, kpps"] < table["required, kpps"]).all()


def test_every_prediction_is_counted_once(comparison: Comparison) -> None:
    """Instances of equal prediction and truth are one point; all points together hold all instances."""
    counted = run.compare_with_truth(comparison).groupby("strategy")["instances"].sum()
    assert counted.to_dict() == {"contention-aware, tomur": 40, "contention-aware, slomo": 40, "planned, tomur": 40}
