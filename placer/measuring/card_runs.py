"""What was measured on one card: every run of every co-location, and how far runs of the same co-location differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence, Set

import numpy as np

from predictor.training.noise import noise_of_a_run
from profiler.testbed import Run, Testbed, TestbedWrapper, refuse_invalid
from profiler.working_runs import WorkingRuns
from profiles import CoLocation, Load, Workload


class CardRuns:
    """Runs on a testbed, with noise as a user has it.

    Parameters
    ----------
    testbed
        Runs the co-locations.
    seed
        Of the noise of a simulated testbed; repeats of a co-location differ.
    say
        Called with a line about co-locations that do not run.
    """

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
        """Run each co-location once; a co-location is sorted and named once. What does not run is left out.

        Raises
        ------
        TestbedError
            When the testbed itself fails, rather than a co-location on it.
        """
        by_repeat: defaultdict[int, list[CoLocation]] = defaultdict(list)
        for co_location in co_locations:
            by_repeat[self.runs(co_location)].append(co_location)
        for repeat, group in sorted(by_repeat.items()):
            self._working = self._working or WorkingRuns(self._testbed, group[0][0], lambda runs: None)
            seed = int(np.random.SeedSequence([self._seed, repeat]).generate_state(1)[0])
            # several at a time only where the testbed gains by it: a batch with a failure is run again in parts
            batches = [group] if self._testbed.batches else [[one] for one in group]
            answered = {one: run for batch in batches for one, run in self._working.run(batch, seed)}
            for co_location, run in answered.items():
                self._keep(co_location, [one.throughput_kpps for one in run.measurements])
            self._leave_out([one for one in group if one not in answered])

    def _leave_out(self, failed: Sequence[CoLocation]) -> None:
        for co_location in failed:
            self.refused.add(co_location)
            self._say(f"{', '.join(one.nf for one in co_location)}: do not run on the testbed; left out")

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
