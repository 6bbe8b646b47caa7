"""What a further run of a co-location is worth: by how much more it is expected to be usable, given what the run shows.

A tenant keeps its SLA where the logarithm of its throughput exceeds that of what it requires by a distance d. The
prediction of the throughput has a standard deviation s, and a run has noise n. Plans use a set of tenants where each is
expected to violate its SLA with at most a probability r, the risk. So a set counts as usable by 1 - F(-d / s) / r of
its most doubtful tenant, F being the normal distribution, and never below 0. k more runs move d by a standard deviation
of t = s^2 / sqrt(s^2 + n^2 / k), and lower s^2 by t^2. Their gain is how much more usable the set is then on average,
times the NICs that hold it: the value of information (Howard, 1966). One run may not settle what a few would, so a run
is worth the largest gain per run of any such number (Frazier & Powell, Paradoxes in learning, 2010).

It is small where d is large, where the prediction is certain, and where noise would hide the answer.

A drop is relative to solo throughput, so a run of an NF alone moves the requirements of all its instances."""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from placer.budget.usage import Use
from placer.model.oracle import DEFAULT_RISK
from predictor import Predictor
from profiles import CoLocation, Workload
from profiles.arrays import Floats

INTERVAL_COVERAGE = 0.9
HALF_WIDTH = 1.6449  # standard deviations from the middle of the interval of that coverage to its ends
MOST_AT_ONCE = 6  # runs of one co-location in a round: the next round knows more
UNKNOWN_DEVIATION = 0.05  # standard deviation of a prediction without an interval
RUNS_TOGETHER = (1, 3, MOST_AT_ONCE)  # numbers of runs whose gain is estimated
OUTCOME_SAMPLES = 200  # pairs of outcomes of a run that are drawn, the same for each co-location
LEAST_GAIN = 1e-9  # gain below which a run is worth nothing


@dataclass
class _Candidate:
    """A co-location that may be run. `deviation`: of the prediction, relative, per tenant that hinges on it.
    `distance`: to what the tenant requires, relative; shape as `deviation`. `group`: the set of tenants that each
    belongs to: of one set, the most doubtful tenant counts. `weight`: NICs per set."""

    deviation: list[float] = field(default_factory=list)
    distance: list[float] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)

    def worth(self, runs: int, noise: float, risk: float) -> float:
        """The expected gain per run of a few, after `runs` more."""
        variance = np.array(self.deviation) ** 2
        if runs:
            variance = variance * (noise**2 / runs) / np.maximum(variance + noise**2 / runs, 1e-24)
        return max(self._gain(variance, noise**2 / further, risk) / further for further in RUNS_TOGETHER)

    def _gain(self, variance: Floats, noise: float, risk: float) -> float:
        """The expected gain of a run, by the variance of each prediction, and the variance of the run."""
        moved = variance / np.maximum(np.sqrt(variance + noise), 1e-12)
        left = np.sqrt(np.maximum(variance - moved**2, 0.0))
        distance = np.array(self.distance)[:, None]
        drawn = np.random.default_rng(0).standard_normal((len(distance), OUTCOME_SAMPLES))
        outcomes = distance + moved[:, None] * np.hstack([drawn, -drawn])
        gain = self._usable(outcomes, left, risk).mean(axis=1) - self._usable(distance, np.sqrt(variance), risk)[:, 0]
        return float(gain @ np.array(self.weight))

    def _usable(self, distance: Floats, deviation: Floats, risk: float) -> Floats:
        """How usable each set is, per column of distances, shape (sets, columns); deviations per row."""
        short = ndtr(-distance / np.maximum(deviation, 1e-9)[:, None])
        most = np.zeros((len(self.weight), distance.shape[1]))
        np.maximum.at(most, self.group, short)
        return np.maximum(1.0 - most / risk, 0.0)


