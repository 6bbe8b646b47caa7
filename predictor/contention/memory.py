"""Memory contention: gradient boosting on the competitors' counters and the NF's traffic (Tomur, 4.1.2 and 5.1.2).

A few hundred runs leave wide gaps in so many dimensions, and trees fill a gap with a step. Boosting therefore starts
from a smooth trend over the two quantities that make contention, the competitors' rate of cache accesses and their
working set, and learns the residuals: the effect of the other counters, and changes that the trend is too smooth to
follow. The trend is learnt from contention that NFs can exert, and stays constant beyond. Separate trees are grown for
contention within and beyond that range: residuals beyond are ten times as large, and common trees would carry them
over into the gaps.

Mean absolute percentage error on the simulated card, over 800 co-locations of the nine NFs of Tomur's table 2 at
default and 800 at random traffic, and next to benches beyond what NFs exert: this model 0.66, 0.97 and 5.4; the trend
alone 0.65, 0.95 and 7.6; boosting alone 0.87, 6.8 and 4.0. Common trees for both ranges, tried when the working set was
not yet measured by how much of it exceeds the cache, had 0.70, 2.9 and 6.0, against 0.69, 1.14 and 5.1 of trees beyond
alone.

The rest of the error is in what summed counters cannot express. They count accesses that an NF's private cache serves,
and an NF accesses its packet buffers often and its large tables seldom, where mem-bench accesses all memory alike. Next
to NFs with the same sums as a bench, the model therefore expects slightly more contention than there is: FlowStats next
to benches that resemble NFs is predicted 0.3 % below the truth on average, next to three NFs 1.8 %. Measured co-runs
correct that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.regression.boosting import Forests, Trees, boost, forests_of, write_sums
from predictor.regression.compiled import compile_kernel, copy_into, fill
from predictor.regression.gaussian_process import GaussianProcess, side_by_side
from predictor.regression.packed import FOREST_ARRAYS, PROCESS_ARRAYS, forests_at, numbers_1d, processes_at
from predictor.regression.processes import Processes, add_squared, value_at
from predictor.regression.significant import significant
from profiles import COUNTERS
from profiles.arrays import Floats
from profiles.shown import Shown

ENOUGH_RUNS = 10


@dataclass(frozen=True)
class MemoryRuns:
    """Runs under memory contention, one row each."""

    counters: Floats  # the competitors', summed, shape (N, 7)
    traffic: Floats  # shape (N, 3)
    own_wss: Floats  # the NF's own working set alone (MB), shape (N,); zero where it is not known

    def __getitem__(self, rows: NDArray[np.bool_]) -> MemoryRuns:
        return MemoryRuns(self.counters[rows], self.traffic[rows], self.own_wss[rows])

    def accesses(self) -> Floats:
        """The competitors' cache accesses per second."""
        return access_rate(self.counters)

    def contention(self) -> Floats:
        """Inputs of the trend, shape (N, 6)."""
        inputs = np.empty((len(self.counters), INPUT_COUNT))
        write_inputs_of_all(*self.contiguous(), inputs)
        return significant(inputs, of=1.0)

    def features(self) -> Floats:
        """Inputs of the trees: the seven counters and the traffic attributes, shape (N, 10)."""
        return np.concatenate([self.counters, self.traffic], axis=1)

    def contiguous(self) -> tuple[Floats, Floats, Floats]:
        """Counters, traffic and working set as compiled code reads them: as arrays that may be written."""
        counters, traffic, own_wss = (
            np.require(array, np.float64, ["C", "W"]) for array in (self.counters, self.traffic, self.own_wss)
        )
        return counters, traffic, own_wss


