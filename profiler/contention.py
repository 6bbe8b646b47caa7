"""Contention by synthetic benches, at levels measured once per testbed, each bench alone (Tomur, appendix F.2)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from profiler.sampling import EvenPoints, at, corners, neat, parameter_at, traffic_ranges, traffic_with
from profiler.testbed import Testbed
from profiles import BenchDescription, BenchLoad, Counters, TestbedDescription, TrafficProfile, Workload

MEMORY_BENCH = "mem-bench"
RATE_SETTING = "rate_kpps"
MEMORY_LEVELS = 64
ACCELERATOR_LEVELS = 10
NEIGHBOUR_TRAFFICS = 4
LIGHT_RATES = (0.2, 0.5)  # rates of light accelerator competitors, as a fraction of what the accelerator carries


def accelerator_bench(accelerator: str) -> str:
    """The name of the bench that loads an accelerator."""
    return f"{accelerator}-bench"


@dataclass(frozen=True, slots=True)
class BenchLevel:
    """One setting of one bench, with what was measured of it alone."""

    load: BenchLoad  # the bench with its parameters
    cores: int  # cores that it takes
    counters: Counters  # its own seven counters, alone
    throughput_kpps: float  # its own throughput, alone
    accelerator: str | None = None  # the accelerator it loads, None for memory
    service_ms: float = 0.0  # time per request on that accelerator when saturated, 1 / throughput
    rate_kpps: float = math.nan  # its offered rate; NaN when it goes as fast as it can


@dataclass(frozen=True)
class Contention:
    """Benches that are co-located with an NF. Counters and service demand are sums over the benches, measured alone."""

    levels: tuple[BenchLevel, ...] = ()

    @property
    def loads(self) -> tuple[BenchLoad, ...]:
        """The benches as a testbed runs them."""
        return tuple(level.load for level in self.levels)

    @cached_property
    def counters(self) -> Counters:
        """The summed seven counters."""
        return Counters.total(level.counters for level in self.levels)

    @property
    def accelerators(self) -> frozenset[str]:
        """The accelerators it loads."""
        return frozenset(level.accelerator for level in self.levels if level.accelerator)

    @property
    def loads_memory(self) -> bool:
        """Whether a memory bench is among them."""
        return any(level.accelerator is None for level in self.levels)

    def service_ms(self, accelerator: str) -> float:
        """Service demand on an accelerator at saturation, ms, each bench having one queue (Tomur, equation 2)."""
        return sum(level.service_ms for level in self.levels if level.accelerator == accelerator)

    def rate_kpps(self, accelerator: str) -> float:
        """Rate offered to an accelerator; NaN when a bench saturates it, or none loads it."""
        rates = [level.rate_kpps for level in self.levels if level.accelerator == accelerator]
        return sum(rates) if rates else math.nan

    def __add__(self, other: "Contention") -> "Contention":
        return Contention(self.levels + other.levels)


NO_CONTENTION = Contention()

OperatingPoint = tuple[TrafficProfile, Contention]
"""Where an NF is measured: its traffic, and the contention it runs under."""


@dataclass(frozen=True)
class AcceleratorLevels:
    """Levels of one accelerator's bench: `saturating`, from the shortest service time to the longest, and `light`."""

    saturating: tuple[BenchLevel, ...]
    light: tuple[BenchLevel, ...] = ()


@dataclass(frozen=True)
class BenchLevels:
    """The contention levels of a testbed's benches; empty where it has no such bench."""

    memory: tuple[BenchLevel, ...] = ()
    accelerators: dict[str, AcceleratorLevels] = field(default_factory=dict)

    def all(self) -> list[BenchLevel]:
        """Every level, in the order of `benches.csv`."""
        return [*self.memory, *(level for a in self.accelerators.values() for level in (*a.saturating, *a.light))]


