"""Corrections by measured co-locations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from predictor import Models, load_models, train
from predictor.contention.calibration import _shrink
from profiles import Workload
from profiles.profile import Profile, rate_column, service_column
from tests.predictor.made_up import CRYPTO, DEFAULT, counters, profile


@pytest.fixture(scope="module")
def made() -> Profile:
    """One NF, without co-runs."""
    return profile([CRYPTO])


@pytest.fixture(scope="module")
def plain(made: Profile) -> Models:
    """Trained on that."""
    return train(made, ["tomur"])


@pytest.fixture(scope="module")
def corrected(made: Profile, plain: Models) -> Models:
    """Trained with twelve co-runs in which the NF is 8 % slower."""
    return train(_with_co_runs(made, plain, 0.92, 12), ["tomur"])


def _with_co_runs(made: Profile, plain: Models, factor: float, count: int, seed: int = 0) -> Profile:
    """Co-runs in which the NF is slower than modelled by `factor`, on average, with 1 % noise."""
    rng = np.random.default_rng(seed)
    service = rng.uniform(1, 4, size=count) * CRYPTO.engines["crypto"].service_ms(DEFAULT)
    table = pd.DataFrame({**DEFAULT.as_dict(), **counters(5e7, 5.0), service_column("crypto"): service})
    table[rate_column("crypto")] = np.nan
    modelled = plain.predictors["tomur"].predict_contention(CRYPTO.name, table)
    table["throughput_kpps"] = modelled * factor * (1 + 0.01 * rng.standard_normal(count))
    return replace(made, nfs={CRYPTO.name: replace(made.nfs[CRYPTO.name], co_runs=table)})


def test_co_runs_correct_the_prediction_near_them(plain: Models, corrected: Models) -> None:
    """A bench that is 8 % heavier than its profile states: corrected and marked near the co-runs, not far away."""
    co_location = [Workload(CRYPTO.name, DEFAULT)] * 2
    before, after = (one.predictors["tomur"].predict([co_location])[0][0] for one in (plain, corrected))
    assert (before.calibrated, after.calibrated) == (False, True)
    assert after.throughput_kpps == pytest.approx(0.92 * before.throughput_kpps, rel=0.015)
    far = [Workload(CRYPTO.name, replace(DEFAULT, flows=1.0, packet_size=64.0, mtbr=0.0))] * 2
    before, after = (one.predictors["tomur"].predict([far])[0][0] for one in (plain, corrected))
    assert not after.calibrated
    assert after.throughput_kpps == pytest.approx(before.throughput_kpps, rel=0.02)


def test_co_runs_with_noise_alone_change_nothing(made: Profile, plain: Models) -> None:
    """Errors that are only noise are not learnt."""
    assert train(_with_co_runs(made, plain, 1.0, 12), ["tomur"]).models[CRYPTO.name].calibration is None


def test_correction_survives_saving(corrected: Models, tmp_path: Path) -> None:
    """A loaded model corrects as the saved one."""
    corrected.save(tmp_path / "models")
    co_location = [[Workload(CRYPTO.name, DEFAULT)] * 2]
    loaded = load_models(tmp_path / "models")
    assert loaded.predictors["tomur"].predict(co_location) == corrected.predictors["tomur"].predict(co_location)


def test_correction_is_applied_as_far_as_it_surely_helps() -> None:
    """Gains on all rows: nearly in full; on one row of eight, or none on average: not at all."""
    assert _shrink(np.full(8, 0.1)) == 1.0
    assert 0.5 < _shrink(np.array([0.1, 0.05, 0.15, 0.1, 0.02, 0.12, 0.08, 0.1])) < 1.0
    assert _shrink(np.array([1.0, 0, 0, 0, 0, 0, 0, 0])) == 0.0
    assert _shrink(np.array([0.1, -0.1, 0.1, -0.1, -0.05])) == 0.0
