"""Whether the workloads of one co-location get what they require, in compiled code: placement asks this most often.

The answer is that of `TomurPredictor.throughput`. It takes a third of the time, because most of that goes into the last
part of the uncertainty: how much the measured errors explain of it, a sum over all pairs of them. A part of this sum
bounds the rest, and mostly the bounds already decide. `write_rough_logarithms` is less exact and faster still.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from predictor.contention.correcting import (
    UNSEEN_FACTOR,
    Corrected,
    Corrections,
    correct_throughput,
    count_competitors,
)
from predictor.contention.equilibrium import BY_PATTERN, MOST_COMPETITORS, settle_one
from predictor.contention.memory import MemoryModels
from predictor.contention.neighbours import SAME_DISTANCE
from predictor.contention.workload_table import WorkloadTable
from predictor.regression.compiled import compile_kernel, fill, reducing
from predictor.regression.significant import significant
from profiles import Workload
from profiles.arrays import Floats

MET, VIOLATED, CLOSE = 1, 0, -1
"""What `check_members` answers; where it is too close, rounding decides."""

CLOSE_SHARE = 1e-6
"""Relative difference between throughput and requirement below which it is too close: throughputs keep 24 bits."""

FIRST_POINTS = 128
"""Measured errors whose part of the sum is computed first: for a tenth of the work it is most of the sum."""


class CoLocationChecks:
    """Answers for one co-location at a time.

    `table`, `memory`, `corrections`: of the predictor. `exponents`: `ErrorModel.lower_exponents` of each NF, shape
    (NFs, 3); None for median predictions.
    """

    def __init__(
        self, table: WorkloadTable, memory: MemoryModels, corrections: Corrections, exponents: Floats | None
    ) -> None:
        self._table = table
        self._memory = memory
        self._corrections = corrections
        self._exponents = np.zeros((0, 3)) if exponents is None else exponents

    def rows(self, workloads: Sequence[Workload]) -> NDArray[np.intp]:
        """The rows of workloads, by which `rough_logarithms` knows them."""
        return self._table.rows(workloads)

    def solo(self, workload: Workload) -> float:
        """Throughput (kpps) alone, as `TomurPredictor.throughput` at risk, rounded."""
        row = self._table.rows((workload,))[0]
        return float(significant(self._table.modelled_solo[row] * self._table.factor[row]))

    def meets(self, co_location: Sequence[Workload], required_kpps: Sequence[float]) -> tuple[int, Floats]:
        """`MET`, `VIOLATED` or `CLOSE`, and about the throughput (kpps) of each of at least two workloads, NaN behind
        that of the first violated SLA. The co-location is sorted.
        """
        rows = self._table.rows(co_location)
        self._table.refuse_unknown_contention(rows)
        kpps = np.empty(len(rows))
        columns = self._table.columns
        required = np.array(required_kpps)
        return check_members(columns, self._memory, self._corrections, self._exponents, rows, required, kpps), kpps

    def rough_logarithms(self, member: NDArray[np.intp], sizes: NDArray[np.intp]) -> Floats:
        """About the logarithm of the share of its throughput alone that each workload keeps, shape as `member`.

        `member`: rows of workloads, one co-location in each row, shape (co-locations, members). `sizes`: how many there
        are in each. What the share lacks depends on the NF and on how many share the NIC more than on traffic.
        """
        logarithms = np.zeros(member.shape)
        write_rough_logarithms(self._table.columns, self._memory, member, sizes, logarithms)
        return logarithms


@compile_kernel
def write_rough_logarithms(table, models, member, sizes, logarithms):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write what `CoLocationChecks.rough_logarithms` describes: without corrections, and of the largest subset only."""
    most, resources = member.shape[1], 1 + table.queues.shape[1]
    shares, rates, solo = np.empty(most), np.empty(most), np.empty(most)
    lost, limits = np.empty((most, resources)), np.empty((most, resources))
    for at in range(len(sizes)):
        size = sizes[at]
        _clear(lost, limits)
        settle_one(
            table, models, BY_PATTERN, 0, member[at, :size], shares[:size], rates[:size], solo[:size], lost[:size],
            limits[:size],
        )  # fmt: skip
        for place in range(size):
            logarithms[at, place] = math.log(max(rates[place] / solo[place], 1e-9))


