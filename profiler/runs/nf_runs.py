"""The runs of one NF: requested from the testbed, remembered, and counted against the quota."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from profiler.contention import NO_CONTENTION, Contention, MemoryContention, OperatingPoint
from profiler.runs.co_runs import RUNS_PER_CO_LOCATION, agree, disagreement
from profiler.runs.outliers import ConfirmedTestbed, WorkingRuns, doubtful
from profiler.sampling import Range, traffic_ranges, traffic_with
from profiler.testbed import Measurement, Run
from profiles import CoLocation, Load, NfDescription, TestbedDescription, TrafficProfile, Workload

REPEAT_SEEDS = 1_000_003
Uncertainty = Callable[[Sequence[OperatingPoint]], NDArray[np.float64]]

COUNTER_UNITS = np.array([0.1, 1e7, 1e6, 1e6, 1e7, 1e7, 0.3])
"""Competitors' counters below which contention has hardly any effect."""
OUTLIER_ROUNDS = 3
AGREEING_RUNS = 3
REPEATED_SHARE = 4  # one run in four may be repeated because it is doubtful


class QuotaSpent(Exception):
    """The NF has had all its runs; the method that requested more ends."""


class NfRuns:
    """The runs of one NF. `testbed`: where the NF runs. Its repeats are not counted against the quota. `nf`: the NF, as
    described, or with another number of cores. `memory`: the memory contention that can run with it. `quota`: the most
    runs it may have alone and with benches; None for no limit. `seed`: passed on to the testbed with every run. `done`:
    called with the number of runs, after each batch. `notify`: called with a message about what was left out."""

    def __init__(
        self,
        testbed: ConfirmedTestbed,
        nf: NfDescription,
        memory: MemoryContention,
        *,
        quota: int | None,
        seed: int,
        done: Callable[[int], None],
        notify: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._testbed = testbed
        self._description = testbed.describe()
        self._seed = seed
        self._done = done
        self._notify = notify
        self._quota = quota
        self._runs: dict[OperatingPoint, list[Measurement]] = {}
        self._count = 0
        self._working = WorkingRuns(testbed.first, Workload(nf.name, self._description.traffic), done)
        self.co_locations: list[tuple[CoLocation, Run]] = []
        """Every run with other NFs; repeats of a co-location are further entries."""
        self.nf = nf
        self.memory = memory
        self.uncertainty: Uncertainty | None = None
        """Per point, how uncertain a model is that has learnt from the runs so far; None without a model."""

    @property
    def base(self) -> TrafficProfile:
        """Default traffic with the least accelerator work: where memory contention is measured."""
        return least_work(self._description, self.nf)

    @property
    def attributes(self) -> dict[str, Range]:
        """The traffic attributes over which memory contention is measured, with their ranges. An accelerator NF keeps
        `mtbr` at its smallest, because its matches load the accelerator."""
        ranges = traffic_ranges(self._description)
        return {name: bounds for name, bounds in ranges.items() if not (self.nf.accelerators and name == "mtbr")}

    @property
    def left(self) -> float:
        """Runs that may still be made."""
        return float("inf") if self._quota is None else self._quota - self._count

    def measure(self, points: Iterable[OperatingPoint], *, confirm: bool = False) -> list[float]:
        """Throughput (kpps) of the NF at each point, in order. A point that was measured is not run again. `points`:
        traffic and contention of each run. `confirm`: every run is confirmed by another, because many decisions depend
        on it. Raises `QuotaSpent` when not all fit into the quota; those that do were run. Raises `TestbedError` when
        the testbed fails."""
        points = list(points)
        new = list(dict.fromkeys(point for point in points if point not in self._runs))
        fitting = new if self._quota is None else new[: max(self._quota - self._count, 0)]
        self._run(fitting, self._seed, confirm)
        if len(fitting) < len(new):
            raise QuotaSpent
        return [self._runs[point][0].throughput_kpps for point in points]

    def repeat(self, point: OperatingPoint, times: int) -> list[float]:
        """Throughput (kpps) of several runs at one point, each with noise of its own and confirmed."""
        self.measure([point], confirm=True)
        for repeat in range(len(self._runs[point]), times):
            if self.left < 1:
                raise QuotaSpent
            self._run([point], self._seed + REPEAT_SEEDS * repeat, confirm=True)
        return [measurement.throughput_kpps for measurement in self._runs[point]]

    def check(self, point: OperatingPoint, times: int) -> list[float]:
        """Throughput (kpps) of several runs at a measured point; the further ones only decide a close comparison. They
        neither count against the quota nor enter the profile."""
        further = [
            self._testbed.repeats.run_many(self._requests([point]), seed=self._seed + REPEAT_SEEDS * repeat)[0]
            for repeat in range(1, times)
        ]
        return [self._runs[point][0].throughput_kpps, *(run.measurements[0].throughput_kpps for run in further)]

    def measure_co_locations(self, co_locations: Sequence[CoLocation]) -> None:
        """Run each co-location twice, outside the quota for benches; where the runs disagree, a third one decides.
        Co-locations that do not work on the testbed are left out with a message. Raises `TestbedError` when several
        co-locations fail one after another: then the testbed is at fault."""
        first = self._working.run(co_locations, self._seed)
        second = dict(self._working.run([co_location for co_location, _ in first], self._seed + REPEAT_SEEDS))
        both = [(co_location, run) for co_location, run in first if co_location in second]
        if left_out := len(co_locations) - len(both):
            self._notify(f"{self.nf.name}: {left_out} of {len(co_locations)} co-locations do not run here; left out")
        for co_location, run in both:
            self.co_locations += [
                (co_location, repeat) for repeat in self._two_alike(co_location, run, second[co_location])
            ]

    def _two_alike(self, co_location: CoLocation, first: Run, second: Run) -> tuple[Run, Run]:
        if agree(first, second):
            return first, second
        third = self._testbed.repeats.run_many([co_location], seed=self._seed + REPEAT_SEEDS * RUNS_PER_CO_LOCATION)[0]
        self._testbed.outliers += 1
        return min(combinations((first, second, third), 2), key=lambda pair: disagreement(*pair))

    def all(self) -> list[tuple[TrafficProfile, Contention, Sequence[Measurement]]]:
        """Every point with its measurements (several when repeated), in the order first run."""
        return [(traffic, contention, runs) for (traffic, contention), runs in self._runs.items()]

    def replace_outliers(self) -> None:
        """Repeat runs that differ from what the others lead to expect; confirmed runs replace those that are not."""
        left = self._count // REPEATED_SHARE
        points = list(self._runs)
        repeated: set[OperatingPoint] = set()
        for _ in range(OUTLIER_ROUNDS):
            doubted = [points[index] for index in doubtful(*self._as_arrays())]
            doubted = [point for point in doubted if point not in repeated][: left - len(repeated)]
            repeated.update(doubted)
            runs = self._testbed.confirmed(self._requests(doubted), agreeing=AGREEING_RUNS, seed=self._seed)
            for point, run in zip(doubted, runs, strict=True):
                self._runs[point][0] = run.measurements[0]

    def _run(self, points: Sequence[OperatingPoint], seed: int, confirm: bool) -> None:
        testbed = self._testbed if confirm else self._testbed.first
        for point, run in zip(points, testbed.run_many(self._requests(points), seed=seed), strict=True):
            self._runs.setdefault(point, []).append(run.measurements[0])
        self._count += len(points)
        self._done(len(points))

    def _requests(self, points: Sequence[OperatingPoint]) -> list[list[Load]]:
        cores = 0 if self.nf.cores == self._description.nf(self.nf.name).cores else self.nf.cores
        return [[Workload(self.nf.name, traffic, cores=cores), *contention.loads] for traffic, contention in points]

    def _as_arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each point, on scales on which throughput changes evenly, and the logarithm of its throughput."""
        rows = [
            [
                *np.log(np.maximum(traffic.as_tuple()[:2], 1.0)),
                *traffic.as_tuple(),
                *np.log1p(contention.counters.as_array() / COUNTER_UNITS),
                *(contention.service_ms(name) * traffic.mtbr for name in self.nf.accelerators),
                *(contention.service_ms(name) for name in self.nf.accelerators),
            ]
            for traffic, contention in self._runs
        ]
        kpps = [runs[0].throughput_kpps for runs in self._runs.values()]
        return np.array(rows, dtype=np.float64), np.log(kpps)


def least_work(description: TestbedDescription, nf: NfDescription) -> TrafficProfile:
    """Default traffic; for accelerator NFs with the fewest matches that the testbed offers."""
    if not nf.accelerators:
        return description.traffic
    return traffic_with(description.traffic, {"mtbr": description.range_of("mtbr")[0]})


def solo_points(traffics: Iterable[TrafficProfile]) -> list[OperatingPoint]:
    """Each traffic with the NF alone."""
    return [(traffic, NO_CONTENTION) for traffic in traffics]
