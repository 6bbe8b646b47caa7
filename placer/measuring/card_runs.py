"""What was measured on one card: every run of every co-location, and how far runs of the same co-location differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence, Set

import numpy as np

from predictor.training.noise import noise_of_a_run
from profiler.testbed import Testbed, refuse_invalid
from profiles import CoLocation, Workload


class CardRuns:
    """Runs on a testbed, with noise as a user has it.

    Parameters
    ----------
    testbed
        Runs the co-locations.
    seed
        Of the noise of a simulated testbed; repeats of a co-location differ.
    """

    def __init__(self, testbed: Testbed, seed: int) -> None:
        self._testbed = testbed
        self._seed = seed
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
        """Run each co-location once; a co-location is sorted and named once.

        Raises
        ------
        TestbedError
            When the testbed fails, or reports what cannot be a measurement.
        """
        by_repeat: defaultdict[int, list[CoLocation]] = defaultdict(list)
        for co_location in co_locations:
            by_repeat[self.runs(co_location)].append(co_location)
        for repeat, group in sorted(by_repeat.items()):
            seed = int(np.random.SeedSequence([self._seed, repeat]).generate_state(1)[0])
            for co_location, run in zip(group, self._testbed.run_many(group, noise=True, seed=seed), strict=True):
                refuse_invalid(run)
                self._keep(co_location, [one.throughput_kpps for one in run.measurements])

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
