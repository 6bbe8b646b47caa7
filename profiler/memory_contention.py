"""The memory contention that runs beside an NF: mixtures of benches, half of them alike to companies of NFs."""

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
    """What an NF of the testbed exerts alone, and the cores it takes."""

    cores: int
    counters: Counters


def measure_neighbours(testbed: Testbed, seed: int, done: Callable[[int], None]) -> list[Neighbour]:
    """Every hosted NF alone, at default traffic and at a few others.

    Parameters
    ----------
    testbed
        Where they run.
    seed
        Chooses the other traffic.
    done
        Told how many runs were made.
    """
    description = testbed.describe()
    ranges = traffic_ranges(description)
    others = EvenPoints(len(ranges), np.random.default_rng([seed, 1])).take(NEIGHBOUR_TRAFFICS - 1)
    traffics = [description.traffic] + [
        traffic_with(description.traffic, {name: at(ranges[name], p) for name, p in zip(ranges, spot, strict=True)})
        for spot in others.tolist()
    ]
    asked = [(nf, traffic) for nf in description.nfs for traffic in traffics]
    runs = testbed.run_many([[Workload(nf.name, traffic)] for nf, traffic in asked], seed=seed)
    done(len(runs))
    return [Neighbour(nf.cores, run.measurements[0].counters) for (nf, _), run in zip(asked, runs, strict=True)]


class MemoryContention:
    """Memory contention of every strength beside one NF: no bench, the strongest, mixtures, and likenesses of NFs.

    A mixture is one to as many bench instances as fit, in one setting or two, because the counters of one company of
    NFs (big and slow beside small and fast) are met by few or many benches of any kind. Mixtures alone teach little of
    the mild contention that NFs exert, so half of them are chosen for their likeness to a company of NFs: the one
    whose summed counters are nearest.

    Parameters
    ----------
    levels
        The memory bench's settings, measured alone.
    cores
        Cores that the NF leaves free.
    rng
        Draws the mixtures.
    neighbours
        The NFs that may share the NIC; none: no likenesses.
    """

    DECK = 24
    CANDIDATES = 2000

    def __init__(
        self, levels: Sequence[BenchLevel], cores: int, rng: Generator, neighbours: Sequence[Neighbour] = ()
    ) -> None:
        self._levels = levels
        self._rng = rng
        self._cores = cores
        self._neighbours = [neighbour for neighbour in neighbours if neighbour.cores <= cores]
        self.most = cores // levels[0].cores if levels else 0
        self._hand: list[Contention] = []
        self._settings: list[BenchLevel] = []

    def strongest(self, cores: int | None = None) -> Contention:
        """As many benches as fit (into `cores`, when told) in the setting with the most working set times accesses."""
        if not self.most:
            return ALONE
        hardest = max(
            self._levels, key=lambda level: level.counters.wss * (level.counters.l2crd + level.counters.l2cwr)
        )
        count = self.most if cores is None else min(self.most, cores // hardest.cores)
        return Contention((hardest,) * count)

    def draw(self, count: int) -> list[Contention]:
        """`count` levels: of every 24, two with no bench, two strongest, the others mixtures and likenesses."""
        if not self.most:
            return [ALONE] * count
        while len(self._hand) < count:
            extremes = [ALONE, self.strongest()] * 2
            sizes = self._rng.permutation(np.arange(self.DECK - len(extremes)) % self.most) + 1
            deck = extremes + [self._between(index, size) for index, size in enumerate(sizes.tolist())]
            self._hand += [deck[index] for index in self._rng.permutation(len(deck))]
        drawn, self._hand = self._hand[:count], self._hand[count:]
        return drawn

    def mixtures(self, count: int) -> list[Contention]:
        """`count` levels between the extremes."""
        if not self.most:
            return []
        return [self._between(index, index % self.most + 1) for index in range(count)]

    def _between(self, index: int, instances: int) -> Contention:
        """Likenesses and mixtures in turn, the latter pure and mixed in turn."""
        if self._neighbours and index % 2 == 0:
            return self._likeness()
        return self._mixture(instances, mixed=index % 4 > 1 if self._neighbours else index % 2 == 1)

    def _likeness(self) -> Contention:
        """The mixture most like a random company of NFs, by the logarithms of its summed counters."""
        candidates, logs, spread = self._candidates
        co_location: list[Counters] = []
        free = self._cores
        most = int(self._rng.integers(1, 1 + self._cores // min(neighbour.cores for neighbour in self._neighbours)))
        for index in self._rng.permutation(len(self._neighbours)).tolist():
            neighbour = self._neighbours[index]
            if neighbour.cores <= free and len(co_location) < most:
                co_location.append(neighbour.counters)
                free -= neighbour.cores
        target = np.log(np.maximum(Counters.total(co_location).as_array(), TINY))
        return candidates[int((((logs - target) / spread) ** 2).sum(axis=1).argmin())]

    @cached_property
    def _candidates(self) -> tuple[list[Contention], NDArray[np.float64], NDArray[np.float64]]:
        """Mixtures, the logarithms of their summed counters, and how widely those are spread."""
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
        """Every setting once before any comes again."""
        if not self._settings:
            self._settings = [self._levels[index] for index in self._rng.permutation(len(self._levels))]
        return self._settings.pop()