@dataclass(frozen=True, repr=False)
class MemoryModel(Shown):
    """The logarithm of throughput under memory contention, relative to what it was trained with."""

    trend: GaussianProcess  # for contention that NFs can exert; constant beyond
    most_accesses: float  # cache accesses per second that NFs can exert
    within: Trees
    beyond: Trees  # trees for contention within that range and beyond it, added to the trend
    errors: Floats
    """Of runs within that range, when left out of training: measured over predicted, logarithm, shape (M,)."""

    @classmethod
    def fit(cls, runs: MemoryRuns, logarithm: Floats, *, most_accesses: float = np.inf, seed: int = 0) -> MemoryModel:
        """Learn `logarithm`, shape (N,), from `runs`. `most_accesses`: cache accesses per second that competing NFs can
        exert. `seed`: seeds the boosting.
        """
        if (runs.accesses() <= most_accesses).sum() < ENOUGH_RUNS:
            most_accesses = np.inf
        settings = np.unique(runs.traffic, axis=0, return_inverse=True)[1].ravel().astype(np.intp)
        inputs, features, near = runs.contention(), runs.features(), runs.accesses() <= most_accesses
        logarithm = significant(logarithm, of=1.0)
        at, measured, setting = inputs[near], logarithm[near], settings[near]
        trend = GaussianProcess.fit(at, measured[:, None], setting)

        def left_by(kept: NDArray[np.intp]) -> Floats:
            less = trend.refitted(at[kept], measured[kept, None], setting[kept])
            return significant(measured - less(at)[:, 0], of=1.0)

        left = significant(logarithm - trend(inputs)[:, 0], of=1.0)
        within = boost(features[near], left[near], setting, seed, left_by=left_by)
        # beyond, runs are few and differ by contention far more than by setting
        beyond = boost(features[~near], left[~near], np.arange((~near).sum()), seed)
        errors = trend.left_out(measured[:, None], setting)[:, 0] - within.unseen
        contended = (runs.counters[near] > 0).any(axis=1)
        return cls(trend, most_accesses, within.trees, beyond.trees, errors[contended])

    def kpps(self, traffic: Floats) -> Floats:
        """Throughput (kpps) without competitors, shape (N,), by a model that was trained on throughput itself."""
        nothing = np.zeros((len(traffic), len(COUNTERS)))
        rates: Floats = np.exp(self(MemoryRuns(nothing, traffic, np.zeros(len(traffic)))))
        return rates

    def __call__(self, runs: MemoryRuns) -> Floats:
        """The logarithm at each row."""
        logarithm = np.empty(len(runs.counters))
        write_logarithms(self._models, 0, *runs.contiguous(), logarithm)
        return logarithm

    @cached_property
    def _models(self) -> MemoryModels:
        return memory_models([self])

    def as_arrays(self) -> dict[str, Floats]:
        """What was learnt, as plain arrays."""
        parts: dict[str, GaussianProcess | Trees] = {"trend": self.trend, "within": self.within, "beyond": self.beyond}
        return {
            "most_accesses": np.array([self.most_accesses]),
            "errors": self.errors,
            **{f"{part}_{name}": array for part, model in parts.items() for name, array in model.as_arrays().items()},
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Floats]) -> MemoryModel:
        """The model that `as_arrays` returned."""
        trend, within, beyond = (
            {name.removeprefix(part): array for name, array in arrays.items() if name.startswith(part)}
            for part in ("trend_", "within_", "beyond_")
        )
        return cls(
            GaussianProcess.from_arrays(trend),
            float(arrays["most_accesses"][0]),
            Trees.from_arrays(within),
            Trees.from_arrays(beyond),
            arrays["errors"],
        )


def memory_models(models: Sequence[MemoryModel]) -> MemoryModels:
    """The models as compiled code reads them."""
    return MemoryModels(
        trend=side_by_side([model.trend for model in models]),
        within=forests_of([model.within for model in models]),
        beyond=forests_of([model.beyond for model in models]),
        most_accesses=np.array([model.most_accesses for model in models]),
    )


def access_rate(counters: Floats) -> Floats:
    """Cache accesses per second of rows of counters, shape (N, 7)."""
    return counters[:, READS_COUNTER] + counters[:, WRITES_COUNTER]


