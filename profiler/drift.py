"""Drift: a reference run comes again and again, and tells how the testbed changes while it is measured on.

A card that warms up or shares its host gets slower over hours, and no single run shows it. The reference, an NF alone
at default traffic, is run five times before the benches and before each NF, and then every `EVERY_RUNS` runs or
`EVERY_S` seconds, whichever is first. Drift is the median of its last five readings over the median of the first five
of all, so that neither noise nor an outlier passes for drift.

- Up to `FELT` it is noise, and nothing is done.
- Up to `MOST` throughputs are divided by it, and it is reported. Counters stay as read: most of them are rates that
  the NF does not set alone.
  What is left of a drift of 10 % an hour is below 5 %: 3 % that are not felt, and what came since the middle reading.
- Beyond, the profiling ends: so much has changed that one factor for all workloads is a guess.

Readings are in the journal like all runs, and when they come is decided by the runs of the benches or the NF and their
recorded times alone: a resumed profiling corrects as an undisturbed one would, and NFs hang on nobody but the benches.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from profiler.testbed import Run, Testbed, TestbedError, TestbedInFront
from profiles import Load, TestbedDescription, Workload

EVERY_RUNS = 50
EVERY_S = 120.0
WINDOW = 5
FELT = 0.03
MOST = 0.2
TOLD_AGAIN = 0.05
REFERENCE_SEEDS = 101
PARTS = 1_000_000_007


class Reference:
    """The reference run of a profiling, and what it tells of drift.

    Parameters
    ----------
    testbed
        Where it runs.
    seed
        Readings have seeds of their own after it.
    say
        Told when drift is felt, and when it has grown much.
    since
        The readings that drift is measured against; its own when None.
    part
        What is measured meanwhile; it tells readings from those of other parts.
    """

    def __init__(
        self,
        testbed: Testbed,
        seed: int,
        say: Callable[[str], None],
        *,
        since: Reference | None = None,
        part: str = "",
    ) -> None:
        self._testbed = testbed
        self._co_location = _reference(testbed.describe())
        self._seed = seed + zlib.crc32(part.encode()) % PARTS
        self._say = say
        self._since = since or self
        self._readings: list[float] = []
        self._runs = 0
        self._elapsed_s = 0.0
        self._told = 1.0
        self.factor = 1.0

    @property
    def room(self) -> int:
        """Runs that may be made before the next reading, at least one."""
        return max(EVERY_RUNS - self._runs, 1) if self._co_location else EVERY_RUNS

    def begin(self) -> None:
        """Take the first readings, if that has not been done.

        Raises
        ------
        TestbedError
            When the testbed fails.
        """
        if not self._co_location or self._readings:
            return
        if self._since is not self:
            self._since.begin()
        self._read(WINDOW)
        self._judge()

    def passed(self, runs: Sequence[Run]) -> None:
        """Count `runs`, and read again if it is time.

        Raises
        ------
        TestbedError
            When the testbed fails, or has drifted too far.
        """
        self._runs += len(runs)
        self._elapsed_s += math.fsum(run.elapsed_s for run in runs)
        if self._co_location and (self._runs >= EVERY_RUNS or self._elapsed_s >= EVERY_S):
            self._read(1)
            self._judge()

    def _read(self, times: int) -> None:
        for _ in range(times):
            seed = self._seed + REFERENCE_SEEDS * (len(self._readings) + 1)
            run = self._testbed.run(self._co_location, seed=seed)
            self._readings.append(run.measurements[0].throughput_kpps)
        self._runs, self._elapsed_s = 0, 0.0

    def _judge(self) -> None:
        drift = median(self._readings[-WINDOW:]) / median(self._since._readings[:WINDOW])
        shown = f"the reference run is {100 * (drift - 1):+.1f} % off its beginning"
        if abs(drift - 1) > MOST:
            raise TestbedError(
                f"testbed drifts: {shown}, more than the {100 * MOST:g} % that can be corrected; let it settle, then "
                "profile into another --out"
            )
        self.factor = drift if abs(drift - 1) > FELT else 1.0
        if abs(self.factor - self._told) >= TOLD_AGAIN or (self._told == 1.0 and self.factor != 1.0):
            self._told = self.factor
            self._say(f"testbed drifts: {shown}; throughputs are corrected by it")


Asked = tuple[tuple[Load, ...], int | None]


class SteadyTestbed(TestbedInFront):
    """A testbed without its drift: every run's throughputs are told as they would have been at the beginning.

    A run that is asked for again is told as before, corrected by the drift when it was made.

    Noise-free runs are passed through: what can be asked for the truth does not drift.

    Parameters
    ----------
    testbed
        What may drift.
    reference
        Tells how much.
    """

    def __init__(self, testbed: Testbed, reference: Reference) -> None:
        super().__init__(testbed)
        self._reference = reference
        self._told: dict[Asked, Run] = {}

    def run_many(
        self, co_locations: Sequence[Sequence[Load]], *, noise: bool = True, seed: int | None = None
    ) -> list[Run]:
        if not noise:
            return self._behind.run_many(co_locations, noise=noise, seed=seed)
        asked = [(tuple(loads), seed) for loads in co_locations]
        new = [one for one in dict.fromkeys(asked) if one not in self._told]
        if new:
            self._reference.begin()
        while new:
            room = self._reference.room if self.batches else 1
            now, new = new[:room], new[room:]
            runs = self._behind.run_many([loads for loads, _ in now], seed=seed)
            self._told |= {one: _corrected(run, self._reference.factor) for one, run in zip(now, runs, strict=True)}
            self._reference.passed(runs)
        return [self._told[one] for one in asked]


def _corrected(run: Run, factor: float) -> Run:
    if factor == 1.0:
        return run
    measurements = (replace(one, throughput_kpps=one.throughput_kpps / factor) for one in run.measurements)
    return replace(run, measurements=tuple(measurements))


def _reference(description: TestbedDescription) -> list[Load]:
    """The first NF alone at default traffic; none where there is no NF."""
    return [Workload(nf.name, description.traffic) for nf in description.nfs[:1]]