def measure_benches(testbed: Testbed, seed: int, done: Callable[[int], None]) -> BenchLevels:
    """Run every bench alone, over its parameters. `testbed`: where they run. `seed`: chooses the settings. `done`:
    called with the number of runs, after each batch."""
    description = testbed.describe()
    rng = np.random.default_rng([seed, 0])
    bench = fitting_bench(description, MEMORY_BENCH)
    memory: list[BenchLevel] = []
    if bench:
        settings = [setting | _flat_out(bench) for setting in _settings(bench, MEMORY_LEVELS, rng)]
        memory = _alone(testbed, bench, settings, None, seed)
        done(len(memory))
    accelerators = {}
    for accelerator in list_accelerators(description):
        if bench := fitting_bench(description, accelerator_bench(accelerator)):
            accelerators[accelerator] = _accelerator_levels(testbed, bench, accelerator, rng, seed)
            done(len(accelerators[accelerator].saturating) + len(accelerators[accelerator].light))
    return BenchLevels(tuple(memory), accelerators)


def alone_runs(description: TestbedDescription) -> int:
    """About how many runs `measure_benches` and `measure_neighbours` take."""
    benches = [fitting_bench(description, accelerator_bench(name)) for name in list_accelerators(description)]
    memory = MEMORY_LEVELS if fitting_bench(description, MEMORY_BENCH) else 0
    return (
        NEIGHBOUR_TRAFFICS * len(description.fitting_nfs)
        + memory
        + sum(ACCELERATOR_LEVELS + 2 * len(LIGHT_RATES) for bench in benches if bench)
    )


def list_accelerators(description: TestbedDescription) -> list[str]:
    """The accelerators of the NIC and of its NFs, each once, in the order of the description."""
    used = (accelerator for nf in description.nfs for accelerator in nf.accelerators)
    return list(dict.fromkeys([*description.nic.accelerators, *used]))


def fitting_bench(description: TestbedDescription, name: str) -> BenchDescription | None:
    """The bench of that name; None where there is none, or it needs more cores than the NIC has."""
    bench = description.bench(name)
    return bench if bench and bench.cores <= description.nic.cores else None