# The memory model as compiled code evaluates it: for the runs of one NF, row by row.


READS_COUNTER, WRITES_COUNTER, WORKING_SET = (COUNTERS.index(name) for name in ("l2crd", "l2cwr", "wss"))
ACCESS_UNIT = 1e6
WORKING_SET_UNIT = 0.3
"""Accesses per second and MB below which contention is negligible: the scales are linear below, logarithmic above."""
FADED_FACTOR = 1.5  # multiple of `most_accesses` from which only the trees beyond count; they fade in from there
FULL_CACHE, SPILLED_UNIT = 3.0, 0.05
"""MB of which half does not fit into the cache, and the share that does not fit below which it is negligible."""
INPUT_COUNT, OF_COMPETITORS = 6, 2  # inputs of the trend, and those of them that belong to the competitors
ROWS_AT_ONCE = 256


class MemoryModels(NamedTuple):
    """Memory models side by side: the attributes of `MemoryModel`, each with one entry per model."""

    trend: Processes
    within: Forests
    beyond: Forests
    most_accesses: Floats


MEMORY_ARRAYS = PROCESS_ARRAYS + 2 * FOREST_ARRAYS + 1


@compile_kernel
def memory_models_at(packed, at):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """`MemoryModels` whose first array is number `at`."""
    trees = at + PROCESS_ARRAYS
    return MemoryModels(
        processes_at(packed, at), forests_at(packed, trees), forests_at(packed, trees + FOREST_ARRAYS),
        numbers_1d(packed, trees + 2 * FOREST_ARRAYS),
    )  # fmt: skip


@compile_kernel
def write_inputs_of_competitors(counters, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write those inputs of the trend for one run that belong to the competitors."""
    working_set = counters[WORKING_SET]
    inputs[0] = math.log1p((counters[READS_COUNTER] + counters[WRITES_COUNTER]) / ACCESS_UNIT)
    # beyond the size of the cache, a larger working set slows others hardly more
    inputs[1] = math.log1p(working_set / (working_set + FULL_CACHE) / SPILLED_UNIT)


@compile_kernel
def write_own_inputs(traffic, own_wss, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Write those inputs of the trend for one run that belong to the NF itself."""
    inputs[2] = math.log1p(own_wss / WORKING_SET_UNIT)
    inputs[3] = math.log(max(traffic[0], 1.0))
    inputs[4] = math.log(max(traffic[1], 1.0))
    inputs[5] = traffic[2]


@compile_kernel
def write_inputs_of_all(counters, traffic, own_wss, inputs):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the inputs of the trend for each run, shape (N, 6)."""
    for row in range(len(inputs)):
        write_inputs_of_competitors(counters[row], inputs[row])
        write_own_inputs(traffic[row], own_wss[row], inputs[row])


@compile_kernel
def write_logarithms(models, which, counters, traffic, own_wss, logarithm):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write the logarithm that one model predicts for each run, shapes (N, 7), (N, 3), (N,) and (N,)."""
    count, inputs = models.trend.size[which], np.empty(INPUT_COUNT)
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
                add_squared(models.trend, which, inputs, OF_COMPETITORS, INPUT_COUNT, own_squared)
                known = row
            write_inputs_of_competitors(counters[row], inputs)
            copy_into(squared, own_squared)
            add_squared(models.trend, which, inputs, 0, OF_COMPETITORS, squared)
            logarithm[row] = value_at(models.trend, which, squared)
            accesses = max(counters[row, READS_COUNTER] + counters[row, WRITES_COUNTER], 1.0)
            share = 0.0
            if accesses > models.most_accesses[which]:
                excess = math.log(accesses) - math.log(models.most_accesses[which])
                share = min(max(excess / math.log(FADED_FACTOR), 0.0), 1.0)
            beyond[row - start] = share
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


@compile_kernel
def _differ(one, other):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    differ = False
    for at in range(len(one)):
        differ = differ or one[at] != other[at]
    return differ
