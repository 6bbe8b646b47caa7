"""Curves of latency against utilisation in a MODELS folder."""

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest

from placer.inputs.solo_fits import read_latency_curves
from profiles import InputError, TrafficProfile, Workload


def fit(**changed: object) -> dict[str, Any]:
    """A fitted line: 10 us at 0.1, 100 us at 1."""
    segment = {"from": 0.1, "to": 1.0, "family": "linear", "parameters": [0.0, 100.0], "formula": "", "points": 9}
    model = {"fit": 1, "x": "utilisation", "y": "p99_us", "points": 9, "from": 0.1, "to": 1.0}
    errors = {"smape_pct": 0.1, "left_out_smape_pct": 0.1, "noise_pct": 0.1, "seconds": 0.1}
    return {**model, "segments": [{**segment, "smape_pct": 0.1}], "breakpoints": [], **errors, **changed}


def promised(latency_us: float) -> Workload:
    """NAT at 100 kpps."""
    return Workload("NAT", TrafficProfile(1000, 64), 100.0, latency_us=latency_us)


def models(folder: Path, fitted: dict[str, Any], nf: str = "NAT") -> Path:
    """A MODELS folder with that curve."""
    (folder / "latency").mkdir()
    (folder / "latency" / f"{nf}.json").write_text(json.dumps(fitted), encoding="utf-8")
    return folder


def test_a_curve_is_read_both_ways(tmp_path: Path) -> None:
    """60 us are kept up to 60 % of utilisation; below what was measured its first value counts, and beyond none."""
    found = read_latency_curves(models(tmp_path, fit()), ("ACL", "NAT"))
    curve = found["NAT"]
    assert list(found) == ["NAT"] and curve.least_kpps(promised(60.0)) == pytest.approx(100 / 0.6, rel=5e-3)
    assert curve.latency_us(promised(60.0), 100 / 0.6) == pytest.approx(60.0, abs=0.2)
    assert curve.latency_us(promised(60.0), 1e9) == pytest.approx(10.0)
    assert curve.latency_us(promised(60.0), 99.0) == inf and curve.least_kpps(promised(9.0)) == inf
    assert curve.latency_us(promised(33.3), curve.least_kpps(promised(33.3))) <= 33.3
    assert curve.least_kpps(promised(33.3), risk=0.01) == curve.least_kpps(promised(33.3))


def test_what_training_wrote_is_no_fitted_curve(tmp_path: Path) -> None:
    """The models have it."""
    folder = models(tmp_path, fit())
    (folder / "latency" / "ACL.json").write_text('{"latency": 1}', encoding="utf-8")
    assert list(read_latency_curves(folder, ("ACL", "NAT"))) == ["NAT"]


def test_without_a_folder_there_are_no_curves(tmp_path: Path) -> None:
    assert read_latency_curves(tmp_path, ("NAT",)) == {}


@pytest.mark.parametrize(
    ("changed", "nf", "fault"),
    [
        ({"x": "flows"}, "NAT", "x: is p99_us over flows"),
        ({"y": "mean_us"}, "NAT", "x: is mean_us over utilisation"),
        ({}, "NTA", "'NTA' is not an NF of these models"),
        ({"fit": 7}, "NAT", "fit: is 7, not 1"),
    ],
)
def test_other_fits_are_refused(tmp_path: Path, changed: dict[str, object], nf: str, fault: str) -> None:
    """The fault names the file."""
    folder = models(tmp_path, fit(**changed), nf)
    with pytest.raises(InputError) as refused:
        read_latency_curves(folder, ("ACL", "NAT"))
    assert f"latency/{nf}.json: {fault}" in str(refused.value)
