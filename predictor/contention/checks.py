"""Whether the workloads of one co-location get what they require, in compiled code: placement asks this most often.

The answer is that of `TomurPredictor.throughput`. It takes a third of the time, because most of that goes into the last
part of the uncertainty: how much the measured errors explain of it, a sum over all pairs of them. A part of this sum
bounds the rest, and mostly the bounds already decide. `write_rough_logarithms` is less exact and faster still.
"""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from predictor.contention.correcting import (
    Corrected,
    correct_throughput,
    corrections_at,
    count_competitors,
    largest_of,
    widen,
)
from predictor.contention.equilibrium import BY_PATTERN, composition_of, scratch_rows, settle_one, share_accelerators
from predictor.contention.execution import compose
from predictor.contention.memory import (
    INPUT_COUNT,
    MEMORY_ARRAYS,
    OF_COMPETITORS,
    WORKING_SET,
    memory_models_at,
    write_inputs_of_competitors,
    write_own_inputs,
)
from predictor.contention.neighbours import SAME_DISTANCE
from predictor.contention.workload_columns import columns_of
from predictor.contention.workload_table import MOST_UNLOADED, RowUser, WorkloadTable
from predictor.regression.compiled import compile_kernel, copy_into, fill, reducing, share_with_python
from predictor.regression.packed import PackedArrays, processes_at
from predictor.regression.processes import add_squared, value_at
from predictor.regression.significant import significant_number
from profiles import TrafficProfile, Workload
from profiles.arrays import Floats

MET, VIOLATED, CLOSE = 1, 0, -1
"""What `check_members` answers; where it is too close, rounding decides."""

CLOSE_SHARE = 1e-6
"""Relative difference between throughput and requirement below which it is too close: throughputs keep 24 bits."""

FIRST_POINTS = 128
"""Measured errors whose part of the sum is computed first: for a tenth of the work it is most of the sum."""


ROUGH_ROUNDS = 3
"""Rounds in which the use of accelerators settles in rough estimates."""

ACCESS_NODES, SPILL_NODES = 5, 6
"""Values of the two sums of contention at which the memory model of a workload is computed for rough estimates.
The second has more nodes near its end, where most working sets are: they exceed the cache."""


ModelArrays = tuple[Floats, NDArray[np.int64], int, Floats]
"""What `write_rough_logarithms` reads of workloads and models: its first arguments."""

NO_CHECKS: ModelArrays = np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64), 0, np.zeros((0, 0, 0))
"""The same where nothing estimates throughputs roughly."""


class CoLocationChecks:
    """Answers for one co-location at a time.

    `table`: of the predictor. `models`: its `MemoryModels` and `Corrections`. `exponents`: `ErrorModel.lower_exponents`
    of each NF, shape (NFs, 3); None for median predictions.
    """

    def __init__(self, table: WorkloadTable, models: PackedArrays, exponents: Floats | None) -> None:
        self._table = table
        self._models = models
        self.exponents = np.zeros((0, 3)) if exponents is None else exponents
        self._surfaces = np.zeros((0, ACCESS_NODES, SPILL_NODES))
        self._filled = np.zeros(0, dtype=np.int64)
        self._surface_of: dict[tuple[str, TrafficProfile], Floats] = {}

    def __deepcopy__(self, memo: object) -> Self:
        """Itself, as it only remembers answers: rows that a copied index knows stay those of these arrays."""
        return self

    def add_user(self, user: RowUser) -> None:
        """As of `WorkloadTable`."""
        self._table.add_user(user)

    def row(self, workload: Workload) -> int:
        """The row of the workload, by which `arrays` know it. Unless a user keeps it, it may be given to another
        workload by `release_rows`."""
        table, row = self._table, self._table.row(workload)
        if len(self._filled) < len(table.numbers):
            surfaces, filled = self._surfaces, self._filled
            self._surfaces = np.zeros((len(table.numbers), ACCESS_NODES, SPILL_NODES))
            self._filled = np.zeros(len(table.numbers), dtype=np.int64)
            self._surfaces[: len(surfaces)], self._filled[: len(filled)] = surfaces, filled
        if self._filled[row] != table.whole[row, -1]:
            # relative to what it carries alone, rates and cores change nothing
            like = None if workload.is_plain or not table.relative[row] else (workload.nf, workload.traffic)
            if like is not None and like in self._surface_of:
                self._surfaces[row] = self._surface_of[like]
            else:
                write_surfaces(table.numbers, table.whole, self._models.address, self._surfaces, row, row + 1)
                if like is not None:
                    if len(self._surface_of) >= MOST_UNLOADED:
                        self._surface_of.clear()
                    self._surface_of[like] = self._surfaces[row].copy()
            self._filled[row] = table.whole[row, -1]
        return row

    def release_rows(self) -> None:
        """As of `WorkloadTable`."""
        self._table.release_rows()

    def solo(self, workload: Workload) -> float:
        """Throughput (kpps) alone, as `TomurPredictor.throughput` at risk, rounded."""
        row = self._table.row(workload)
        return significant_number(float(self._table.modelled_solo[row] * self._table.factor[row]))

    @property
    def knows_all(self) -> bool:
        """Whether the contention that each NF exerts is known."""
        return self._table.measured_alone

    def meets(self, co_location: Sequence[Workload], required_kpps: Sequence[float]) -> tuple[int, Floats]:
        """`MET`, `VIOLATED` or `CLOSE`, and about the throughput (kpps) of each of at least two workloads, NaN behind
        that of the first violated SLA. The co-location is sorted.
        """
        table = self._table
        rows = np.array([*map(table.row, co_location)])
        table.refuse_unknown_contention(rows)
        required, kpps = np.array(required_kpps), np.empty(len(rows))
        verdict = check_members(table.numbers, table.whole, self._models.address, self.exponents, rows, required, kpps)
        return verdict, kpps

    @property
    def arrays(self) -> ModelArrays:
        """What kernels read that call `write_rough_logarithms`, until the next call of `row`."""
        return self._table.numbers, self._table.whole, self._models.address, self._surfaces


