"""A predictor that was put right by runs: where a co-location was measured, the measurement counts.

Prediction and measurement are two estimates of the logarithm of a throughput. The prediction has the standard
deviation s that the predictor states, the mean of k runs has n / sqrt(k), n being the noise of a run. Both are weighed
by their precision: with v = 1 / (1 / s^2 + k / n^2), the estimate is v (prediction / s^2 + measured k / n^2), and its
variance v. A drop is relative to solo throughput, so the variance of that is added.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from placer.measuring.card_runs import CardRuns
from predictor import Prediction, Predictor
from profiles import CoLocation, Workload

if TYPE_CHECKING:
    import pandas as pd

    from predictor.contention.nf_model import NfModel
    from predictor.registry import Warn
    from profiles.profile import Profile

ONE_DEVIATION = float(ndtr(-1.0))
"""The risk whose prediction is one standard deviation below the median."""
LEAST_DEVIATION = 0.005
"""Least relative standard deviation of a prediction: predictors state none for a workload that is alone."""
UNUSABLE = 1e-6
"""What remains of the throughput in a co-location that must not be used: it keeps no SLA."""

Array = NDArray[np.float64]


class MeasuredPredictor(Predictor):
    """Estimates from the measurements so far; where nothing was measured, what the predictor expects.

    A co-location that does not run on the testbed keeps no SLA.

    Parameters
    ----------
    predicted
        The predictor.
    runs
        What was measured. Make another predictor after further runs.
    """

    def __init__(self, predicted: Predictor, runs: CardRuns) -> None:
        self.predicted = predicted
        self.runs = runs
        self._noise = runs.noise
        self._estimates: dict[CoLocation, dict[Workload, tuple[float, float]]] = {}

    @property
    def least_risk(self) -> float:
        return self.predicted.least_risk

    def solo(self, workloads: Sequence[Workload]) -> Array:
        return np.array([kpps[0] for kpps in self.throughput([[one] for one in workloads])])

    def throughput(self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None) -> list[Array]:
        answers = self.predicted.throughput(co_locations, risk=risk)
        below = 0.0 if risk is None else float(ndtri(risk))
        for at, estimates in self._measured(co_locations).items():
            margin = below if len(estimates) > 1 else 0.0  # as predictors do where a workload is alone
            answers[at] = np.array([math.exp(mean + margin * deviation) for mean, deviation in estimates])
        for at in self._refused(co_locations):
            answers[at] = answers[at] * UNUSABLE
        return answers

    def shortfall(
        self, co_locations: Sequence[Sequence[Workload]], required_kpps: Sequence[Sequence[float]]
    ) -> list[Array]:
        answers = self.predicted.shortfall(co_locations, required_kpps)
        for at, estimates in self._measured(co_locations).items():
            mean, deviation = np.array(estimates).T
            required = np.log(np.maximum(required_kpps[at], 1e-9))
            alone = len(estimates) == 1
            answers[at] = (mean < required).astype(float) if alone else ndtr((required - mean) / deviation)
        for at in self._refused(co_locations):
            answers[at] = np.ones(len(co_locations[at]))
        return answers

    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        answers = self.predicted.predict(co_locations, coverage=coverage)
        width = float(ndtri(0.5 + coverage / 2))
        for at, estimates in self._measured(co_locations).items():
            answers[at] = [
                replace(
                    one,
                    throughput_kpps=math.exp(mean),
                    low_kpps=math.exp(mean - width * deviation),
                    high_kpps=math.exp(mean + width * deviation),
                    calibrated=True,
                )
                for one, (mean, deviation) in zip(answers[at], estimates, strict=True)
            ]
        return answers

    def predict_contention(self, nf: str, table: pd.DataFrame) -> Array:
        return self.predicted.predict_contention(nf, table)

    def _refused(self, co_locations: Sequence[Sequence[Workload]]) -> list[int]:
        """The places of co-locations that do not run; an NF alone is predicted even so."""
        refused = self.runs.refused
        return [at for at, one in enumerate(co_locations) if len(one) > 1 and tuple(sorted(one)) in refused]

    def _measured(self, co_locations: Sequence[Sequence[Workload]]) -> dict[int, list[tuple[float, float]]]:
        """By place, of each measured co-location: per workload the logarithm of its throughput, and its deviation."""
        keys = [tuple(sorted(one)) for one in co_locations]
        places = [at for at, key in enumerate(keys) if key in self.runs]
        self._estimate(sorted({keys[at] for at in places} - self._estimates.keys()))
        return {at: [self._estimates[keys[at]][one] for one in co_locations[at]] for at in places}

    def _estimate(self, missing: Sequence[CoLocation]) -> None:
        """Weigh measurement and prediction; the solo throughputs first, because the others rest on them."""
        if not missing:
            return
        median = self.predicted.throughput(missing)
        lower = self.predicted.throughput(missing, risk=ONE_DEVIATION)
        alone = {(one,) for key in missing if len(key) > 1 for one in key}
        self._estimate(sorted(key for key in alone if key in self.runs and key not in self._estimates))
        for key, kpps, low in zip(missing, median, lower, strict=True):
            measured, per_run = self.runs.mean_log(key), self._noise**2 / self.runs.runs(key)
            found = {}
            for workload, expected, below in zip(key, kpps.tolist(), low.tolist(), strict=True):
                spread = max(math.log(expected / max(below, 1e-9)), LEAST_DEVIATION) ** 2
                variance = 1.0 / (1.0 / spread + 1.0 / per_run)
                mean = variance * (math.log(expected) / spread + measured[workload] / per_run)
                found[workload] = mean, math.sqrt(variance + (self._solo_variance(workload) if len(key) > 1 else 0.0))
            self._estimates[key] = found

    def _solo_variance(self, workload: Workload) -> float:
        alone = self._estimates.get((workload,))
        return LEAST_DEVIATION**2 if alone is None else alone[workload][1] ** 2

    @classmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        raise TypeError("a predictor with the runs of one plan is not trained from a profile")

    def save(self, folder: Path) -> None:
        raise TypeError("a predictor with the runs of one plan is not saved")

    @classmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        raise TypeError("a predictor with the runs of one plan is not saved")
