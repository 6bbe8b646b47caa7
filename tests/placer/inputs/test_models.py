"""Where models come from, `--solo-fit`, and curves of latency: what is read, and what does not match the profile."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from placer.inputs import models
from placer.inputs.solo_fits import read_latency_curves, read_solo_fits
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.model_file import models_text
from predictor.training.solo_fits import OWN_RUNS
from profiles import InputError, TrafficProfile, Workload
from profiles.profile import Profile
from tests.predictor.fitting.made_up_models import made_up
from tests.predictor.made_up import CRYPTO, PLAIN, profile


def test_recorded_models_are_trained_once_whoever_asks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two that find none train them one after the other, and the second finds those of the first."""
    trained: list[object] = []

    class Trained:
        """Models that take a while to train."""

        def save(self, folder: Path) -> None:
            folder.mkdir()

    def train(profile: object) -> Trained:
        trained.append(profile)
        time.sleep(0.2)
        return Trained()

    def load(folder: Path) -> Path:
        if not folder.exists():
            raise InputError.of(str(folder), "is missing")
        return folder

    monkeypatch.setattr(models, "train", train)
    monkeypatch.setattr(models, "load_models", load)
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    with ThreadPoolExecutor(3) as three:
        loaded = list(three.map(lambda _: models.open_models(None, lambda message: None), range(3)))
    assert len(trained) == 1 and len(loaded) == 3


CURVE = made_up((1.0, 50000.0), ("constant", (900.0,)), x="flows", y="throughput_kpps")
FAR_AWAY = made_up((1e6, 2e6), ("constant", (900.0,)), x="flows", y="throughput_kpps")
BELOW_ZERO = made_up((1.0, 50000.0), ("linear", (900.0, -1.0)), x="flows", y="throughput_kpps")
OTHER = replace(CURVE, setting={"packet_size": 64.0})
AT_DEFAULT = replace(CURVE, setting={"packet_size": 1500.0})


@pytest.fixture(scope="module")
def measured() -> Profile:
    """One NF without accelerators and one with."""
    return profile([PLAIN, CRYPTO])


def written(folder: Path, *models: FittedModel) -> str:
    """The file of these models."""
    path = folder / "model.json"
    path.write_text(models_text(models))
    return str(path)


def test_a_model_is_read(measured: Profile, tmp_path: Path) -> None:
    """By NF; of a table of fits, the one at default traffic."""
    assert read_solo_fits([f"plain={written(tmp_path, CURVE)}"], measured) == {"plain": CURVE}
    assert read_solo_fits([f"plain={written(tmp_path, OTHER, AT_DEFAULT)}"], measured) == {"plain": AT_DEFAULT}


def test_an_nf_without_a_file_is_fitted_to_its_own_runs(measured: Profile) -> None:
    assert read_solo_fits(["plain"], measured) == {"plain": OWN_RUNS}


@pytest.mark.parametrize(
    ("options", "curve", "message"),
    [
        # before any file is read
        (["plain="], CURVE, "'plain=' is neither NF=MODEL.json nor NF"),
        (["=model.json"], CURVE, "'=model.json' is neither NF=MODEL.json nor NF"),
        (["Plain=model.json"], CURVE, "'Plain' is not profiled (did you mean plain?)"),
        (["plain=a.json", "plain=b.json"], CURVE, "plain is given twice"),
        # with the file and the key
        (["plain=FILE"], replace(CURVE, x="entries"), "x: is 'entries', not one of flows, packet_size, mtbr"),
        (["plain=FILE"], replace(CURVE, y="cycles"), "y: is 'cycles', not throughput_kpps"),
        (["plain=FILE"], OTHER, "setting: has no model at default traffic (packet_size 1500, mtbr 600)"),
        (["plain=FILE"], FAR_AWAY, "flows from 1e+06 to 2e+06 does not overlap what the profile has of plain"),
        (["plain=FILE"], BELOW_ZERO, "y: is not above 0 everywhere from 1 to 50000"),
        # their effect is the accelerator's, which has its own model
        (["crypto-pipeline=FILE"], replace(CURVE, x="mtbr"), "uses crypto, whose model has the effect of matches"),
    ],
    ids=["no file", "no NF", "case", "twice", "x", "y", "setting", "range", "below zero", "matches"],
)
def test_what_does_not_match_the_profile_is_refused(
    measured: Profile, tmp_path: Path, options: list[str], curve: FittedModel, message: str
) -> None:
    file = written(tmp_path, curve)
    with pytest.raises(InputError) as raised:
        read_solo_fits([option.replace("FILE", file) for option in options], measured)
    assert message in str(raised.value)


def fit(**changed: object) -> dict[str, Any]:
    """A fitted line: 10 us at 0.1, 100 us at 1."""
    segment = {"from": 0.1, "to": 1.0, "family": "linear", "parameters": [0.0, 100.0], "formula": "", "points": 9}
    model = {"fit": 1, "x": "utilisation", "y": "p99_us", "points": 9, "from": 0.1, "to": 1.0}
    errors = {"smape_pct": 0.1, "left_out_smape_pct": 0.1, "noise_pct": 0.1, "seconds": 0.1}
    return {**model, "segments": [{**segment, "smape_pct": 0.1}], "breakpoints": [], **errors, **changed}


def promised(latency_us: float) -> Workload:
    """NAT at 100 kpps."""
    return Workload("NAT", TrafficProfile(1000, 64), 100.0, latency_us=latency_us)


def model_folder(folder: Path, fitted: dict[str, Any], nf: str = "NAT") -> Path:
    """A MODELS folder with that curve."""
    (folder / "latency").mkdir()
    (folder / "latency" / f"{nf}.json").write_text(json.dumps(fitted), encoding="utf-8")
    return folder


def test_a_curve_is_read_both_ways(tmp_path: Path) -> None:
    """60 us are kept up to 60 % of utilisation; below what was measured its first value counts, and beyond none."""
    found = read_latency_curves(model_folder(tmp_path, fit()), ("ACL", "NAT"))
    curve = found["NAT"]
    assert list(found) == ["NAT"] and curve.least_kpps(promised(60.0)) == pytest.approx(100 / 0.6, rel=5e-3)
    assert curve.latency_us(promised(60.0), 100 / 0.6) == pytest.approx(60.0, abs=0.2)
    assert curve.latency_us(promised(60.0), 1e9) == pytest.approx(10.0)
    assert curve.latency_us(promised(60.0), 99.0) == inf and curve.least_kpps(promised(9.0)) == inf
    assert curve.latency_us(promised(33.3), curve.least_kpps(promised(33.3))) <= 33.3
    assert curve.least_kpps(promised(33.3), risk=0.01) == curve.least_kpps(promised(33.3))


def test_what_training_wrote_is_no_fitted_curve(tmp_path: Path) -> None:
    """The models have it."""
    folder = model_folder(tmp_path, fit())
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
    folder = model_folder(tmp_path, fit(**changed), nf)
    with pytest.raises(InputError) as refused:
        read_latency_curves(folder, ("ACL", "NAT"))
    assert f"latency/{nf}.json: {fault}" in str(refused.value)
