"""What users should know of the runs of a sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from profiler.sweeps.refinement import TO_SIGMA
from profiler.sweeps.repeats import kpps
from profiler.sweeps.runs import SweepRun, SweepRuns

SMALL_DRIFT = 0.01
FEWEST_FOR_DRIFT = 5
OF_MEDIAN = 1.253
"""Standard error of a median over that of a mean, of normal variables."""


def messages(runs: SweepRuns, keys: Sequence[str], outliers: int) -> Iterator[str]:
    """Points that are left out, outliers, drift and best-effort runs."""
    for point, reason in runs.left_out.items():
        shown = ", ".join(f"{key} = {value:g}" for key, value in zip(keys, point, strict=True))
        yield f"{shown}: left out: {reason}"
    if outliers:
        yield f"outliers, not confirmed by repeats and replaced by a further run: {outliers:,}"
    if drift := _drift(list(runs.measured.values())):
        yield drift
    efforts = [one for found in runs.measured.values() for one in found if one.run.best_effort]
    if efforts:
        total = sum(map(len, runs.measured.values()))
        yield f"best-effort runs, disturbed by other work: {len(efforts):,} of {total:,}"


def _drift(points: Sequence[Sequence[SweepRun]]) -> str:
    """A message when the last pass is faster or slower than the first by more than noise."""
    ratios = np.log([kpps(found[-1]) / kpps(found[0]) for found in points if len(found) > 1])
    if len(ratios) < FEWEST_FOR_DRIFT:
        return ""
    middle = float(np.median(ratios))
    error = OF_MEDIAN * TO_SIGMA * float(np.median(np.abs(ratios - middle))) / math.sqrt(len(ratios))
    if abs(middle) < max(SMALL_DRIFT, 3 * error):
        return ""
    return f"testbed drifts: throughput changed by {100 * math.expm1(middle):+.1f} % from the first pass to the last"
