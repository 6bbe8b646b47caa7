"""The memory model as compiled code evaluates it: for the runs of one NF, row by row."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.regression.compiled import compiled, copy_into, fill
from predictor.regression.processes import Processes, add_squared, value_at
from predictor.regression.trees import Forests, write_sums
from profiles import COUNTERS

Array = NDArray[np.float64]

READS, WRITES, WORKING_SET = (COUNTERS.index(name) for name in ("l2crd", "l2cwr", "wss"))
ACCESS_UNIT = 1e6
WORKING_SET_UNIT = 0.3
"""Accesses per second and MB below which contention is negligible: the scales are linear below, logarithmic above."""
FADED = 1.5
"""Multiple of `most_accesses` from which only the trees beyond count; they fade in from there."""
FULL, SPILLED_UNIT = 3.0, 0.05
"""MB of which half does not fit into the cache, and the share that does not fit below which it is negligible."""
INPUTS, OF_COMPETITORS = 6, 2
"""Inputs of the trend, and those of them that belong to the competitors."""
ROWS_AT_ONCE = 256


class MemoryModels(NamedTuple):
    """Memory models side by side: the attributes of `MemoryModel`, each with one entry per model."""

    trend: Processes
    within: Forests
    beyond: Forests
    most_accesses: Array


@compiled
def write_inputs_of_competitors(counters, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write those inputs of the trend for one run that belong to the competitors."""
    working_set = counters[WORKING_SET]
    inputs[0] = math.log1p((counters[READS] + counters[WRITES]) / ACCESS_UNIT)
    # beyond the size of the cache, a larger working set slows others hardly more
    inputs[1] = math.log1p(working_set / (working_set + FULL) / SPILLED_UNIT)


@compiled
def write_own_inputs(traffic, own_wss, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write those inputs of the trend for one run that belong to the NF itself."""
    inputs[2] = math.log1p(own_wss / WORKING_SET_UNIT)
    inputs[3] = math.log(max(traffic[0], 1.0))
    inputs[4] = math.log(max(traffic[1], 1.0))
    inputs[5] = traffic[2]


@compiled
def write_inputs_of_all(counters, traffic, own_wss, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the inputs of the trend for each run, shape (N, 6)."""
    for row in range(len(inputs)):
        write_inputs_of_competitors(counters[row], inputs[row])
        write_own_inputs(traffic[row], own_wss[row], inputs[row])


@compiled
def write_logarithms(models, which, counters, traffic, own_wss, logarithm):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the logarithm that one model predicts for each run, shapes (N, 7), (N, 3), (N,) and (N,)."""
    count, inputs = models.trend.size[which], np.empty(INPUTS)
    own_squared, squared = np.empty(count), np.empty(count)
    known = -1
    for start in range(0, len(logarithm), ROWS_AT_ONCE):
        end = min(start + ROWS_AT_ONCE, len(logarithm))
        least, most = 1.0, 0.0
        beyond, added = np.empty(end - start), np.empty(end - start)
        columns = np.empty((counters.shape[1] + traffic.shape[1], end - start))
        for row in range(start, end):
            # runs with the same NF next to others come one after the other
            if known < 0 or own_wss[row] != own_wss[known] or _differ(traffic[row], traffic[known]):
                write_own_inputs(traffic[row], own_wss[row], inputs)
                fill(own_squared, 0.0)
                add_squared(models.trend, which, inputs, OF_COMPETITORS, INPUTS, own_squared)
                known = row
            write_inputs_of_competitors(counters[row], inputs)
            copy_into(squared, own_squared)
            add_squared(models.trend, which, inputs, 0, OF_COMPETITORS, squared)
            logarithm[row] = value_at(models.trend, which, squared)
            accesses = max(counters[row, READS] + counters[row, WRITES], 1.0)
            excess = math.log(accesses) - math.log(models.most_accesses[which])
            share = beyond[row - start] = min(max(excess / math.log(FADED), 0.0), 1.0)
            least, most = min(least, share), max(most, share)
            # trees compare single-precision values
            for column in range(counters.shape[1]):
                columns[column, row - start] = np.float32(counters[row, column])
            for column in range(traffic.shape[1]):
                columns[counters.shape[1] + column, row - start] = np.float32(traffic[row, column])
        if least < 1.0:
            write_sums(models.within, which, columns, added)
            for row in range(start, end):
                logarithm[row] += (1.0 - beyond[row - start]) * added[row - start]
        if most > 0.0:
            write_sums(models.beyond, which, columns, added)
            for row in range(start, end):
                logarithm[row] += beyond[row - start] * added[row - start]


@compiled
def _differ(one, other):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    differ = False
    for at in range(len(one)):
        differ = differ or one[at] != other[at]
    return differ
