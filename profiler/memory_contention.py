"""The memory contention that an NF is measured under: mixtures of benches, half of them similar to co-located NFs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from profiler.contention import ALONE, NEIGHBOUR_TRAFFICS, BenchLevel, Contention
from profiler.sampling import EvenPoints, at, traffic_ranges, traffic_with
from profiler.testbed import Testbed
from profiles import Counters, Workload

TINY = 1e-9


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An NF of the testbed as a neighbour: its counters alone, and the cores it takes."""

    cores: int
    counters: Counters


def measure_neighbours(testbed: Testbed, seed: int, done: Callable[[int], None]) -> list[Neighbour]:
    """Every NF that fits the NIC, alone, at default traffic and at a few others.

    Parameters
    ----------
    testbed
        Where they run.
    seed
        Chooses the other traffic.
    done
        Called with the number of runs.
    """
    description = testbed.describe()
    ranges = traffic_ranges(description)
    others = EvenPoints(len(ranges), np.random.default_rng([seed, 1])).take(NEIGHBOUR_TRAFFICS - 1)
    traffics = [description.traffic] + [
        traffic_with(description.traffic, {name: at(ranges[name], p) for name, p in zip(ranges, spot, strict=True)})
        for spot in others.tolist()
    ]
    requested = [(nf, traffic) for nf in description.fitting_nfs for traffic in traffics]
    runs = testbed.run_many([[Workload(nf.name, traffic)] for nf, traffic in requested], seed=seed)
    done(len(runs))
    return [Neighbour(nf.cores, run.measurements[0].counters) for (nf, _), run in zip(requested, runs, strict=True)]


class MemoryContention:
    """Memory contention of every strength for one NF: no bench, the strongest, mixtures, and mixtures similar to NFs.

    A mixture is one or more bench instances, as many as fit, in one setting or two: summed counters of co-located NFs
    (a large and slow one with a small and fast one) are matched by few or many benches of any kind. Mixtures alone
    hardly cover the mild contention that NFs cause, so half of them are chosen for their similarity to co-located NFs:
    the mixture with the nearest summed counters.

    Parameters
    ----------
    levels
        The memory bench's settings, measured alone.
    cores
        Cores that the NF leaves free.
    rng
        Draws the mixtures.
    neighbours
        The NFs that may share the NIC; without any, no mixture is chosen by similarity.
    """

    BLOCK = 24
    CANDIDATES = 2000

    def __init__(
        self, levels: Sequence[BenchLevel], cores: int, rng: Generator, neighbours: Sequence[Neighbour] = ()
    ) -> None:
        self._levels = levels
        self._rng = rng
        self._cores = cores
        self._neighbours = [neighbour for neighbour in neighbours if neighbour.cores <= cores]
        self.most = cores // levels[0].cores if levels else 0
        self._prepared: list[Contention] = []
        self._settings: list[BenchLevel] = []

    def strongest(self, cores: int | None = None) -> Contention:
        """As many benches as fit (into `cores`, when given) in the setting with the most working set times accesses."""
        if not self.most:
            return ALONE
        hardest = max(
            self._levels, key=lambda level: level.counters.wss * (level.counters.l2crd + level.counters.l2cwr)
        )
        count = self.most if cores is None else min(self.most, cores // hardest.cores)
        return Contention((hardest,) * count)

    def draw(self, count: int) -> list[Contention]:
        """`count` levels: of every 24, two without bench, two strongest, the others mixtures, half similar to NFs."""
        if not self.most:
            return [ALONE] * count
        while len(self._prepared) < count:
            extremes = [ALONE, self.strongest()] * 2
            sizes = self._rng.permutation(np.arange(self.BLOCK - len(extremes)) % self.most) + 1
            block = extremes + [self._between(index, size) for index, size in enumerate(sizes.tolist())]
            self._prepared += [block[index] for index in self._rng.permutation(len(block))]
        drawn, self._prepared = self._prepared[:count], self._prepared[count:]
        return drawn

    def mixtures(self, count: int) -> list[Contention]:
        """`count` levels between the extremes."""
        if not self.most:
            return []
        return [self._between(index, index % self.most + 1) for index in range(count)]

    def _between(self, index: int, instances: int) -> Contention:
        """Mixtures similar to NFs and random ones in turn, the latter of one setting and of two in turn."""
        if self._neighbours and index % 2 == 0:
            return self._similar_to_nfs()
        return self._mixture(instances, mixed=index % 4 > 1 if self._neighbours else index % 2 == 1)

    def _similar_to_nfs(self) -> Contention:
        """The mixture most similar to random co-located NFs, by the logarithms of its summed counters."""
        candidates, logs, spread = self._candidates
        co_located: list[Counters] = []
        free = self._cores
        most = int(self._rng.integers(1, 1 + self._cores // min(neighbour.cores for neighbour in self._neighbours)))
        for index in self._rng.permutation(len(self._neighbours)).tolist():
            neighbour = self._neighbours[index]
            if neighbour.cores <= free and len(co_located) < most:
                co_located.append(neighbour.counters)
                free -= neighbour.cores
        target = np.log(np.maximum(Counters.total(co_located).as_array(), TINY))
        return candidates[int((((logs - target) / spread) ** 2).sum(axis=1).argmin())]

    @cached_property
    def _candidates(self) -> tuple[list[Contention], NDArray[np.float64], NDArray[np.float64]]:
        """Mixtures, the logarithms of their summed counters, and the standard deviation of each."""
        mixtures = [self._mixture(index % self.most + 1, mixed=index % 2 == 1) for index in range(self.CANDIDATES)]
        logs = np.log(np.maximum(np.array([mixture.counters.as_array() for mixture in mixtures]), TINY))
        return mixtures, logs, np.maximum(logs.std(axis=0), TINY)

    def _mixture(self, instances: int, *, mixed: bool) -> Contention:
        first = self._setting()
        if not mixed or instances == 1:
            return Contention((first,) * instances)
        others = int(self._rng.integers(1, instances))
        return Contention((first,) * (instances - others) + (self._setting(),) * others)

    def _setting(self) -> BenchLevel:
        """A random setting; each once before any is repeated."""
        if not self._settings:
            self._settings = [self._levels[index] for index in self._rng.permutation(len(self._levels))]
        return self._settings.pop()