@compile_kernel
def check_members(table, models, corrections, exponents, rows, required, kpps):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write about the throughput (kpps) of each of `rows`, and return whether all get what they require."""
    size, accelerators = len(rows), table.queues.shape[1]
    shares, rates, solo = np.empty(size), np.empty(size), np.empty(size)
    lost, limits = np.empty((size, 1 + accelerators)), np.empty((size, 1 + accelerators))
    _clear(lost, limits)
    settle_one(table, models, BY_PATTERN, MOST_COMPETITORS, rows, shares, rates, solo, lost, limits)
    points = corrections.calibration.points
    arrays = (
        np.empty(accelerators), np.empty(max(4 + accelerators, points.shape[1])), np.empty(points.shape[2]),
        np.empty(corrections.neighbours.weights.shape[1]),
    )  # fmt: skip
    unused = np.zeros((1, size))
    corrected = Corrected(np.empty((1, size)), unused, unused, unused)
    verdict, least, most = MET, 0.0, 0.0
    for place in range(size):
        if place == 0 or rows[place] != rows[place - 1]:
            usual, own = correct_throughput(
                table, corrections, rows, place, arrays, rates[place], solo[place], corrected, 0
            )
            median = corrected.throughput[0, place]
            least = most = median
            if len(exponents):
                least, most = _bounds(
                    table, corrections, exponents, rows, place, arrays[3], usual, own, median, required
                )
        kpps[place] = math.sqrt(least * most)
        if most < required[place] * (1.0 - CLOSE_SHARE):
            fill(kpps[place + 1 :], np.nan)
            return VIOLATED
        if least < required[place] * (1.0 + CLOSE_SHARE):
            verdict = CLOSE
    return verdict


@compile_kernel
def _bounds(table, corrections, exponents, rows, place, near, usual, own, median, required):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The bounds of the throughput at risk of the member at `place`, between which it does not require anything."""
    row, nf, models = rows[place], table.nf[rows[place]], corrections.neighbours
    if not corrections.by_neighbours[nf]:
        exactly = _at_risk(exponents[nf], usual, median)
        return exactly, exactly
    size, smooth = models.at.size[nf], models.at.smooth[nf]
    # of an error that was measured itself nothing may remain; of all others at least their own variance
    remains = own
    for point in range(size):
        if near[point] > smooth:
            remains = 0.0
    others = count_competitors(table, rows, place)
    factor = 1.0 + UNSEEN_FACTOR * max(others - corrections.most[nf], 0.0)
    alone = table.alone_spread[row] / usual
    first = min(size, FIRST_POINTS)
    explained = _explain(models.inverse_factor[nf], near, 0, first)
    end = first
    while True:
        largest = max(smooth + own - explained, SAME_DISTANCE)
        smallest = largest if end == size else min(max(remains, SAME_DISTANCE), largest)
        least = _at_risk(exponents[nf], usual * math.hypot(math.sqrt(largest) * factor, alone), median)
        most = _at_risk(exponents[nf], usual * math.hypot(math.sqrt(smallest) * factor, alone), median)
        decided = True
        for equal in range(place, len(rows)):
            if rows[equal] == row:
                needed = required[equal]
                above, below = needed * (1.0 + CLOSE_SHARE), needed * (1.0 - CLOSE_SHARE)
                decided = decided and (least >= above or most < below)
        if decided or end == size:
            return least, most
        explained += _explain(models.inverse_factor[nf], near, first, size)
        end = size


@compile_kernel
def _at_risk(exponents, spread, median):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The throughput at risk: `lower_factors` of one prediction."""
    tail = max(math.exp(exponents[0] * spread), exponents[1])
    return median * min(min(tail, math.exp(exponents[2] * spread)), 1.0)


@reducing
def _explain(factor, near, first, end):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """What the measured errors from `first` to `end` explain of a variance, where all before them are known."""
    explained, start = 0.0, first * (first + 1) // 2
    for point in range(first, end):
        total = 0.0
        for at in range(point + 1):
            total += factor[start + at] * near[at]
        explained += total * total
        start += point + 1
    return explained


@compile_kernel
def _clear(lost, limits):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Drops and limits of members that are on no accelerator."""
    for place in range(lost.shape[0]):
        for resource in range(lost.shape[1]):
            lost[place, resource], limits[place, resource] = 0.0, np.inf
