"""Contention by synthetic benches, at levels measured once per testbed, each bench alone (Tomur, appendix F.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.random import Generator

from profiler.sampling import EvenPoints, corners, neat, parameter_at
from profiler.testbed import Testbed
from profiles import BenchDescription, BenchLoad, Counters, TestbedDescription, TrafficProfile

MEMORY_BENCH = "mem-bench"
RATE = "rate_kpps"
MEMORY_LEVELS = 64
ACCELERATOR_LEVELS = 10
NEIGHBOUR_TRAFFICS = 4
LIGHT = (0.2, 0.5)
"""Rates of light accelerator competitors, as a fraction of what the accelerator carries."""


def accelerator_bench(accelerator: str) -> str:
    """The name of the bench that loads an accelerator."""
    return f"{accelerator}-bench"


@dataclass(frozen=True, slots=True)
class BenchLevel:
    """One setting of one bench, with what was measured of it alone.

    Parameters
    ----------
    load
        The bench with its parameters.
    cores
        Cores that it takes.
    counters
        Its own seven counters, alone.
    throughput_kpps
        Its own throughput, alone.
    accelerator
        The accelerator it loads, None for memory.
    service_ms
        Time per request on that accelerator when saturated, 1 / throughput.
    rate_kpps
        Its offered rate; NaN when it goes as fast as it can.
    """

    load: BenchLoad
    cores: int
    counters: Counters
    throughput_kpps: float
    accelerator: str | None = None
    service_ms: float = 0.0
    rate_kpps: float = math.nan


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

    def __add__(self, other: Contention) -> Contention:
        return Contention(self.levels + other.levels)


ALONE = Contention()

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
        return [*self.memory, *(one for a in self.accelerators.values() for one in (*a.saturating, *a.light))]


def measure_benches(testbed: Testbed, seed: int, done: Callable[[int], None]) -> BenchLevels:
    """Run every bench alone, over its parameters.

    Parameters
    ----------
    testbed
        Where they run.
    seed
        Chooses the settings.
    done
        Called with the number of runs, after each batch.
    """
    description = testbed.describe()
    rng = np.random.default_rng([seed, 0])
    bench = fitting_bench(description, MEMORY_BENCH)
    memory: list[BenchLevel] = []
    if bench:
        settings = [setting | _flat_out(bench) for setting in _settings(bench, MEMORY_LEVELS, rng)]
        memory = _alone(testbed, bench, settings, None, seed)
        done(len(memory))
    accelerators = {}
    for accelerator in described_accelerators(description):
        if bench := fitting_bench(description, accelerator_bench(accelerator)):
            accelerators[accelerator] = _accelerator_levels(testbed, bench, accelerator, rng, seed)
            done(len(accelerators[accelerator].saturating) + len(accelerators[accelerator].light))
    return BenchLevels(tuple(memory), accelerators)


def alone_runs(description: TestbedDescription) -> int:
    """About how many runs `measure_benches` and `measure_neighbours` take."""
    benches = [fitting_bench(description, accelerator_bench(name)) for name in described_accelerators(description)]
    memory = MEMORY_LEVELS if fitting_bench(description, MEMORY_BENCH) else 0
    return (
        NEIGHBOUR_TRAFFICS * len(description.fitting_nfs)
        + memory
        + sum(ACCELERATOR_LEVELS + 2 * len(LIGHT) for bench in benches if bench)
    )


def described_accelerators(description: TestbedDescription) -> list[str]:
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
    if RATE in bench.parameters:
        low, high = bench.parameters[RATE]
        for level in dict.fromkeys((saturating[len(saturating) // 2], saturating[-1])):
            rates = [rate for share in LIGHT if max(low, 1e-9) <= (rate := neat(share / level.service_ms)) <= high]
            settings = [dict(level.load.parameters) | {RATE: rate} for rate in rates]
            light += _alone(testbed, bench, settings, accelerator, seed, service_ms=level.service_ms)
    return AcceleratorLevels(tuple(saturating), tuple(light))


def _settings(bench: BenchDescription, count: int, rng: Generator) -> list[dict[str, float]]:
    """Parameters at the ends of their ranges in every combination, and evenly between; without the rate."""
    names = tuple(name for name in bench.parameters if name != RATE)
    if not names:
        return [{}]
    ends = corners(names)
    between = EvenPoints(len(names), rng).take(max(count - len(ends), 0))
    positions = ends + [dict(zip(names, point, strict=True)) for point in between.tolist()]
    settings = [{name: parameter_at(bench.parameters[name], spot[name]) for name in names} for spot in positions]
    return list({tuple(setting.items()): setting for setting in settings}.values())


def _flat_out(bench: BenchDescription) -> dict[str, float]:
    """The rate that means as fast as it goes: 0, or the highest rate where 0 is outside the range."""
    if RATE not in bench.parameters:
        return {}
    low, high = bench.parameters[RATE]
    return {RATE: 0.0 if low <= 0 <= high else high}


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
        rate = math.nan if service_ms is None else dict(load.parameters)[RATE]
        levels.append(BenchLevel(load, bench.cores, alone.counters, alone.throughput_kpps, accelerator, demand, rate))
    return levels
