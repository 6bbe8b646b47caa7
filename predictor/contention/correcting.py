"""Corrections of the equilibrium by measured runs, and how far predictions err, in compiled code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.contention.conditions_of_members import (
    ATTRIBUTE_COUNT,
    DISTANCE_COUNT,
    spread_at,
    write_distance,
    write_inputs,
    write_neighbours,
    write_pressure,
)
from predictor.contention.neighbours import (
    SIDE_BY_SIDE,
    NeighbourModels,
    NeighbourPoints,
    expect_error,
    neighbour_models,
    write_deviations,
)
from predictor.contention.nf_model import NfModel
from predictor.regression.compiled import compile_kernel, dot
from predictor.regression.gaussian_process import GaussianProcess, side_by_side
from predictor.regression.packed import (
    PROCESS_ARRAYS,
    flags,
    numbers_1d,
    numbers_2d,
    numbers_3d,
    processes_at,
    whole_1d,
    whole_2d,
)
from predictor.regression.processes import Processes, write_similarity
from profiles.arrays import Floats

UNSEEN_FACTOR = 4.0
"""How much larger the spread is per competitor beyond the most that were measured, as a multiple.

What each further competitor costs was not seen there: on a testbed measured up to six NFs per NIC, throughput was 5 %
below predictions with seven and 13 % with eight, where the spread was 1 and 2 %.
"""
UNLIKE_FACTOR = 0.15
"""The same where competitors carry less than they can or have other numbers of cores, by how many they are.

Measured co-runs are of saturated NFs, and make such predictions no more certain than usual. On three testbeds measured
up to four and five NFs per NIC, eight to twelve light ones err 1.0 to 3.4 spreads without this, and 0.6 to 1.2 with it.
"""


class Corrections(NamedTuple):
    """What corrects predictions, and how far they err, per NF."""

    calibrated: NDArray[np.bool_]  # whether there is a `Calibration`, shape (NFs,)
    by_neighbours: NDArray[np.bool_]  # whether there is a `NeighbourCorrection`, shape (NFs,)
    calibration: Processes  # of each `Calibration`
    neighbours: NeighbourModels  # of each `NeighbourCorrection`
    accelerators: NDArray[np.int64]
    """Columns of the NF's accelerators in the table, -1 at the end, shape (NFs, accelerators)."""
    usual: Floats  # of the `ErrorModel`, shape (NFs,)
    growth: Floats  # of the `ErrorModel`, shape (NFs, 3)
    most: Floats  # `NeighbourCorrection.most_competitors`, infinite where there is none, shape (NFs,)


class Corrected(NamedTuple):
    """Predictions of members, in arrays of one shape."""

    throughput: Floats  # corrected by measured runs
    near: Floats  # how near measured co-runs are that corrected it, 0 to 1
    left: Floats  # the share of the usual spread that measured co-locations leave
    spread: Floats  # what is left, of the logarithm

    @classmethod
    def of(cls, throughput: Floats) -> Corrected:
        """Nothing corrected yet."""
        shape = throughput.shape
        return cls(throughput.copy(), np.zeros(shape), np.ones(shape), np.zeros(shape))


def corrections_of(models: Sequence[NfModel], accelerators: Sequence[str], *, none: bool = False) -> Corrections:
    """What corrects the predictions of these NFs; nothing does if `none`."""
    number = {name: at for at, name in enumerate(accelerators)}
    columns = np.full((len(models), len(accelerators)), -1, dtype=np.int64)
    for row, model in enumerate(models):
        columns[row, : len(model.accelerators)] = [number[name] for name in model.accelerators]
    calibrations = [None if none else model.calibration for model in models]
    neighbours = [None if none else model.neighbours for model in models]
    nothing = GaussianProcess.none(4)
    return Corrections(
        calibrated=np.array([calibration is not None for calibration in calibrations], dtype=np.bool_),
        by_neighbours=np.array([neighbour is not None for neighbour in neighbours], dtype=np.bool_),
        calibration=side_by_side([calibration.correction if calibration else nothing for calibration in calibrations]),
        neighbours=neighbour_models(neighbours),
        accelerators=columns,
        usual=np.array([model.error_model.usual for model in models]),
        growth=np.array([model.error_model.growth for model in models]),
        most=np.array([neighbour.most_competitors if neighbour else np.inf for neighbour in neighbours]),
    )


