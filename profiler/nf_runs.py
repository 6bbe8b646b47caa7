"""The runs of one NF: asked of the testbed, remembered, and counted against the quota."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from profiler.co_runs import TIMES, agree, disagreement
from profiler.co_runs import CoLocation as RealCoLocation
from profiler.contention import ALONE, Contention
from profiler.memory_contention import MemoryContention
from profiler.outliers import ConfirmedTestbed, doubtful
from profiler.sampling import Range, traffic_ranges, traffic_with
from profiler.testbed import Measurement, Run, RunRefused, TestbedChanged, TestbedError
from profiles import Load, NfDescription, TestbedDescription, TrafficProfile, Workload

CoLocation = tuple[TrafficProfile, Contention]
"""The NF's traffic, and what runs beside it."""

REPEAT_SEEDS = 1_000_003
Uncertainty = Callable[[Sequence[CoLocation]], NDArray[np.float64]]

COUNTER_UNITS = np.array([0.1, 1e7, 1e6, 1e6, 1e7, 1e7, 0.3])
"""Competitors' counters below which contention is hardly felt."""
ROUNDS = 3
AGREEING = 3
MOST_FAILURES = 2
"""Companies that may fail one after another before it is the testbed that has failed."""
AGAIN_SHARE = 4
"""One run in four may be measured again because it is doubted."""


class QuotaSpent(Exception):
    """The NF has had all its runs; whatever method asked for more ends here."""


