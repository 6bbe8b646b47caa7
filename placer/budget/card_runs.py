"""What was measured on one card: every run of every co-location, and how far runs of the same co-location differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import ndtr, ndtri

from predictor import Prediction, Predictor
from predictor.training.recorded import noise_of_a_run
from profiler.runs.outliers import WorkingRuns
from profiler.testbed import Run, Testbed, TestbedWrapper, refuse_invalid
from profiles import CoLocation, Load, Workload
from profiles.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd

    from predictor.contention.nf_model import NfModel
    from predictor.registry import Warn
    from profiles.profile import Profile


class CardRuns:
    """Runs on a testbed, with noise as a user has it. `testbed`: runs the co-locations. `seed`: of the noise of a
    simulated testbed; repeats of a co-location differ. `say`: called with a line about co-locations that do not run."""

    def __init__(self, testbed: Testbed, seed: int, say: Callable[[str], None] = lambda message: None) -> None:
        self._testbed = _Checked(testbed)
        self._working: WorkingRuns | None = None
        self._seed = seed
        self._say = say
        self.refused: set[CoLocation] = set()
        """Co-locations that the testbed refuses, or that fail there at every attempt."""
        self._logs: defaultdict[CoLocation, list[dict[Workload, float]]] = defaultdict(list)

    def __contains__(self, co_location: CoLocation) -> bool:
        return co_location in self._logs

    def runs(self, co_location: CoLocation) -> int:
        """How often the co-location was run."""
        return len(self._logs[co_location]) if co_location in self._logs else 0

    @property
    def co_locations(self) -> Set[CoLocation]:
        """What was run."""
        return self._logs.keys()

    @property
    def total(self) -> int:
        """All runs."""
        return sum(map(len, self._logs.values()))

    def measure(self, co_locations: Sequence[CoLocation]) -> None:
        """Run each co-location once; a co-location is sorted and named once. What does not run is left out. Raises
        `TestbedError` when the testbed itself fails, rather than a co-location on it."""
        by_repeat: defaultdict[int, list[CoLocation]] = defaultdict(list)
        for co_location in co_locations:
            by_repeat[self.runs(co_location)].append(co_location)
        for repeat, group in sorted(by_repeat.items()):
            self._working = self._working or WorkingRuns(self._testbed, group[0][0], lambda runs: None)
            seed = int(np.random.SeedSequence([self._seed, repeat]).generate_state(1)[0])
            # several at a time only where the testbed gains by it: a batch with a failure is run again in parts
            batches = [group] if self._testbed.batches else [[co_location] for co_location in group]
            answered = {co_location: run for batch in batches for co_location, run in self._working.run(batch, seed)}
            for co_location, run in answered.items():
                self._keep(co_location, [measurement.throughput_kpps for measurement in run.measurements])
            self._leave_out([co_location for co_location in group if co_location not in answered])

    def _leave_out(self, failed: Sequence[CoLocation]) -> None:
        for co_location in failed:
            self.refused.add(co_location)
            self._say(f"{', '.join(workload.nf for workload in co_location)}: do not run on the testbed; left out")

    def _keep(self, co_location: CoLocation, kpps: Sequence[float]) -> None:
        """Keep the logarithms; of equal workloads their mean, because the slowest of them would be so by noise."""
        logs: defaultdict[Workload, list[float]] = defaultdict(list)
        for workload, value in zip(co_location, kpps, strict=True):
            logs[workload].append(math.log(value))
        self._logs[co_location].append({one: math.fsum(values) / len(values) for one, values in logs.items()})

    def mean_log(self, co_location: CoLocation) -> dict[Workload, float]:
        """Per workload the mean logarithm of its throughput (kpps)."""
        runs = self._logs[co_location]
        return {workload: math.fsum(run[workload] for run in runs) / len(runs) for workload in runs[0]}

    @property
    def noise(self) -> float:
        """Relative standard deviation of a run, by all repeats."""
        return noise_of_a_run(np.array([list(run.values()) for run in runs]) for runs in self._logs.values())


class _Checked(TestbedWrapper):
    """Fails where what a testbed reports cannot be a measurement."""

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        runs = self._inner.run_many(co_locations, noise=noise, seed=seed)
        for run in runs:
            refuse_invalid(run)
        return runs


# A predictor that was put right by runs: where a co-location was measured, the measurement counts.
#
# Prediction and measurement are two estimates of the logarithm of a throughput. The prediction has the standard
# deviation s that the predictor states, the mean of k runs has n / sqrt(k), n being the noise of a run. Both are
# weighed
# by their precision: with v = 1 / (1 / s^2 + k / n^2), the estimate is v (prediction / s^2 + measured k / n^2), and its
# variance v. A drop is relative to solo throughput: how far that errs is part of what a predictor states of a
# co-location, so it is taken from s before, and what is left of it after runs of the NF alone is added to v.


ONE_DEVIATION = float(ndtr(-1.0))  # the risk whose prediction is one standard deviation below the median
LEAST_DEVIATION = 0.001  # least relative standard deviation of a prediction
UNUSABLE_RUN = 1e-6  # what remains of the throughput in a co-location that must not be used: it keeps no SLA


class MeasuredPredictor(Predictor):
    """Estimates from the measurements so far; where nothing was measured, what the predictor expects. A co-location
    that does not run on the testbed keeps no SLA. `predicted`: the predictor. `runs`: what was measured. Make another
    predictor after further runs."""

    def __init__(self, predicted: Predictor, runs: CardRuns) -> None:
        self.predicted = predicted
        self.runs = runs
        self._noise = runs.noise
        self._estimates: dict[CoLocation, dict[Workload, tuple[float, float]]] = {}
        self._alone: dict[Workload, float] = {}

    @property
    def least_risk(self) -> float:
        return self.predicted.least_risk

    def solo(self, workloads: Sequence[Workload]) -> Floats:
        return np.array([kpps[0] for kpps in self.throughput([[workload] for workload in workloads])])

    def throughput(self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None) -> list[Floats]:
        answers = self.predicted.throughput(co_locations, risk=risk)
        below = 0.0 if risk is None else float(ndtri(risk))
        for at, estimates in self._estimates_of(co_locations).items():
            margin = below if len(estimates) > 1 else 0.0  # as predictors do where a workload is alone
            answers[at] = np.array([math.exp(mean + margin * deviation) for mean, deviation in estimates])
        for at in self._find_refused(co_locations):
            answers[at] = answers[at] * UNUSABLE_RUN
        return answers

    def shortfall(
        self, co_locations: Sequence[Sequence[Workload]], required_kpps: Sequence[Sequence[float]]
    ) -> list[Floats]:
        answers = self.predicted.shortfall(co_locations, required_kpps)
        for at, estimates in self._estimates_of(co_locations).items():
            mean, deviation = np.array(estimates).T
            required = np.log(np.maximum(required_kpps[at], 1e-9))
            alone = len(estimates) == 1
            answers[at] = (mean < required).astype(float) if alone else ndtr((required - mean) / deviation)
        for at in self._find_refused(co_locations):
            answers[at] = np.ones(len(co_locations[at]))
        return answers

    def shortfalls(
        self, co_locations: Sequence[Sequence[Workload]], required_kpps: Sequence[Sequence[Floats]]
    ) -> list[list[Floats]]:
        answers = self.predicted.shortfalls(co_locations, required_kpps)
        for at, estimates in self._estimates_of(co_locations).items():
            alone = len(estimates) == 1
            for place, ((mean, deviation), need) in enumerate(zip(estimates, required_kpps[at], strict=True)):
                required = np.log(np.maximum(need, 1e-9))
                short: Floats = np.where(mean < required, 1.0, 0.0) if alone else ndtr((required - mean) / deviation)
                answers[at][place] = short
        for at in self._find_refused(co_locations):
            answers[at] = [np.ones(len(need)) for need in required_kpps[at]]
        return answers

    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        answers = self.predicted.predict(co_locations, coverage=coverage)
        width = float(ndtri(0.5 + coverage / 2))
        for at, estimates in self._estimates_of(co_locations).items():
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

    def predict_contention(self, nf: str, table: pd.DataFrame) -> Floats:
        return self.predicted.predict_contention(nf, table)

    def _find_refused(self, co_locations: Sequence[Sequence[Workload]]) -> list[int]:
        """The places of co-locations that do not run; an NF alone is predicted even so."""
        refused = self.runs.refused
        return [
            at
            for at, co_location in enumerate(co_locations)
            if len(co_location) > 1 and tuple(sorted(co_location)) in refused
        ]

    def _estimates_of(self, co_locations: Sequence[Sequence[Workload]]) -> dict[int, list[tuple[float, float]]]:
        """By place, of each measured co-location: per workload the logarithm of its throughput, and its deviation."""
        keys = [tuple(sorted(co_location)) for co_location in co_locations]
        places = [at for at, key in enumerate(keys) if key in self.runs]
        self._estimate(sorted({keys[at] for at in places} - self._estimates.keys()))
        return {at: [self._estimates[keys[at]][workload] for workload in co_locations[at]] for at in places}

    def _estimate(self, missing: Sequence[CoLocation]) -> None:
        """Weigh measurement and prediction; the solo throughputs first, because the others rest on them."""
        if not missing:
            return
        median = self.predicted.throughput(missing)
        lower = self.predicted.throughput(missing, risk=ONE_DEVIATION)
        alone: list[CoLocation] = sorted({(workload,) for key in missing for workload in key})
        prior = self.predicted.alone_spread([workload for (workload,) in alone])
        self._alone |= {one: float(spread) ** 2 for (one,), spread in zip(alone, prior, strict=True)}
        if any(len(key) > 1 for key in missing):
            self._estimate([key for key in alone if key in self.runs and key not in self._estimates])
        for key, kpps, low in zip(missing, median, lower, strict=True):
            if key in self._estimates:
                continue
            measured, per_run = self.runs.mean_log(key), self._noise**2 / self.runs.runs(key)
            found = {}
            for workload, expected, below in zip(key, kpps.tolist(), low.tolist(), strict=True):
                own = self._alone[workload]
                spread = own if len(key) == 1 else math.log(expected / max(below, 1e-9)) ** 2 - own
                spread = max(spread, LEAST_DEVIATION**2)
                variance = 1.0 / (1.0 / spread + 1.0 / per_run)
                mean = variance * (math.log(expected) / spread + measured[workload] / per_run)
                found[workload] = mean, math.sqrt(variance + (self._solo_variance(workload) if len(key) > 1 else 0.0))
            self._estimates[key] = found

    def _solo_variance(self, workload: Workload) -> float:
        alone = self._estimates.get((workload,))
        return self._alone[workload] if alone is None else alone[workload][1] ** 2

    @classmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        raise TypeError("a predictor with the runs of one plan is not trained from a profile")

    def save(self, folder: Path) -> None:
        raise TypeError("a predictor with the runs of one plan is not saved")

    @classmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        raise TypeError("a predictor with the runs of one plan is not saved")