@compile_kernel
def write_surfaces(numbers, whole, packed, surfaces, first, end):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the logarithm of the trend of memory of each workload from `first` to `end`, by both sums of contention.

    Nodes are spread over what was measured, shape (workloads, `ACCESS_NODES`, `SPILL_NODES`).
    """
    table, models, inputs = columns_of(numbers, whole), memory_models_at(packed, 0), np.empty(INPUT_COUNT)
    for row in range(first, end):
        nf = table.nf[row]
        count, low, high = models.trend.size[nf], models.trend.low[nf], models.trend.high[nf]
        own, first_squared, squared = np.zeros(count), np.empty(count), np.empty(count)
        write_own_inputs(table.traffic[row], table.counters[row, WORKING_SET] if table.relative[row] else 0.0, inputs)
        add_squared(models.trend, nf, inputs, OF_COMPETITORS, INPUT_COUNT, own)
        less = 0.0 if table.relative[row] else math.log(table.base[row])
        for first_node in range(ACCESS_NODES):
            inputs[0] = low[0] + (high[0] - low[0]) * first_node / (ACCESS_NODES - 1)
            copy_into(first_squared, own)
            add_squared(models.trend, nf, inputs, 0, 1, first_squared)
            for second_node in range(SPILL_NODES):
                inputs[1] = high[1] - (high[1] - low[1]) * (1.0 - second_node / (SPILL_NODES - 1)) ** 2
                copy_into(squared, first_squared)
                add_squared(models.trend, nf, inputs, 1, OF_COMPETITORS, squared)
                surfaces[row, first_node, second_node] = value_at(models.trend, nf, squared) - less


@compile_kernel
def write_rough_logarithms(numbers, whole, packed, surfaces, member, sizes, logarithms):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write about the logarithm of the share of its throughput alone that each workload keeps, shape as `member`.

    By the trend of memory alone, and without corrections. `member`: rows of workloads, one co-location in each row,
    shape (co-locations, members). `sizes`: how many there are in each. What the share lacks depends on the NF and on
    how many share the NIC more than on traffic.
    """
    table, trend = columns_of(numbers, whole), processes_at(packed, 0)
    low, high = trend.low, trend.high
    most, accelerators = member.shape[1], table.queues.shape[1]
    rates, solo, inputs = np.empty(most), np.empty(most), np.empty(OF_COMPETITORS)
    lost, limits = np.empty((most, 1 + accelerators)), np.empty((most, 1 + accelerators))
    total, others = np.empty(table.counters.shape[1]), np.empty(table.counters.shape[1])
    scratch, order = np.empty((scratch_rows(table), most)), np.empty(most, dtype=np.int64)
    for at in range(len(sizes)):
        size, rows = sizes[at], member[at, : sizes[at]]
        _clear(lost, limits)
        fill(total, 0.0)
        for place in range(size):
            for counter in range(len(total)):
                total[counter] += table.counters[rows[place], counter]
        for place in range(size):
            row = rows[place]
            for counter in range(len(total)):
                others[counter] = max(total[counter] - table.counters[row, counter], 0.0)
                if counter < WORKING_SET:
                    others[counter] *= table.pressure[row]
            write_inputs_of_competitors(others, inputs)
            nf = table.nf[row]
            share = 1.0
            if size > 1:
                logarithm = min(_interpolate(surfaces[row], low[nf], high[nf], inputs), 0.0)
                share = math.exp(logarithm * table.exposure[row])
            limits[place, 0] = 1.0 / (1.0 / (table.base[row] * share) + table.match_ms[row])
            solo[place] = table.modelled_solo[row]
            lost[place, 0] = max(solo[place] - limits[place, 0], 0.0)
            rates[place] = compose(composition_of(table, BY_PATTERN, row), solo[place], lost[place])
        if _is_shared(table, rows):
            share_accelerators(
                table, BY_PATTERN, ROUGH_ROUNDS, rows, solo[:size], rates[:size], lost[:size], limits[:size], scratch,
                order,
            )  # fmt: skip
        for place in range(size):
            logarithms[at, place] = math.log(max(min(rates[place] / solo[place], 1.0), 1e-9))


