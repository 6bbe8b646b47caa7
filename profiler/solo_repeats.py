"""Runs of one workload alone, several times; where the repeats disagree, a further run decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import TypeVar

from profiler.best_effort import difference_by_error
from profiler.co_runs import AGREE
from profiler.outliers import REPEAT_SEEDS, ConfirmedTestbed
from profiler.testbed import Measurement, Run
from profiler.working_runs import WorkingRuns
from profiles import Load, Workload

RUN_SEEDS = 1_000_003
FIRST_SEED = 50_000
"""Co-locations of NFs have the seeds before."""

_Load = TypeVar("_Load", bound=Load)


class SoloRepeats:
    """Runs each load alone on a testbed, several times.

    Parameters
    ----------
    testbed
        Where they run.
    known
        What is sure to run there: it is run after a failure, so that a broken testbed is noticed.
    seed
        Of the noise of a simulated testbed; each repeat has its own.
    done
        Called with the number of runs, after each batch.
    """

    def __init__(self, testbed: ConfirmedTestbed, known: Workload, seed: int, done: Callable[[int], None]) -> None:
        self._testbed = testbed
        self._working = WorkingRuns(testbed.first, known, done)
        self._seed = seed
        self.refused: list[Load] = []
        """Loads that do not run on the testbed."""

    def measure(self, loads: Sequence[_Load], repeats: int, first: int = 0) -> dict[_Load, list[Measurement]]:
        """The measurements of each load that runs, in order of the repeats.

        Repeats that differ by more than 10 % are decided by a further run: it replaces the one that is farthest from
        the median of all.

        Parameters
        ----------
        first
            The number of the first repeat; repeats of equal numbers have equal noise on a simulated testbed.

        Raises
        ------
        TestbedError
            When the testbed fails.
        """
        measured: dict[_Load, list[Run]] = {load: [] for load in loads}
        for repeat in range(first, first + repeats):
            left = [(load,) for load in measured]
            for (load,), run in self._working.run(left, self._repeat_seed(repeat)):
                measured[load].append(run)
            gone = [load for load, found in measured.items() if len(found) <= repeat - first]
            self.refused += gone
            for load in gone:
                del measured[load]
        doubted = [(load,) for load, found in measured.items() if not _agree(found)]
        seed = self._repeat_seed(first) + REPEAT_SEEDS
        for (load,), run in zip(doubted, self._testbed.repeats.run_many(doubted, seed=seed), strict=True):
            self._replace_farthest(measured[load], run)
        return {load: [run.measurements[0] for run in found] for load, found in measured.items()}

    def _replace_farthest(self, found: list[Run], further: Run) -> None:
        middle = median(map(_kpps, [*found, further]))
        farthest = max(range(len(found)), key=lambda at: abs(_kpps(found[at]) - middle))
        if abs(_kpps(further) - middle) < abs(_kpps(found[farthest]) - middle):
            found[farthest] = further
            self._testbed.outliers += 1

    def _repeat_seed(self, repeat: int) -> int:
        return self._seed + RUN_SEEDS * (FIRST_SEED + repeat)


def _agree(found: Sequence[Run]) -> bool:
    """Whether the least and the most throughput differ by little, or by what the errors of best-effort runs explain."""
    least, most = min(found, key=_kpps), max(found, key=_kpps)
    return 1 - _kpps(least) / _kpps(most) <= max(AGREE, difference_by_error(least.best_effort, most.best_effort))


def _kpps(run: Run) -> float:
    return run.measurements[0].throughput_kpps
