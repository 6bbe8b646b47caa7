"""The runs of a sweep, one after another; what a testbed does not run is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from profiler.runs.co_runs import AGREEING_DIFFERENCE
from profiler.runs.outliers import MOST_FAILURES, PROBE_SEEDS
from profiler.testbed import Run, RunRefused, Testbed, TestbedChanged, TestbedError, difference_by_error
from profiles import Load, Workload

RUN_SEEDS = 1_000_003

Point = tuple[float, ...]
"""A value of each varied key, in the order of the sweep."""


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One run: its number in the order of all, and which repeat of its point it is."""

    number: int
    repeat: int
    run: Run


@dataclass
class SweepRuns:
    """Runs points several times, and keeps all that was measured.

    A point that is refused, or fails at every attempt, is left out from then on. After a failure, `known` is run, so
    that a testbed that ended is not taken for one on which the last points do not work.
    """

    testbed: Testbed
    """Where they run."""
    loads: Callable[[Point], Sequence[Load]]
    """What runs at a point; the NF that is measured is the first."""
    known: Workload
    """What is sure to run there."""
    seed: int
    """Of the noise of a simulated testbed; each repeat has its own."""
    done: Callable[[int], None]
    """Called after each run."""
    measured: dict[Point, list[SweepRun]] = field(default_factory=dict)
    left_out: dict[Point, str] = field(default_factory=dict)
    """Points that do not run, each with the testbed's reason."""
    _number: int = 0
    _failures: int = 0
    _probes: int = 0

    def measure(self, points: Sequence[Point], repeat: int) -> None:
        """One run of each point, in order.

        Raises
        ------
        TestbedError
            When several points fail one after another, or what ran before: then the testbed is at fault.
        """
        seed = self.seed + RUN_SEEDS * repeat
        working = [point for point in points if point not in self.left_out]
        together = self._together(working, seed)
        for point in working:
            self._number += 1
            run = together[point] if together else self._run(point, seed)
            if run:
                self.measured.setdefault(point, []).append(SweepRun(self._number, repeat, run))
            self.done(1)

    def _together(self, points: Sequence[Point], seed: int) -> dict[Point, Run]:
        """All points at once where the testbed is faster so; empty where it is not, or something fails."""
        if not self.testbed.batches or not points:
            return {}
        try:
            runs = self.testbed.run_many([self.loads(point) for point in points], seed=seed)
        except TestbedChanged:
            raise
        except TestbedError:
            return {}
        return dict(zip(points, runs, strict=True))

    def _run(self, point: Point, seed: int) -> Run | None:
        try:
            run = self.testbed.run(self.loads(point), seed=seed)
        except TestbedChanged:
            raise
        except RunRefused as error:
            self._leave_out(point, str(error))
            return None
        except TestbedError as error:
            self._failures += 1
            if self._failures > MOST_FAILURES:
                raise
            self._probes += 1
            self.testbed.run([self.known], seed=self.seed + PROBE_SEEDS * self._probes)
            self._leave_out(point, str(error))
            return None
        self._failures = 0
        return run

    def _leave_out(self, point: Point, reason: str) -> None:
        self.left_out[point] = reason
        self.measured.pop(point, None)


# Whether the repeats of a point agree, and which of them a further run replaces.


def agree(found: Sequence[SweepRun]) -> bool:
    """Whether the least and the most throughput differ by little, or by what the errors of best-effort runs explain."""
    least, most = min(found, key=kpps), max(found, key=kpps)
    explained = difference_by_error(least.run.best_effort, most.run.best_effort)
    return 1 - kpps(least) / kpps(most) <= max(AGREEING_DIFFERENCE, explained)


def without_farthest(found: Sequence[SweepRun], further: SweepRun) -> tuple[list[SweepRun], bool]:
    """The runs, with the further one in place of the farthest if it is nearer to the middle of all."""
    middle = median(map(kpps, [*found, further]))
    farthest = max(found, key=lambda one: abs(kpps(one) - middle))
    if abs(kpps(further) - middle) >= abs(kpps(farthest) - middle):
        return list(found), False
    return [replace(further, repeat=run.repeat) if run is farthest else run for run in found], True


def kpps(one: SweepRun) -> float:
    """Throughput of the NF that is measured."""
    return one.run.measurements[0].throughput_kpps