@compile_kernel
def _interpolate(surface, low, high, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The surface at two inputs, cubic between its nodes (Catmull and Rom) and constant beyond."""
    first = min(max((inputs[0] - low[0]) / max(high[0] - low[0], 1e-12), 0.0), 1.0) * (ACCESS_NODES - 1)
    before_end = min(max((high[1] - inputs[1]) / max(high[1] - low[1], 1e-12), 0.0), 1.0)
    second = (1.0 - math.sqrt(before_end)) * (SPILL_NODES - 1)
    row, column = min(int(first), ACCESS_NODES - 2), min(int(second), SPILL_NODES - 2)
    total, apart = 0.0, second - column
    along = _cubic(0, apart), _cubic(1, apart), _cubic(2, apart), _cubic(3, apart)
    for at in range(4):
        line, weight = surface[min(max(row + at - 1, 0), ACCESS_NODES - 1)], _cubic(at, first - row)
        for other in range(4):
            node = line[min(max(column + other - 1, 0), SPILL_NODES - 1)]
            total += weight * along[other] * node
    return total


@compile_kernel
def _cubic(node, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """The weight of one of four neighbouring nodes, at a share `at` of the way from the second to the third."""
    if node == 0:
        return 0.5 * at * (at * (2.0 - at) - 1.0)
    if node == 1:
        return 0.5 * (at * at * (3.0 * at - 5.0) + 2.0)
    if node == 2:
        return 0.5 * at * (at * (4.0 - 3.0 * at) + 1.0)
    return 0.5 * at * at * (at - 1.0)


@compile_kernel
def _is_shared(table, rows):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Whether several of the workloads use one accelerator."""
    for at in range(table.queues.shape[1]):
        users = 0
        for row in rows:
            users += table.queues[row, at] > 0
        if users > 1:
            return True
    return False


@share_with_python
@compile_kernel
def check_members(numbers, whole, packed, exponents, rows, required, kpps):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write about the throughput (kpps) of each of `rows`, and return whether all get what they require."""
    table, models = columns_of(numbers, whole), memory_models_at(packed, 0)
    corrections = corrections_at(packed, MEMORY_ARRAYS)
    size, accelerators = len(rows), table.queues.shape[1]
    shares, rates, solo = np.empty(size), np.empty(size), np.empty(size)
    lost, limits = np.empty((size, 1 + accelerators)), np.empty((size, 1 + accelerators))
    _clear(lost, limits)
    settle_one(table, models, BY_PATTERN, rows, shares, rates, solo, lost, limits)
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
            least = most = kpps[place] = median
            if len(exponents):
                least, most = _bounds(
                    table, corrections, exponents, rows, place, arrays[3], usual, own, median, required, kpps
                )
        else:
            kpps[place] = kpps[place - 1]
        if most < required[place] * (1.0 - CLOSE_SHARE):
            fill(kpps[place + 1 :], np.nan)
            return VIOLATED
        if least < required[place] * (1.0 + CLOSE_SHARE):
            verdict = CLOSE
    return verdict


@compile_kernel
def _bounds(table, corrections, exponents, rows, place, near, usual, own, median, required, kpps):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The bounds of the throughput at risk of the member at `place`, between which it does not require anything.

    An estimate of it is written into `kpps`.
    """
    row, nf, models = rows[place], table.nf[rows[place]], corrections.neighbours
    if not corrections.by_neighbours[nf]:
        exactly = kpps[place] = _at_risk(exponents[nf], usual, median)
        return exactly, exactly
    size, smooth = models.at.size[nf], models.at.smooth[nf]
    # of an error that was measured itself nothing may remain; of all others at least their own variance
    nearest, remains = largest_of(near, size), own
    if nearest > smooth:
        remains = 0.0
    others = count_competitors(table, rows, place)
    competitors, seen = len(rows) - 1, corrections.most[nf]
    alone = table.alone_spread[row] / usual
    explained, end, following = 0.0, 0, min(size, FIRST_POINTS)
    while True:
        largest = max(smooth + own - explained, SAME_DISTANCE)
        smallest = largest if end == size else min(max(remains, SAME_DISTANCE), largest)
        widest = widen(math.sqrt(largest), others, competitors, seen)
        narrowest = widen(math.sqrt(smallest), others, competitors, seen)
        least = _at_risk(exponents[nf], usual * math.hypot(widest, alone), median)
        most = _at_risk(exponents[nf], usual * math.hypot(narrowest, alone), median)
        decided = True
        for equal in range(place, len(rows)):
            if rows[equal] == row:
                needed = required[equal]
                above, below = needed * (1.0 + CLOSE_SHARE), needed * (1.0 - CLOSE_SHARE)
                decided = decided and (least >= above or most < below)
        if decided or end == size:
            break
        explained += _explain(models.inverse_factor[nf], near, end, following)
        end, following = following, size
    # one error that was measured already explains so much, and all together explain not much more
    likely = max(smooth + own - max(explained, nearest * nearest / (smooth + own)), smallest)
    left = widen(math.sqrt(likely), others, competitors, seen)
    kpps[place] = _at_risk(exponents[nf], usual * math.hypot(left, alone), median)
    return least, most


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