def choose_runs(
    predictor: Predictor,
    weights: Mapping[Use, float],
    runs: Mapping[CoLocation, int],
    most: int,
    *,
    noise: float,
    risk: float = DEFAULT_RISK,
    refused: Set[CoLocation] = frozenset(),
) -> list[CoLocation]:
    """The co-locations that are worth most, one several times for repeats, at most `most` in all.

    `predictor`: what is known so far. `weights`: NICs per set of tenants. `runs`: how often each co-location was run:
    the mean of its runs is as certain as that. `most`: the number of runs. `noise`: relative standard deviation of a
    run. `risk`: the probability of a violation up to which plans use a co-location. `refused`: Co-locations that do not
    run on the testbed."""
    candidates = _candidates(predictor, weights, runs, noise)
    heap = [(-one.worth(0, noise, risk), key, 0) for key, one in sorted(candidates.items()) if key not in refused]
    heapq.heapify(heap)
    chosen: Counter[CoLocation] = Counter()
    while heap and chosen.total() < most:
        worth, key, times = heapq.heappop(heap)
        if worth >= -LEAST_GAIN:
            break
        chosen[key] += 1
        if times + 1 < MOST_AT_ONCE:
            heapq.heappush(heap, (-candidates[key].worth(times + 1, noise, risk), key, times + 1))
    return list(chosen.elements())


def _candidates(
    predictor: Predictor, weights: Mapping[Use, float], runs: Mapping[CoLocation, int], noise: float
) -> dict[CoLocation, _Candidate]:
    uses = sorted(weights, key=lambda use: tuple((one, str(sla)) for one, sla in use))
    co_locations = [tuple(workload for workload, _ in use) for use in uses]
    alone: list[CoLocation] = sorted({(workload,) for co_location in co_locations for workload in co_location})
    solo = {
        workloads[0]: (kpps[0], deviation[0]) for workloads, kpps, deviation in _predict(predictor, alone, runs, noise)
    }
    candidates: dict[CoLocation, _Candidate] = defaultdict(_Candidate)
    for use, (co_location, kpps, deviations) in zip(uses, _predict(predictor, co_locations, runs, noise), strict=True):
        weight = weights[use]
        doubtful: dict[Workload, float] = {}
        here = candidates[co_location]
        here.weight.append(weight)
        for (workload, sla), throughput, deviation in zip(use, kpps, deviations, strict=True):
            distance = math.log(throughput / max(sla.required_kpps(solo[workload][0]), 1e-9))
            if len(co_location) > 1 or sla.min_kpps is not None:
                here.deviation.append(deviation)
                here.distance.append(distance)
                here.group.append(len(here.weight) - 1)
            if sla.min_kpps is None and len(co_location) > 1:
                doubtful[workload] = min(distance, doubtful.get(workload, distance), key=abs)
        for workload, distance in doubtful.items():
            own = candidates[(workload,)]
            own.weight.append(weight)
            own.deviation.append(solo[workload][1])
            own.distance.append(distance)
            own.group.append(len(own.weight) - 1)
    return {key: one for key, one in candidates.items() if one.deviation}


def _predict(
    predictor: Predictor, co_locations: list[CoLocation], runs: Mapping[CoLocation, int], noise: float
) -> list[tuple[CoLocation, list[float], list[float]]]:
    """Throughput (kpps) of every workload of each co-location, and the relative standard deviation of that."""
    found = []
    for co_location, predictions in zip(
        co_locations, predictor.predict(co_locations, coverage=INTERVAL_COVERAGE), strict=True
    ):
        measured = noise / math.sqrt(runs[co_location]) if runs.get(co_location) else math.inf
        deviations = [
            math.log(prediction.high_kpps / prediction.low_kpps) / (2 * HALF_WIDTH)
            if prediction.low_kpps and prediction.high_kpps
            else UNKNOWN_DEVIATION
            for prediction in predictions
        ]
        found.append(
            (
                co_location,
                [prediction.throughput_kpps for prediction in predictions],
                [min(s, measured) for s in deviations],
            )
        )
    return found
