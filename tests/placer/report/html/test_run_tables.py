"""The numbers behind the charts, held to the run that they are of."""

from __future__ import annotations

import pytest

from placer.report.html import run_tables as figures
from placer.run import Comparison


def test_the_curve_over_time_peaks_at_the_nics_that_are_reported(comparison: Comparison) -> None:
    """The most NICs of every curve are those of the strategy's row."""
    peaks = figures.nics_over_time(comparison).groupby("strategy")["nics"].max()
    assert {figures.name_of(one): one.nics for one in comparison.evaluations} == peaks.to_dict()


def test_a_curve_of_many_moments_keeps_its_peak(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thinned to ten points, every curve still has its peak."""
    monkeypatch.setattr(figures, "STEPS", 10)
    curves = figures.nics_over_time(comparison)
    assert curves.groupby("strategy").size().max() <= 11
    assert curves.groupby("strategy")["nics"].max().to_dict() == {
        figures.name_of(one): one.nics for one in comparison.evaluations
    }


def test_companies_add_up_to_the_nics_in_use(comparison: Comparison) -> None:
    """The NICs of all companies together are the peak, and no company takes more cores than there are."""
    for one in comparison.evaluations:
        assert figures.co_locations(one.plan)["NICs"].sum() == one.nics
    assert figures.occupancy(comparison).groupby("strategy")["cores"].sum().max() <= 8


def test_every_broken_sla_is_listed(comparison: Comparison) -> None:
    """A row per violated instance, each short of what its SLA asks."""
    for one in comparison.evaluations:
        if one.violated:
            table = figures.broken(one)
            assert len(table) == one.violated
            assert (table["true, kpps"] < table["SLA asks, kpps"]).all()


def test_every_prediction_is_counted_once(comparison: Comparison) -> None:
    """Instances of equal prediction and truth are one point, and all points together are all instances."""
    counted = figures.predicted_and_true(comparison).groupby("strategy")["instances"].sum()
    assert counted.to_dict() == {"contention-aware, tomur": 80, "contention-aware, slomo": 80}
