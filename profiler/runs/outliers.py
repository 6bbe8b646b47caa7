"""Outliers: runs that a repeat does not confirm.

There are two reasons for a repeat. Runs on which the whole profiling depends (bench levels, accelerator co-runs, the
ends by which an attribute is pruned) are always made twice. Of the many other runs, those are repeated that differ from
what the others lead to expect: a Gaussian process through all other runs misses them by more than `DOUBTED_DIFFERENCE`
(Rasmussen & Williams, 2006, section 5.4.2). The process only selects runs to repeat; its values never replace a
measurement.

Two runs that agree are accepted, three where there was doubt, because two outliers may agree. The earliest of them
counts, so a run that was doubted wrongly stays."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import TypeVar

import numpy as np

from profiler import testbed as testbed_api
from profiles import COUNTERS, Load, TestbedDescription, Workload
from profiles.arrays import Floats

AGREEING_DIFFERENCE = 0.1
MOST_RUNS = 5
DOUBTED_DIFFERENCE = 0.12
"""Difference of logarithms: half the error of a typical outlier, because expectations have errors, too."""
REPEAT_SEEDS = 7_000_003
AT_ONCE = 500
LENGTHS_TRIED = (0.5, 1.0, 2.0, 4.0)
NOISES_TRIED = (1e-4, 1e-3, 1e-2)
STRAY_SHARE = 0.2
CHOSEN_ON = 150


class ConfirmedTestbed(testbed_api.TestbedWrapper):
    """A testbed that confirms every run by a second one.

    Where two runs of a co-location differ by more than 10 % in throughput (or, of a load alone, in a counter), it is
    repeated until two agree, at most five runs in all; then the one of middle throughput counts. Best-effort runs may
    also differ by what their errors explain. `first`: makes the first run of each co-location. `repeats`: makes the
    repeats: the same testbed, or one that records them separately."""

    def __init__(self, first: testbed_api.Testbed, repeats: testbed_api.Testbed) -> None:
        super().__init__(first)
        self.first = first
        self.repeats = repeats
        self.outliers = 0  # runs that were not confirmed

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[testbed_api.Run]:
        if not noise:
            return self.first.run_many(co_locations, noise=noise, seed=seed)
        return self.confirmed(co_locations, agreeing=2, seed=seed)

    def confirmed(
        self, co_locations: Sequence[Sequence[Load]], *, agreeing: int, seed: int | None
    ) -> list[testbed_api.Run]:
        """One run per co-location with which `agreeing` runs agree, itself counted; else the middle one."""
        answers = [[run] for run in self.first.run_many(co_locations, seed=seed)]
        for repeat in range(1, MOST_RUNS):
            missing = [index for index, runs in enumerate(answers) if _find_agreed(runs, agreeing) is None]
            unconfirmed = [co_locations[index] for index in missing]
            seconds = self.repeats.run_many(unconfirmed, seed=(seed or 0) + REPEAT_SEEDS * repeat)
            for index, run in zip(missing, seconds, strict=True):
                answers[index].append(run)
        chosen = [_find_agreed(runs, agreeing) or _middle(runs) for runs in answers]
        self.outliers += sum(run is not runs[0] for run, runs in zip(chosen, answers, strict=True))
        return chosen


def _find_agreed(runs: Sequence[testbed_api.Run], agreeing: int) -> testbed_api.Run | None:
    """The first run with which that many agree, itself counted."""
    return next((run for run in runs if sum(_agree(run, other) for other in runs) >= agreeing), None)


def _agree(one: testbed_api.Run, other: testbed_api.Run) -> bool:
    here, there = one.measurements[0], other.measurements[0]
    most = max(AGREEING_DIFFERENCE, testbed_api.difference_by_error(one.best_effort, other.best_effort))
    if not _near(here.throughput_kpps, there.throughput_kpps, most):
        return False
    return len(one.measurements) > 1 or _counters_agree(here, there, most)


def _counters_agree(here: testbed_api.Measurement, there: testbed_api.Measurement, most: float) -> bool:
    return all(_near(getattr(here.counters, name), getattr(there.counters, name), most) for name in COUNTERS)


def _near(one: float, other: float, most: float) -> bool:
    return abs(one - other) <= most * max(one, other)


def _middle(runs: Sequence[testbed_api.Run]) -> testbed_api.Run:
    return sorted(runs, key=lambda run: run.measurements[0].throughput_kpps)[len(runs) // 2]


def doubtful(inputs: Floats, logarithm: Floats) -> list[int]:
    """The runs that differ from what the others lead to expect, the largest difference first. `inputs`: the point of
    each run, shape (N, inputs). `logarithm`: of the throughput, shape (N,)."""
    low, high = inputs.min(axis=0), inputs.max(axis=0)
    varying = high > low
    unit = (inputs[:, varying] - low[varying]) / (high - low)[varying]
    away = np.empty(len(inputs))
    parts = math.ceil(len(inputs) / AT_ONCE)
    for part in range(parts):
        away[part::parts] = _measure_misses(unit[part::parts], logarithm[part::parts])
    found = np.flatnonzero(away > DOUBTED_DIFFERENCE)
    return [int(index) for index in found[np.argsort(-away[found], kind="stable")]]


def _measure_misses(unit: Floats, logarithm: Floats) -> Floats:
    """How far each run is from its prediction by the others, with the process that fits a sample best; shape (N,)."""
    centred = logarithm - np.median(logarithm)
    sample = slice(None, None, -(-len(unit) // CHOSEN_ON))

    def cost(length: float, noise: float) -> float:
        return float(np.minimum(_left_out(unit[sample], centred[sample], length, noise), STRAY_SHARE).mean())

    length, noise = min(product(LENGTHS_TRIED, NOISES_TRIED), key=lambda chosen: cost(*chosen))
    return _left_out(unit, centred, length, noise)


def _left_out(unit: Floats, centred: Floats, length: float, noise: float) -> Floats:
    """How far each run is from its prediction by all others, with this length scale and noise; shape (N,)."""
    squared = (unit**2).sum(axis=1)
    distance = np.sqrt(np.maximum(squared[:, None] + squared[None] - 2 * unit @ unit.T, 0.0))
    scaled = math.sqrt(5) * distance / length
    covariance = (1 + scaled * (1 + scaled / 3)) * np.exp(-scaled)
    inverse = np.linalg.inv(covariance + noise * np.eye(len(unit)))
    away: Floats = np.abs(inverse @ centred / np.diag(inverse))
    return away


# Runs of co-locations on testbeds that refuse some of them.


PROBE_SEEDS = 9_000_011
MOST_FAILURES = 2  # Co-locations that may fail one after another before the testbed itself is taken to have failed

_CoLocation = TypeVar("_CoLocation", bound=tuple[Load, ...])


def known_workload(description: TestbedDescription) -> Workload:
    """What is sure to run on a testbed: its first NF that fits, alone at default traffic."""
    return Workload(description.fitting_nfs[0].name, description.traffic)


class WorkingRuns:
    """Runs those of several co-locations that work on a testbed. Not every pair of NFs can share a testbed:
    co-locations that are refused, or fail at every attempt, are found by halving and left out. After a failure, `known`
    is run, so that a testbed that ended is not taken for one on which the last co-locations do not work. `testbed`:
    where they run. `known`: what ran there before. `done`: called with the number of runs, after each batch."""

    def __init__(self, testbed: testbed_api.Testbed, known: Workload, done: Callable[[int], None]) -> None:
        self._testbed = testbed
        self._known = known
        self._done = done
        self._failures = self._probes = 0

    def run(self, co_locations: Sequence[_CoLocation], seed: int) -> list[tuple[_CoLocation, testbed_api.Run]]:
        """A run of each co-location that works, in order. Raises `TestbedError` when several co-locations fail one
        after another, or what ran before: then the testbed is at fault."""
        try:
            runs = list(zip(co_locations, self._testbed.run_many(co_locations, seed=seed), strict=True))
        except testbed_api.TestbedChanged:
            raise
        except testbed_api.TestbedError as error:
            if len(co_locations) > 1:
                half = len(co_locations) // 2
                return [*self.run(co_locations[:half], seed), *self.run(co_locations[half:], seed)]
            if not isinstance(error, testbed_api.RunRefused):
                self._failures += 1
                if self._failures > MOST_FAILURES:
                    raise
                self._probes += 1
                self._testbed.run([self._known], seed=seed + PROBE_SEEDS * self._probes)
            return []
        self._failures = 0
        self._done(len(runs))
        return runs
