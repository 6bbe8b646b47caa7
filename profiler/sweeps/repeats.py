"""Whether the repeats of a point agree, and which of them a further run replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from profiler.best_effort import difference_by_error
from profiler.co_runs import AGREE
from profiler.sweeps.runs import SweepRun


def agree(found: Sequence[SweepRun]) -> bool:
    """Whether the least and the most throughput differ by little, or by what the errors of best-effort runs explain."""
    least, most = min(found, key=kpps), max(found, key=kpps)
    explained = difference_by_error(least.run.best_effort, most.run.best_effort)
    return 1 - kpps(least) / kpps(most) <= max(AGREE, explained)


def without_farthest(found: Sequence[SweepRun], further: SweepRun) -> tuple[list[SweepRun], bool]:
    """The runs, with the further one in place of the farthest if it is nearer to the middle of all."""
    middle = median(map(kpps, [*found, further]))
    farthest = max(found, key=lambda one: abs(kpps(one) - middle))
    if abs(kpps(further) - middle) >= abs(kpps(farthest) - middle):
        return list(found), False
    return [replace(further, repeat=one.repeat) if one is farthest else one for one in found], True


def kpps(one: SweepRun) -> float:
    """Throughput of the NF that is measured."""
    return one.run.measurements[0].throughput_kpps