def _accelerator_levels(
    testbed: Testbed, bench: BenchDescription, accelerator: str, rng: Generator, seed: int
) -> AcceleratorLevels:
    """Saturating levels over what sets the service time, then light ones at the middle and the longest time."""
    flat_out = [setting | _flat_out(bench) for setting in _settings(bench, ACCELERATOR_LEVELS, rng)]
    saturating = sorted(_alone(testbed, bench, flat_out, accelerator, seed), key=lambda level: level.service_ms)
    light = []
    if RATE_SETTING in bench.parameters:
        low, high = bench.parameters[RATE_SETTING]
        for level in dict.fromkeys((saturating[len(saturating) // 2], saturating[-1])):
            rates = [
                rate for share in LIGHT_RATES if max(low, 1e-9) <= (rate := neat(share / level.service_ms)) <= high
            ]
            settings = [dict(level.load.parameters) | {RATE_SETTING: rate} for rate in rates]
            light += _alone(testbed, bench, settings, accelerator, seed, service_ms=level.service_ms)
    return AcceleratorLevels(tuple(saturating), tuple(light))


def _settings(bench: BenchDescription, count: int, rng: Generator) -> list[dict[str, float]]:
    """Parameters at the ends of their ranges in every combination, and evenly between; without the rate."""
    names = tuple(name for name in bench.parameters if name != RATE_SETTING)
    if not names:
        return [{}]
    ends = corners(names)
    between = EvenPoints(len(names), rng).take(max(count - len(ends), 0))
    positions = ends + [dict(zip(names, point, strict=True)) for point in between.tolist()]
    settings = [{name: parameter_at(bench.parameters[name], spot[name]) for name in names} for spot in positions]
    return list({tuple(setting.items()): setting for setting in settings}.values())


def _flat_out(bench: BenchDescription) -> dict[str, float]:
    """The rate that means as fast as it goes: 0, or the highest rate where 0 is outside the range."""
    if RATE_SETTING not in bench.parameters:
        return {}
    low, high = bench.parameters[RATE_SETTING]
    return {RATE_SETTING: 0.0 if low <= 0 <= high else high}


def _alone(
    testbed: Testbed,
    bench: BenchDescription,
    settings: Sequence[dict[str, float]],
    accelerator: str | None,
    seed: int,
    service_ms: float | None = None,
) -> list[BenchLevel]:
    """Measure each setting alone. With `service_ms` the settings are light: of that service time, at their own rate."""
    loads = [BenchLoad.of(bench.name, setting) for setting in settings]
    levels = []
    for load, run in zip(loads, testbed.run_many([[load] for load in loads], seed=seed), strict=True):
        (alone,) = run.measurements
        demand = (1 / alone.throughput_kpps if service_ms is None else service_ms) if accelerator else 0.0
        rate = math.nan if service_ms is None else dict(load.parameters)[RATE_SETTING]
        levels.append(BenchLevel(load, bench.cores, alone.counters, alone.throughput_kpps, accelerator, demand, rate))
    return levels


# The memory contention that an NF is measured under: mixtures of benches, half of them similar to co-located NFs.


TINY_LEVEL = 1e-9


@dataclass(frozen=True, slots=True)
class Neighbour:
    """An NF of the testbed as a neighbour: its counters alone, and the cores it takes."""

    cores: int
    counters: Counters


def measure_neighbours(testbed: Testbed, seed: int, done: Callable[[int], None]) -> list[Neighbour]:
    """Every NF that fits the NIC, alone, at default traffic and at a few others. `testbed`: where they run. `seed`:
    chooses the other traffic. `done`: called with the number of runs."""
    description = testbed.describe()
    traffics = neighbour_traffics(description, seed)
    requested = [(nf, traffic) for nf in description.fitting_nfs for traffic in traffics]
    runs = testbed.run_many([[Workload(nf.name, traffic)] for nf, traffic in requested], seed=seed)
    done(len(runs))
    return [Neighbour(nf.cores, run.measurements[0].counters) for (nf, _), run in zip(requested, runs, strict=True)]


def neighbour_traffics(description: TestbedDescription, seed: int) -> list[TrafficProfile]:
    """The traffic of NFs that are measured as neighbours: the default, and some other."""
    ranges = traffic_ranges(description)
    others = EvenPoints(len(ranges), np.random.default_rng([seed, 1])).take(NEIGHBOUR_TRAFFICS - 1)
    return [description.traffic] + [
        traffic_with(description.traffic, {name: at(ranges[name], p) for name, p in zip(ranges, spot, strict=True)})
        for spot in others.tolist()
    ]


class MemoryContention:
    """Memory contention of every strength for one NF: no bench, the strongest, mixtures, and mixtures similar to NFs.

    A mixture is one or more bench instances, as many as fit, in one setting or two: summed counters of co-located NFs
    (a large and slow one with a small and fast one) are matched by few or many benches of any kind. Mixtures alone
    hardly cover the mild contention that NFs cause, so half of them are chosen for their similarity to co-located NFs:
    the mixture with the nearest summed counters. `levels`: the memory bench's settings, measured alone. `cores`: cores
    that the NF leaves free. `rng`: draws the mixtures. `neighbours`: the NFs that may share the NIC; without any, no
    mixture is chosen by similarity."""

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
            return NO_CONTENTION
        hardest = max(
            self._levels, key=lambda level: level.counters.wss * (level.counters.l2crd + level.counters.l2cwr)
        )
        count = self.most if cores is None else min(self.most, cores // hardest.cores)
        return Contention((hardest,) * count)

    def draw(self, count: int) -> list[Contention]:
        """`count` levels: of every 24, two without bench, two strongest, the others mixtures, half similar to NFs."""
        if not self.most:
            return [NO_CONTENTION] * count
        while len(self._prepared) < count:
            extremes = [NO_CONTENTION, self.strongest()] * 2
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
        target = np.log(np.maximum(Counters.total(co_located).as_array(), TINY_LEVEL))
        return candidates[int((((logs - target) / spread) ** 2).sum(axis=1).argmin())]

    @cached_property
    def _candidates(self) -> tuple[list[Contention], NDArray[np.float64], NDArray[np.float64]]:
        """Mixtures, the logarithms of their summed counters, and the standard deviation of each."""
        mixtures = [self._mixture(index % self.most + 1, mixed=index % 2 == 1) for index in range(self.CANDIDATES)]
        logs = np.log(np.maximum(np.array([mixture.counters.as_array() for mixture in mixtures]), TINY_LEVEL))
        return mixtures, logs, np.maximum(logs.std(axis=0), TINY_LEVEL)

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
