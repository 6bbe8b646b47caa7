"""What a further run of a co-location is worth: by how much it may change whether tenants keep their SLAs.

A tenant keeps its SLA where the logarithm of its throughput exceeds that of what it requires by a distance d. The
prediction of the throughput has a standard deviation s, and a run has noise n. After one more run, the prediction moves
by a standard deviation of t = s^2 / sqrt(s^2 + n^2), and the expected gain of deciding by the moved prediction is
t f(-|d| / t) with f(x) = x F(x) + p(x), F and p the normal distribution and density: the knowledge gradient (Frazier,
Powell & Dayanik, 2008, doi:10.1137/070693424). It is small where the distance is large, where the prediction is
certain, and where noise would hide the answer. A set of tenants counts with its most doubtful tenant, times the NICs
that hold it.

A drop is relative to solo throughput, so a run of an NF alone moves the requirements of all its instances.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from placer.measuring.usage import Use
from predictor import Predictor
from profiles import CoLocation, Workload

COVERAGE = 0.9
HALF_WIDTH = 1.6449
"""Standard deviations from the middle of the interval of that coverage to its ends."""
MOST_AT_ONCE = 6
"""Runs of one co-location in a round: the next round knows more."""
UNKNOWN = 0.05
"""Standard deviation of a prediction without an interval."""

Array = NDArray[np.float64]


@dataclass
class _Candidate:
    """A co-location that may be run.

    Parameters
    ----------
    deviation
        Of the prediction, relative, per tenant that hinges on it.
    distance
        To what the tenant requires, relative; shape as `deviation`.
    group
        The set of tenants that each belongs to: of one set, the most doubtful tenant counts.
    weight
        NICs per set.
    """

    deviation: list[float] = field(default_factory=list)
    distance: list[float] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)

    def worth(self, runs: int, noise: float) -> float:
        """The expected gain of one more run after `runs` more."""
        variance = np.array(self.deviation) ** 2
        if runs:
            variance = variance * (noise**2 / runs) / np.maximum(variance + noise**2 / runs, 1e-24)
        moved = variance / np.maximum(np.sqrt(variance + noise**2), 1e-12)
        away = np.abs(np.array(self.distance)) / np.maximum(moved, 1e-12)
        density = np.exp(-(away**2) / 2) / math.sqrt(2 * math.pi)
        gain = moved * np.maximum(density - away * ndtr(-away), 0.0)
        most = np.zeros(len(self.weight))
        np.maximum.at(most, self.group, gain)
        return float(most @ np.array(self.weight))


def choose_runs(
    predictor: Predictor,
    weights: Mapping[Use, float],
    runs: Mapping[CoLocation, int],
    most: int,
    *,
    noise: float,
    refused: Set[CoLocation] = frozenset(),
) -> list[CoLocation]:
    """The co-locations that are worth most, one several times for repeats, at most `most` in all.

    Parameters
    ----------
    predictor
        What is known so far.
    weights
        NICs per set of tenants.
    runs
        How often each co-location was run: the mean of its runs is as certain as that.
    most
        The number of runs.
    noise
        Relative standard deviation of a run.
    refused
        Co-locations that do not run on the testbed.
    """
    candidates = _candidates(predictor, weights, runs, noise)
    heap = [(-one.worth(0, noise), key, 0) for key, one in sorted(candidates.items()) if key not in refused]
    heapq.heapify(heap)
    chosen: Counter[CoLocation] = Counter()
    while heap and chosen.total() < most:
        worth, key, times = heapq.heappop(heap)
        if worth >= 0.0:
            break
        chosen[key] += 1
        if times + 1 < MOST_AT_ONCE:
            heapq.heappush(heap, (-candidates[key].worth(times + 1, noise), key, times + 1))
    return list(chosen.elements())


def _candidates(
    predictor: Predictor, weights: Mapping[Use, float], runs: Mapping[CoLocation, int], noise: float
) -> dict[CoLocation, _Candidate]:
    uses = sorted(weights, key=lambda use: tuple((one, str(sla)) for one, sla in use))
    co_locations = [tuple(workload for workload, _ in use) for use in uses]
    alone: list[CoLocation] = sorted({(workload,) for one in co_locations for workload in one})
    solo = {
        workloads[0]: (kpps[0], deviation[0])
        for workloads, kpps, deviation in _predicted(predictor, alone, runs, noise)
    }
    candidates: dict[CoLocation, _Candidate] = defaultdict(_Candidate)
    for use, (co_location, kpps, deviations) in zip(
        uses, _predicted(predictor, co_locations, runs, noise), strict=True
    ):
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


def _predicted(
    predictor: Predictor, co_locations: list[CoLocation], runs: Mapping[CoLocation, int], noise: float
) -> list[tuple[CoLocation, list[float], list[float]]]:
    """Throughput (kpps) of every workload of each co-location, and the relative standard deviation of that."""
    found = []
    for co_location, predictions in zip(co_locations, predictor.predict(co_locations, coverage=COVERAGE), strict=True):
        measured = noise / math.sqrt(runs[co_location]) if runs.get(co_location) else math.inf
        deviations = [
            math.log(one.high_kpps / one.low_kpps) / (2 * HALF_WIDTH) if one.low_kpps and one.high_kpps else UNKNOWN
            for one in predictions
        ]
        found.append(
            (co_location, [one.throughput_kpps for one in predictions], [min(s, measured) for s in deviations])
        )
    return found
