"""Runs of co-locations on a GPU server, several times each, and what is left of their repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from profiler.testbed import GPU_STAGES, LATENCIES, Measurement, RunRefused, Testbed, TestbedChanged, TestbedError
from profiles import PacedWorkload

GpuCoLocation = tuple[PacedWorkload, ...]

AGREE = 0.1
"""Mean latencies of two runs that differ by more are decided by a third."""
CARRIED = 0.9
"""A smaller share of the offered packets that leaves means overload; bursts make short runs differ by less."""
SEEDS = 3_000_017
AT_ONCE = 64
MOST_FAILURES = 3
"""Co-locations that may fail one after another before the testbed itself is taken to have failed."""


@dataclass(frozen=True)
class MeasuredGpuRun:
    """A co-location with the measurements of each workload, one per repeat."""

    loads: GpuCoLocation
    repeats: tuple[tuple[Measurement, ...], ...]

    def latency_us(self, at: int, name: str) -> float:
        """A latency of one workload (`mean`, `p50`, `p99`): the median of its repeats."""
        return self._median(at, "latency_us", name)

    def stage_us(self, at: int, stage: str) -> float:
        """The mean time in a stage, by its name in the protocol."""
        return self._median(at, "stages_us", stage)

    def stage_p99_us(self, at: int, stage: str) -> float | None:
        """The p99 of a stage; None where the testbed does not measure it."""
        if any(one.stages_p99_us is None for one in self.repeats[at]):
            return None
        return self._median(at, "stages_p99_us", stage)

    def kpps(self, at: int) -> float:
        """The throughput of one workload."""
        return median(one.throughput_kpps for one in self.repeats[at])

    def spread_us(self, at: int, stage: str) -> float:
        """The largest less the smallest mean of a stage over the repeats."""
        values = list(self._values(at, "stages_us", stage))
        return max(values) - min(values)

    @property
    def overloaded(self) -> bool:
        """Whether a workload carries less than it is offered."""
        return any(self.kpps(at) < CARRIED * load.rate_kpps for at, load in enumerate(self.loads))

    def _median(self, at: int, field: str, name: str) -> float:
        return median(self._values(at, field, name))

    def _values(self, at: int, field: str, name: str) -> Iterator[float]:
        for one in self.repeats[at]:
            times = getattr(one, field)
            yield float(getattr(times, "returned" if name == "return" else name))


class GpuRuns:
    """Runs co-locations on a testbed, each several times.

    Parameters
    ----------
    testbed
        Where they run; it keeps what it measured.
    seed
        Of the noise of a simulated testbed; each repeat has its own.
    done
        Called with the number of runs, after each batch.
    """

    def __init__(self, testbed: Testbed, seed: int, done: Callable[[int], None] = lambda runs: None) -> None:
        self._testbed = testbed
        self._seed = seed
        self._done = done
        self.made = 0
        """Runs, repeats counted."""
        self.left_out: list[GpuCoLocation] = []
        """Co-locations that the testbed refuses, or that fail at every attempt: a server may end under overload."""
        self._failures = 0

    def measure(self, co_locations: Sequence[GpuCoLocation], repeats: int) -> list[MeasuredGpuRun]:
        """The co-locations that run, in order; repeats that disagree are decided by a further one.

        Raises
        ------
        TestbedError
            When the testbed fails, or measures no latency.
        """
        found: dict[GpuCoLocation, list[tuple[Measurement, ...]]] = {}
        for repeat in range(repeats):
            wanted = [one for one in dict.fromkeys(co_locations) if not repeat or one in found]
            for one, run in self._run(wanted, repeat):
                found.setdefault(one, []).append(run)
        doubted = [one for one, runs in found.items() if len(runs) == 2 and not _agree(*runs)]
        for one, run in self._run(doubted, repeats):
            found[one].append(run)
        return [MeasuredGpuRun(one, tuple(zip(*runs, strict=True))) for one, runs in found.items()]

    def _run(
        self, co_locations: Sequence[GpuCoLocation], repeat: int
    ) -> Iterator[tuple[GpuCoLocation, tuple[Measurement, ...]]]:
        for start in range(0, len(co_locations), AT_ONCE):
            yield from self._run_some(co_locations[start : start + AT_ONCE], self._seed + SEEDS * (repeat + 1))

    def _run_some(
        self, co_locations: Sequence[GpuCoLocation], seed: int
    ) -> list[tuple[GpuCoLocation, tuple[Measurement, ...]]]:
        try:
            runs = self._testbed.run_many(co_locations, seed=seed)
        except TestbedChanged:
            raise
        except TestbedError as error:
            if len(co_locations) > 1:
                half = len(co_locations) // 2
                return [*self._run_some(co_locations[:half], seed), *self._run_some(co_locations[half:], seed)]
            if not isinstance(error, RunRefused):
                self._failures += 1
                if self._failures > MOST_FAILURES:
                    raise
            self.left_out += co_locations
            return []
        self._failures = 0
        self.made += len(runs)
        self._done(len(runs))
        for run in runs:
            _refuse_without_latency(run.measurements)
        return [(one, run.measurements) for one, run in zip(co_locations, runs, strict=True)]


def _agree(one: Sequence[Measurement], other: Sequence[Measurement]) -> bool:
    pairs = [(here.latency_us, there.latency_us) for here, there in zip(one, other, strict=True)]
    return all(
        abs(here.mean - there.mean) <= AGREE * max(here.mean, there.mean) for here, there in pairs if here and there
    )


def _refuse_without_latency(measurements: Sequence[Measurement]) -> None:
    if any(one.latency_us is None or one.stages_us is None for one in measurements):
        names = f"latency_us ({', '.join(LATENCIES)}) and stages_us ({', '.join(GPU_STAGES)})"
        raise TestbedError(f"testbed answers NFs on a GPU without {names}")