@compile_kernel
def corrections_at(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """`Corrections` whose first array is number `at`."""
    errors = at + 2 + PROCESS_ARRAYS
    points = NeighbourPoints(
        numbers_1d(packed, errors), numbers_1d(packed, errors + 1), numbers_2d(packed, errors + 2),
        numbers_3d(packed, errors + 3), numbers_2d(packed, errors + 4), whole_1d(packed, errors + 5),
    )  # fmt: skip
    models = NeighbourModels(points, numbers_2d(packed, errors + 6), numbers_2d(packed, errors + 7))
    return Corrections(
        flags(packed, at), flags(packed, at + 1), processes_at(packed, at + 2), models, whole_2d(packed, errors + 8),
        numbers_1d(packed, errors + 9), numbers_2d(packed, errors + 10), numbers_1d(packed, errors + 11),
    )  # fmt: skip


@compile_kernel
def correct_members(table, corrections, member, sizes, least, equilibrium, solo, certainty, corrected):  # type: ignore[no-untyped-def]  # pragma: no cover
    """`correct` all members of co-locations of at least so many; of equal ones, which are side by side, once for all.

    The positions of one NF come after those of another, as the processor's cache does not hold the arrays of all.
    """
    first = np.zeros(len(corrections.usual) + 1, dtype=np.int64)
    for at in range(len(sizes)):
        for place in range(sizes[at] if sizes[at] >= least else 0):
            if place == 0 or member[at, place] != member[at, place - 1]:
                first[table.nf[member[at, place]] + 1] += 1
    for nf in range(len(first) - 1):
        first[nf + 1] += first[nf]
    where = np.empty((first[-1], 2), dtype=np.int64)
    for at in range(len(sizes)):
        for place in range(sizes[at] if sizes[at] >= least else 0):
            if place == 0 or member[at, place] != member[at, place - 1]:
                nf = table.nf[member[at, place]]
                where[first[nf], 0], where[first[nf], 1] = at, place
                first[nf] += 1
    correct(table, corrections, member, sizes, where, equilibrium, solo, certainty, corrected)
    for at in range(len(sizes)):
        for place in range(1, sizes[at] if sizes[at] >= least else 0):
            if member[at, place] == member[at, place - 1]:
                corrected.throughput[at, place] = corrected.throughput[at, place - 1]
                corrected.near[at, place] = corrected.near[at, place - 1]
                corrected.left[at, place] = corrected.left[at, place - 1]
                corrected.spread[at, place] = corrected.spread[at, place - 1]


@compile_kernel
def correct(table, corrections, member, sizes, where, equilibrium, solo, certainty, corrected):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write into `corrected` what it describes, at the positions `where`, shape (N, 2): co-location, member.

    `equilibrium` is throughput without any correction. Where `certainty` is False, `left` and `spread` stay as they
    are. Positions of one NF are best one after the other: errors of one NF are computed side by side.
    """
    accelerators, points = corrections.accelerators.shape[1], corrections.calibration.points
    pressure, inputs = np.empty(accelerators), np.empty(max(4 + accelerators, points.shape[1]))
    similar, near = np.empty(points.shape[2]), np.zeros((SIDE_BY_SIDE, corrections.neighbours.weights.shape[1]))
    usual, own, deviation = np.empty(SIDE_BY_SIDE), np.zeros(SIDE_BY_SIDE), np.empty(SIDE_BY_SIDE)
    start = 0
    while start < len(where):
        end, nf = start, table.nf[member[where[start, 0], where[start, 1]]]
        while end < min(start + SIDE_BY_SIDE, len(where)) and table.nf[member[where[end, 0], where[end, 1]]] == nf:
            at, place = where[end]
            usual[end - start], own[end - start] = correct_throughput(
                table, corrections, member[at, : sizes[at]], place, (pressure, inputs, similar, near[end - start]),
                equilibrium[at, place], solo[at, place], corrected, at,
            )  # fmt: skip
            end += 1
        if certainty:
            if corrections.by_neighbours[nf]:
                write_deviations(corrections.neighbours, nf, near, own, deviation)
            for position in range(start, end):
                at, place = where[position]
                if sizes[at] > 1 and corrections.by_neighbours[nf]:
                    others = count_competitors(table, member[at, : sizes[at]], place)
                    left = widen(deviation[position - start], others, sizes[at] - 1, corrections.most[nf])
                    # an SLA is relative to the throughput alone, so its error counts, too
                    alone = table.alone_spread[member[at, place]] / usual[position - start]
                    corrected.left[at, place] = math.hypot(left, alone)
                corrected.spread[at, place] = usual[position - start] * corrected.left[at, place]
        start = end


@compile_kernel
def largest_of(values, count):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The largest of the first `count` numbers, or 0; of four at a time, as a comparison waits for the one before."""
    first = second = third = fourth = 0.0
    for at in range(0, count - 3, 4):
        first, second = max(first, values[at]), max(second, values[at + 1])
        third, fourth = max(third, values[at + 2]), max(fourth, values[at + 3])
    for at in range(count - count % 4, count):
        first = max(first, values[at])
    return max(max(first, second), max(third, fourth))


@compile_kernel
def widen(left, others, competitors, most):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """What is left of a spread by co-runs, where these had at most `most` competitors.

    `others` counts competitors by what they carry, `competitors` as they are.
    """
    left *= 1.0 + UNSEEN_FACTOR * max(others - most, 0.0)
    if others != competitors:
        left = max(left, 1.0) * (1.0 + UNLIKE_FACTOR * max(competitors - most, 0.0))
    return left


@compile_kernel
def count_competitors(table, rows, place):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """How many competitors the member at `place` has; one that carries a third of what it can is a third of one."""
    others = 0.0
    for other in range(len(rows)):
        if other != place:
            others += table.presence[rows[other]]
    return others


@compile_kernel
def correct_throughput(table, corrections, rows, place, arrays, equilibrium, solo, corrected, at):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the throughput of the member at `place` of `rows`, and how near measured co-runs are that corrected it.

    Returns its usual spread, and the own variance of its error by neighbours, whose covariance with measured errors is
    written into the last of `arrays`.
    """
    (pressure, inputs, similar, near), row, logarithm, own = arrays, rows[place], 0.0, 0.0
    nf, kept, distance = table.nf[row], equilibrium / solo, np.empty(DISTANCE_COUNT)
    write_distance(table.deviation[row], kept, count_competitors(table, rows, place), distance)
    usual = spread_at(corrections.usual[nf], corrections.growth[nf], distance)
    if len(rows) > 1 and corrections.calibrated[nf]:
        write_pressure(table, rows, place, corrections.accelerators[nf], pressure)
        write_inputs(table.traffic[row], kept, pressure, inputs)
        points = write_similarity(corrections.calibration, nf, inputs, similar)
        logarithm += corrections.calibration.mean[nf, 0]
        logarithm += dot(similar, corrections.calibration.weights[nf, 0], points)
        corrected.near[at, place] = max(corrected.near[at, place], largest_of(similar, points))
    if len(rows) > 1 and corrections.by_neighbours[nf]:
        nfs = len(corrections.usual)
        neighbours = np.empty(nfs * (1 + ATTRIBUTE_COUNT) + ATTRIBUTE_COUNT)
        write_neighbours(table.nf, table.presence, table.deviation, nfs, rows, place, neighbours)
        error, own = expect_error(corrections.neighbours, nf, neighbours, near)
        logarithm += error * usual
    corrected.throughput[at, place] = min(equilibrium * math.exp(logarithm), solo)
    return usual * table.doubt[row], own
