"""The runs of co-locations: requested from the testbed, confirmed where they are doubtful, and counted.

A co-location is run once, and again where its noise matters. A run is doubted when

- it differs by more than `AGREEING_DIFFERENCE` from the mean of the earlier runs of the co-location,
- an NF is faster than in a part of the co-location by more than `AGREEING_DIFFERENCE`: throughput does not rise
  with one more NF,
- an NF of three or more is slower by more than `AGREEING_DIFFERENCE` than its throughput in the parts leads to
  expect, or
- it is the first of a pair that would exclude every co-location with this pair.

A doubted run is repeated; if the repeat disagrees, a second one decides. The repeats do not count and are not kept,
unless one replaces an outlier."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np

from profiler.journal.journal import RecordedRun
from profiler.runs.outliers import AGREEING_DIFFERENCE, REPEAT_SEEDS, ConfirmedTestbed, WorkingRuns
from profiler.testbed import Measurement, Run
from profiles import CoLocation, Counters, Workload
from profiles.arrays import Floats

RUN_SEEDS = 1_000_003
FIRST_SEED = 16  # the first runs of an NF and of its random co-locations have the seeds before


class CoLocationRuns:
    """The runs of co-locations, sorted tuples of workloads; one workload is an NF alone.

    `testbed`: where they run. Its repeats are not counted. `known`: what ran there before. `most`: the most runs.
    `seed`: of the noise of a simulated testbed. `done`: called with the number of runs, after each batch. `crowded`:
    the smallest share of its solo throughput that every NF of a pair keeps where the pair excludes nothing. `first`:
    the number of the first run of a co-location; runs of equal numbers have equal noise on a simulated testbed."""

    def __init__(
        self,
        testbed: ConfirmedTestbed,
        *,
        known: Workload,
        most: int,
        seed: int,
        done: Callable[[int], None],
        crowded: float = 0.0,
        first: int = FIRST_SEED,
    ) -> None:
        self._testbed = testbed
        self._working = WorkingRuns(testbed.first, known, done)
        self._seed = seed
        self._crowded = crowded
        self._first = first
        self.left = most
        self.refused: set[CoLocation] = set()  # Co-locations that do not run on the testbed
        self._known: dict[CoLocation, list[Run]] = defaultdict(list)
        self._runs: dict[CoLocation, list[Run]] = {}
        self._requests: dict[CoLocation, int] = defaultdict(int)
        self._means: dict[CoLocation, dict[Workload, float]] = {}

    def measure(self, co_locations: Sequence[CoLocation]) -> None:
        """One more run of each co-location, in order, while there are runs left. Raises `TestbedError` when the testbed
        fails."""
        working = [co_location for co_location in dict.fromkeys(co_locations) if co_location not in self.refused]
        batches: dict[int, list[CoLocation]] = defaultdict(list)
        for co_location in working[: self.left]:
            batches[self._requests[co_location]].append(co_location)
        for number, batch in sorted(batches.items()):
            seed = self._seed + RUN_SEEDS * (self._first + number)
            answered = dict(self._working.run(batch, seed))
            self.refused.update(co_location for co_location in batch if co_location not in answered)
            self.left -= len(answered)
            for co_location in answered:
                self._requests[co_location] += 1
            for co_location, runs in self._settled(answered, seed).items():
                self._runs[co_location] = runs
                all_of_it = [*self._known.get(co_location, ()), *runs]
                self._means[co_location] = _by_workload(co_location, np.mean(list(map(_kpps, all_of_it)), axis=0))

    def count(self, co_location: CoLocation) -> int:
        """How many runs of the co-location are kept."""
        return len(self._runs.get(co_location, ()))

    def throughputs(self, co_location: CoLocation) -> Floats:
        """Throughput (kpps) in each run, shape (runs, members)."""
        return np.array([_kpps(run) for run in self._runs[co_location]])

    def slowest(self, co_location: CoLocation) -> float | None:
        """The share of its solo throughput that the slowest NF keeps; None when something is not measured."""
        measured = self._means.get(co_location)
        if measured is None or any((workload,) not in self._means for workload in co_location):
            return None
        return min(kpps / self._means[(workload,)][workload] for workload, kpps in measured.items())

    def expected(self, co_location: CoLocation) -> dict[Workload, float]:
        """Throughput (kpps) that its parts lead to expect, of each NF of which enough parts are measured. Two further
        NFs j and l are expected to slow an NF down by the product of what each does: T(S) = T(S - j) T(S - l) / T(S - j
        - l), the mean over all pairs."""
        expected = {}
        for at, workload in enumerate(co_location):
            others = [index for index in range(len(co_location)) if index != at]
            found = [
                self._means[one][workload] * self._means[other][workload] / self._means[both][workload]
                for j, k in combinations(others, 2)
                for one, other, both in [tuple(without(co_location, gone) for gone in ((j,), (k,), (j, k)))]
                if one in self._means and other in self._means and both in self._means
            ]
            if found:
                expected[workload] = float(np.mean(found))
        return expected

    def all(self) -> Iterator[RecordedRun]:
        """Every run that is kept, with throughputs (kpps); several runs of a co-location follow one another."""
        for co_location, runs in self._runs.items():
            for run in runs:
                yield co_location, tuple(measurement.throughput_kpps for measurement in run.measurements)

    def remember(self, runs: Iterable[RecordedRun]) -> None:
        """Compare with these earlier runs, too; they are neither counted nor kept."""
        for co_location, kpps in runs:
            members = sorted(zip(co_location, kpps, strict=True))
            run = Run(tuple(Measurement(one, Counters()) for _, one in members))
            self._known[tuple(workload for workload, _ in members)].append(run)
        for co_location, known in self._known.items():
            self._means[co_location] = _by_workload(co_location, np.mean(list(map(_kpps, known)), axis=0))

    def _settled(self, answered: dict[CoLocation, Run], seed: int) -> dict[CoLocation, list[Run]]:
        """The runs of each co-location with its new run, without outliers."""
        counted = {one: [*self._runs.get(one, ()), run] for one, run in answered.items()}
        doubted = [one for one, run in answered.items() if self._doubtful(one, run)]
        further: dict[CoLocation, list[Run]] = {co_location: [] for co_location in doubted}
        for repeat in (1, 2):
            repeats = self._testbed.repeats.run_many(doubted, seed=seed + REPEAT_SEEDS * repeat) if doubted else []
            for one, run in zip(doubted, repeats, strict=True):
                further[one].append(run)
            doubted = [
                co_location
                for co_location in doubted
                if not _alike([*self._known.get(co_location, ()), *counted[co_location], *further[co_location]])
            ]
        for one, repeated in further.items():
            kept = _without_outliers(self._known.get(one, ()), counted[one], repeated)
            self._testbed.outliers += sum(run not in kept for run in counted[one])
            counted[one] = kept
        return counted

    def _doubtful(self, co_location: CoLocation, run: Run) -> bool:
        measured = _by_workload(co_location, _kpps(run))
        if co_location in self._means:
            return any(_differ(kpps, self._means[co_location][one]) for one, kpps in measured.items())
        most = self._most(co_location)
        if any(kpps > most[one] * (1 + AGREEING_DIFFERENCE) for one, kpps in measured.items() if one in most):
            return True
        if len(co_location) == 2:
            alone = (self._means.get((workload,), {}).get(workload, 0.0) for workload in measured)
            return any(kpps < self._crowded * solo for kpps, solo in zip(measured.values(), alone, strict=True))
        return any(measured[one] < (1 - AGREEING_DIFFERENCE) * kpps for one, kpps in self.expected(co_location).items())

    def _most(self, co_location: CoLocation) -> dict[Workload, float]:
        """The lowest throughput (kpps) of each NF in the parts that have one NF less."""
        most: dict[Workload, float] = {}
        for at in range(len(co_location)):
            for workload, kpps in self._means.get(without(co_location, (at,)), {}).items():
                most[workload] = min(kpps, most.get(workload, kpps))
        return most


def without(co_location: CoLocation, gone: Sequence[int]) -> CoLocation:
    """The co-location without the members at these positions."""
    return tuple(one for at, one in enumerate(co_location) if at not in gone)


def _kpps(run: Run) -> Floats:
    return np.array([measurement.throughput_kpps for measurement in run.measurements])


def _by_workload(co_location: CoLocation, kpps: Floats) -> dict[Workload, float]:
    """Throughput (kpps) per workload; the mean where one runs several times."""
    found: dict[Workload, list[float]] = defaultdict(list)
    for workload, one in zip(co_location, kpps, strict=True):
        found[workload].append(float(one))
    return {workload: sum(values) / len(values) for workload, values in found.items()}


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > AGREEING_DIFFERENCE * max(one, other)


def _alike(runs: Sequence[Run]) -> bool:
    kpps = np.array([_kpps(run) for run in runs])
    low, high = kpps.min(axis=0), kpps.max(axis=0)
    return bool((high - low <= AGREEING_DIFFERENCE * high).all())


def _without_outliers(known: Sequence[Run], counted: Sequence[Run], repeats: Sequence[Run]) -> list[Run]:
    """Those of `counted` near the median of all; repeats near it replace the others, as far as there are any."""
    everything = [*counted, *repeats]
    kpps = np.array([_kpps(run) for run in everything])
    middle = np.median([*kpps, *map(_kpps, known)], axis=0)
    away = (abs(kpps - middle) / np.maximum(kpps, middle)).max(axis=1)
    near = [run for run, distance in zip(everything, away, strict=True) if distance <= AGREEING_DIFFERENCE]
    return near[: len(counted)] or [everything[int(away.argmin())]]
