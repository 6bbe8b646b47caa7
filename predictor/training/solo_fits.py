"""Fitted curves in solo models: which runs make a curve, and whether the solo model is better with it. A curve serves
only where it surely reduces the error at measurements that were left out of both, the solo model with the curve and the
one without. The process alone interpolates many exact runs well, so few curves pass."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from predictor.contention.execution import PIPELINE, Execution, Pattern
from predictor.contention.memory import MemoryModel, MemoryRuns
from predictor.contention.solo import SoloFit, SoloModel, SoloThroughput
from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import FittedModel
from predictor.fitting.points import MeasuredCurve
from predictor.training.measurements import NfMeasurements, Runs
from profiles import ATTRIBUTES
from profiles.arrays import Bools, Floats
from profiles.profile import KPPS_COLUMN

DISTINCT_VALUES = 12
"""Different values of one attribute, the rest of the traffic unchanged, from which on a curve is fitted."""
CROSS_VALIDATION_FOLDS, SPLIT_REPEATS = 5, 3
"""Parts of the measurements, each of which is left out once; and how often they are split anew."""
FEWEST_TRAFFICS = 2 * CROSS_VALIDATION_FOLDS  # different traffic below which a curve is not compared
SURE_ERRORS = 2.0
"""Standard errors of the mean gain below which a curve does not serve: a profile has many NFs, any of which may seem to
gain."""
CHECKED_PLACES = 201  # places at which a curve must be above zero
OWN_RUNS: Literal["own runs"] = "own runs"  # in place of a curve: fit one to the NF's runs
SoloCurve = FittedModel | Literal["own runs"]
FitOf = Callable[[Bools], FittedModel | None]  # a curve from some of the runs; None where these make none


@dataclass(frozen=True)
class RunLine:
    """Runs along which only one attribute varies: its position, and which runs, shape (N,)."""

    attribute: int
    rows: Bools


def with_fit_of_runs(solo: SoloModel, measured: NfMeasurements, execution: Execution, given: SoloCurve) -> SoloModel:
    """The solo model with a curve of the NF's throughput alone, in use where it surely helps. `solo`: the model without
    a curve. `measured` and `execution`: the NF, as `fit_solo` took them. `given`: a curve measured elsewhere, as
    `is_above_zero`, over an attribute of the solo model; with `OWN_RUNS`, the longest line of the profile's runs makes
    one, if it is long enough."""
    traffic, kpps = cores_alone(measured, execution)
    attributes = solo.throughput.attributes
    fit_of = _fit_of_runs(attributes, traffic, kpps) if isinstance(given, str) else (lambda _: given)
    if fit_of is None or len(np.unique(traffic, axis=0)) < FEWEST_TRAFFICS:
        return solo
    curve = fit_of(np.ones(len(kpps), dtype=np.bool_))
    if curve is None:
        return solo
    found = _compare_fits(attributes, traffic, kpps, fit_of, curve)
    throughput = SoloThroughput.fit(attributes, traffic, kpps, curve) if found.serves else solo.throughput
    return replace(solo, throughput=throughput, fit_of_runs=found)


def is_above_zero(curve: FittedModel) -> bool:
    """Whether the curve is a throughput all over its range."""
    even = np.linspace(curve.start, curve.end, CHECKED_PLACES)
    places = np.concatenate([even, [part.start for part in curve.segments], [bend.at for bend in curve.breakpoints]])
    if curve.start > 0:
        places = np.concatenate([places, np.geomspace(curve.start, curve.end, CHECKED_PLACES)])
    values = curve.predict(np.clip(places, curve.start, curve.end))
    return bool(np.all(np.isfinite(values) & (values > 0)))


def longest_line(attributes: tuple[int, ...], traffic: Floats) -> RunLine | None:
    """The line with the most different values, of at least `DISTINCT_VALUES`; None when there is none."""
    best, most = None, DISTINCT_VALUES - 1
    for attribute in attributes:
        others = [at for at in attributes if at != attribute]
        _, setting = np.unique(traffic[:, others], axis=0, return_inverse=True)
        for number in range(int(setting.max(initial=-1)) + 1):
            rows = setting.ravel() == number
            if (values := len(np.unique(traffic[rows, attribute]))) > most:
                best, most = RunLine(attribute, rows), values
    return best


def _fit_of_runs(attributes: tuple[int, ...], traffic: Floats, kpps: Floats) -> FitOf | None:
    line = longest_line(attributes, traffic)
    if line is None:
        return None
    first = traffic[line.rows][0]
    setting = {ATTRIBUTES[at]: float(first[at]) for at in attributes if at != line.attribute}

    def fit_of(rows: Bools) -> FittedModel | None:
        used = line.rows & rows
        curve = MeasuredCurve(
            ATTRIBUTES[line.attribute], KPPS_COLUMN, traffic[used, line.attribute], kpps[used], setting
        )
        # the time that it took is no part of a model: the same runs make the same files
        model = replace(fit(curve), seconds=0.0)
        return model if is_above_zero(model) else None

    return fit_of


def _compare_fits(
    attributes: tuple[int, ...], traffic: Floats, kpps: Floats, fit_of: FitOf, curve: FittedModel
) -> SoloFit:
    """Errors with and without the curve at left-out measurements, on average over splits; up to the first doubt."""
    settings, setting = np.unique(traffic, axis=0, return_inverse=True)
    setting, logarithm = setting.ravel(), np.log(kpps)
    measured = np.bincount(setting, logarithm) / np.bincount(setting)
    total, sure, splits = np.zeros((2, len(settings))), True, 0
    while sure and splits < SPLIT_REPEATS:
        part = np.random.default_rng(splits).permutation(len(settings)) % CROSS_VALIDATION_FOLDS
        for number in range(CROSS_VALIDATION_FOLDS):
            left = part == number
            rows = ~left[setting]
            for at, used in enumerate((None, fit_of(rows))):
                model = SoloThroughput.fit(attributes, traffic[rows], kpps[rows], used)
                total[at, left] += np.abs(np.log(model.kpps(settings[left])) - measured[left])
        splits += 1
        gain = (total[0] - total[1]) / splits
        sure = bool(gain.mean() > SURE_ERRORS * gain.std(ddof=1) / np.sqrt(len(gain)))
    without, with_curve = (100.0 * float(mean.mean()) / splits for mean in total)
    return SoloFit(curve, len(settings), with_curve, without, sure)


# The cores of an NF, without accelerators: fits of its solo and its memory model.


SOLO_ROWS = 3
BINDING_SHARE = 0.9  # share of what an accelerator allows, below which it does not bind
MOSTLY_CORES = 0.6  # share of time on matches, above which the cores' share is too uncertain to learn from


def fit_solo(measured: NfMeasurements, execution: Execution) -> SoloModel | None:
    """From the runs without competitors that no accelerator bound, without the time that matches took. None when the
    profile holds too few solo runs."""
    if len(measured.solo) < SOLO_ROWS:
        return None
    traffic, throughput = cores_alone(measured, execution)
    return SoloModel.fit(
        attributes=(0, 1) if measured.accelerators else (0, 1, 2),
        traffic=traffic,
        throughput=throughput,
        counters_at=measured.solo.traffic,
        counters=measured.solo.counters,
    )


def cores_on(measured: NfMeasurements, execution: Execution) -> SoloThroughput:
    """What the cores reach alone of an NF that uses accelerators, on as many of them as were measured."""
    return SoloThroughput.fit((0, 1), *cores_alone(measured, execution))


def cores_alone(measured: NfMeasurements, execution: Execution) -> tuple[Floats, Floats]:
    """What a solo model learns throughput from: traffic, shape (N, 3), and kpps of the cores, shape (N,). Where an
    accelerator bound a run, the cores reach more than was measured, or else the other runs let expect too little."""
    traffic, (throughput, free) = measured.alone.traffic, _cores_only(measured, execution, measured.alone)
    if execution.pattern == PIPELINE and not free.all():
        free |= throughput > SoloThroughput.fit((0, 1), traffic[free], throughput[free]).kpps(traffic)
    return traffic[free], throughput[free]


def base_without_solo_runs(
    measured: NfMeasurements, pattern: Pattern, *, most_accesses: float, seed: int
) -> Floats | None:
    """Throughput (kpps) of the cores at the traffic of `measured.queues` where the profile holds too few solo runs. It
    is taken from a memory model with the least accelerator work; None where there are enough solo runs."""
    if len(measured.solo) >= SOLO_ROWS or not measured.accelerators:
        return None
    memory = fit_memory(measured, Execution(pattern), None, most_accesses=most_accesses, seed=seed)
    return memory.kpps(measured.queues.traffic * [1.0, 1.0, 0.0])


def fit_memory(
    measured: NfMeasurements, execution: Execution, solo: SoloModel | None, *, most_accesses: float, seed: int
) -> MemoryModel:
    """From the runs under memory contention, and with `solo` from the solo runs as runs without contention."""
    throughput, free = _cores_only(measured, execution, measured.memory)
    usable = ~measured.from_solo | (free if solo else False)
    runs, logarithm = measured.memory[usable], np.log(throughput[usable])
    own_wss = np.zeros(len(runs))
    if solo:
        logarithm = logarithm - np.log(solo.kpps(runs.traffic))
        own_wss = solo.working_set(runs.traffic)
    # where an NF uses accelerators, matches affect these and not its cores
    traffic = runs.traffic * [1.0, 1.0, 0.0 if execution.uses else 1.0]
    return MemoryModel.fit(
        MemoryRuns(runs.counters, traffic, own_wss), logarithm, most_accesses=most_accesses, seed=seed
    )


def _cores_only(measured: NfMeasurements, execution: Execution, runs: Runs) -> tuple[Floats, NDArray[np.bool_]]:
    """What the cores would reach with the least accelerator work, and the runs from which this is known."""
    if not measured.accelerators or not len(runs):
        return runs.throughput, np.ones(len(runs), dtype=bool)
    fewest = runs.traffic[:, 2] == runs.traffic[:, 2].min()
    if not execution.uses:
        return runs.throughput, fewest
    if execution.pattern == PIPELINE:
        free = runs.throughput * execution.service_ms(runs.traffic).max(axis=1) < BINDING_SHARE
        return runs.throughput, free if free.any() else fewest
    matching = execution.match_ms(runs.traffic) * runs.throughput
    free = matching < MOSTLY_CORES
    return runs.throughput / np.maximum(1.0 - matching, 1.0 - BINDING_SHARE), free if free.any() else fewest