class NfRuns:
    """The runs of one NF.

    Parameters
    ----------
    testbed
        Where the NF runs. What it asks again is not counted against the quota.
    nf
        The NF, as described.
    memory
        The memory contention that can run beside it.
    quota
        The most runs it may have alone and beside benches; None for no limit.
    seed
        Passed on to the testbed with every run.
    done
        Told how many runs were made, each time some were.
    say
        Told what was left out.
    """

    def __init__(
        self,
        testbed: ConfirmedTestbed,
        nf: NfDescription,
        memory: MemoryContention,
        *,
        quota: int | None,
        seed: int,
        done: Callable[[int], None],
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._testbed = testbed
        self._description = testbed.describe()
        self._seed = seed
        self._done = done
        self._say = say
        self._quota = quota
        self._runs: dict[CoLocation, list[Measurement]] = {}
        self._count = 0
        self._failures = 0
        self.co_locations: list[tuple[RealCoLocation, Run]] = []
        """What was run in real company, each company as often as it was run."""
        self.nf = nf
        self.memory = memory
        self.uncertainty: Uncertainty | None = None
        """Tells, per company, how uncertain a model is that has learnt from the runs so far; None without a model."""

    @property
    def base(self) -> TrafficProfile:
        """Default traffic with the least accelerator work: where memory contention is measured."""
        return least_work(self._description, self.nf)

    @property
    def attributes(self) -> dict[str, Range]:
        """The traffic attributes, with their ranges, over which memory contention is to be measured.

        An accelerator NF keeps `mtbr` at its smallest, because its matches load the accelerator.
        """
        ranges = traffic_ranges(self._description)
        return {name: bounds for name, bounds in ranges.items() if not (self.nf.accelerators and name == "mtbr")}

    @property
    def left(self) -> float:
        """Runs that may still be made."""
        return float("inf") if self._quota is None else self._quota - self._count

    def measure(self, co_locations: Iterable[CoLocation], *, sure: bool = False) -> list[float]:
        """Throughput (kpps) of the NF in each company, in order. A company asked before is not run again.

        Parameters
        ----------
        companies
            What is to be run.
        sure
            Every run is confirmed by another, because much hangs on it.

        Raises
        ------
        QuotaSpent
            When not every one fits into the quota; those that do were run.
        TestbedError
            When the testbed fails.
        """
        co_locations = list(co_locations)
        new = list(dict.fromkeys(co_location for co_location in co_locations if co_location not in self._runs))
        fitting = new if self._quota is None else new[: max(self._quota - self._count, 0)]
        self._run(fitting, self._seed, sure)
        if len(fitting) < len(new):
            raise QuotaSpent
        return [self._runs[co_location][0].throughput_kpps for co_location in co_locations]

    def repeat(self, co_location: CoLocation, times: int) -> list[float]:
        """Throughput (kpps) of several runs of the same company, each with noise of its own and confirmed."""
        self.measure([co_location], sure=True)
        for repeat in range(len(self._runs[co_location]), times):
            if self.left < 1:
                raise QuotaSpent
            self._run([co_location], self._seed + REPEAT_SEEDS * repeat, sure=True)
        return [one.throughput_kpps for one in self._runs[co_location]]

    def again(self, co_location: CoLocation, times: int) -> list[float]:
        """Throughput (kpps) of several runs of a company that was measured; the further ones only settle a doubt.

        They count neither against the quota nor in the profile.
        """
        further = [
            self._testbed.again.run_many(self._asked([co_location]), seed=self._seed + REPEAT_SEEDS * repeat)[0]
            for repeat in range(1, times)
        ]
        return [self._runs[co_location][0].throughput_kpps, *(run.measurements[0].throughput_kpps for run in further)]

    def measure_co_locations(self, co_locations: Sequence[RealCoLocation]) -> None:
        """Run each company twice, beyond the quota for benches. Where they disagree, a third run tells which is odd.

        NFs of one testbed need not go together: companies that are refused, or fail however often they are tried, are
        left out, and that is told.

        Raises
        ------
        TestbedError
            When several companies fail one after another: then it is not they.
        """
        first = self._served(co_locations, self._seed)
        again = dict(self._served([co_location for co_location, _ in first], self._seed + REPEAT_SEEDS))
        both = [(co_location, run) for co_location, run in first if co_location in again]
        if left_out := len(co_locations) - len(both):
            self._say(f"{self.nf.name}: {left_out} of {len(co_locations)} companies of NFs do not run here; left out")
        for co_location, run in both:
            self.co_locations += [(co_location, one) for one in self._two_alike(co_location, run, again[co_location])]

    def _served(self, co_locations: Sequence[RealCoLocation], seed: int) -> list[tuple[RealCoLocation, Run]]:
        """A run of each company that the testbed serves; who is not served is found by halving."""
        try:
            runs = list(zip(co_locations, self._testbed.once.run_many(co_locations, seed=seed), strict=True))
        except TestbedChanged:
            raise
        except TestbedError as error:
            if len(co_locations) > 1:
                half = len(co_locations) // 2
                return [*self._served(co_locations[:half], seed), *self._served(co_locations[half:], seed)]
            self._failures += not isinstance(error, RunRefused)
            if self._failures > MOST_FAILURES:
                raise
            return []
        self._failures = 0
        self._done(len(runs))
        return runs

    def _two_alike(self, co_location: RealCoLocation, first: Run, second: Run) -> tuple[Run, Run]:
        if agree(first, second):
            return first, second
        third = self._testbed.again.run_many([co_location], seed=self._seed + REPEAT_SEEDS * TIMES)[0]
        self._testbed.outliers += 1
        return min(combinations((first, second, third), 2), key=lambda pair: disagreement(*pair))

    def all(self) -> list[tuple[TrafficProfile, Contention, Sequence[Measurement]]]:
        """Every company with its measurements (more than one when repeated), in the order first run."""
        return [(traffic, contention, runs) for (traffic, contention), runs in self._runs.items()]

    def settle(self) -> None:
        """Run again what the other runs do not lead one to expect; what is not confirmed gives way to what is."""
        left = self._count // AGAIN_SHARE
        co_locations = list(self._runs)
        settled: set[CoLocation] = set()
        for _ in range(ROUNDS):
            doubted = [co_locations[index] for index in doubtful(*self._as_arrays())]
            doubted = [co_location for co_location in doubted if co_location not in settled][: left - len(settled)]
            settled.update(doubted)
            runs = self._testbed.settled(self._asked(doubted), agreeing=AGREEING, seed=self._seed)
            for co_location, run in zip(doubted, runs, strict=True):
                self._runs[co_location][0] = run.measurements[0]

    def _run(self, co_locations: Sequence[CoLocation], seed: int, sure: bool) -> None:
        testbed = self._testbed if sure else self._testbed.once
        for co_location, run in zip(co_locations, testbed.run_many(self._asked(co_locations), seed=seed), strict=True):
            self._runs.setdefault(co_location, []).append(run.measurements[0])
        self._count += len(co_locations)
        self._done(len(co_locations))

    def _asked(self, co_locations: Sequence[CoLocation]) -> list[list[Load]]:
        return [[Workload(self.nf.name, traffic), *contention.loads] for traffic, contention in co_locations]

    def _as_arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What was run, on scales on which throughput changes evenly, and the logarithm of throughput."""
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
    """Default traffic, for accelerator NFs with the fewest matches that the testbed offers."""
    if not nf.accelerators:
        return description.traffic
    return traffic_with(description.traffic, {"mtbr": description.range_of("mtbr")[0]})


def alone(traffics: Iterable[TrafficProfile]) -> list[CoLocation]:
    """Each traffic with nothing beside the NF."""
    return [(traffic, ALONE) for traffic in traffics]
