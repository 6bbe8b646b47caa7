"""Fitted curves in solo models: which runs make a curve, and whether the solo model is better with it.

A curve serves only where it surely reduces the error at measurements that were left out of both, the solo model with
the curve and the one without. The process alone interpolates many exact runs well, so few curves pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from predictor.contention.execution import Execution
from predictor.contention.solo import SoloFit, SoloModel
from predictor.contention.solo_throughput import SoloThroughput
from predictor.fitting.curve import MeasuredCurve
from predictor.fitting.fit import fit
from predictor.fitting.fitted_model import FittedModel
from predictor.training.cores import cores_alone
from predictor.training.measurements import NfMeasurements
from profiles import ATTRIBUTES
from profiles.profile import THROUGHPUT

Array = NDArray[np.float64]
Rows = NDArray[np.bool_]

DISTINCT = 12
"""Different values of one attribute, the rest of the traffic unchanged, from which on a curve is fitted."""
FOLDS, SPLITS = 5, 3
"""Parts of the measurements, each of which is left out once; and how often they are split anew."""
FEWEST = 2 * FOLDS
"""Different traffic below which a curve is not compared."""
SURE = 2.0
"""Standard errors of the mean gain below which a curve does not serve: a profile has many NFs, any of which may seem to
gain."""
CHECKED = 201
"""Places at which a curve must be above zero."""

OWN_RUNS: Literal["own runs"] = "own runs"
"""In place of a curve: fit one to the NF's runs."""
SoloCurve = FittedModel | Literal["own runs"]
FitOf = Callable[[Rows], FittedModel | None]
"""A curve from some of the runs; None where these make none."""


@dataclass(frozen=True)
class RunLine:
    """Runs along which only one attribute varies: its position, and which runs, shape (N,)."""

    attribute: int
    rows: Rows


def with_fit_of_runs(solo: SoloModel, measured: NfMeasurements, execution: Execution, given: SoloCurve) -> SoloModel:
    """The solo model with a curve of the NF's throughput alone, in use where it surely helps.

    Parameters
    ----------
    solo
        The model without a curve.
    measured, execution
        The NF, as `fit_solo` took them.
    given
        A curve measured elsewhere, as `is_above_zero`, over an attribute of the solo model; with `OWN_RUNS`, the
        longest line of the profile's runs makes one, if it is long enough.
    """
    traffic, kpps = cores_alone(measured, execution)
    attributes = solo.throughput.attributes
    fit_of = _fit_of_runs(attributes, traffic, kpps) if isinstance(given, str) else (lambda _: given)
    if fit_of is None or len(np.unique(traffic, axis=0)) < FEWEST:
        return solo
    curve = fit_of(np.ones(len(kpps), dtype=np.bool_))
    if curve is None:
        return solo
    found = _compared(attributes, traffic, kpps, fit_of, curve)
    throughput = SoloThroughput.fit(attributes, traffic, kpps, curve) if found.serves else solo.throughput
    return replace(solo, throughput=throughput, fit_of_runs=found)


def is_above_zero(curve: FittedModel) -> bool:
    """Whether the curve is a throughput all over its range."""
    even = np.linspace(curve.start, curve.end, CHECKED)
    places = np.concatenate([even, [one.start for one in curve.segments], [one.at for one in curve.breakpoints]])
    if curve.start > 0:
        places = np.concatenate([places, np.geomspace(curve.start, curve.end, CHECKED)])
    values = curve.predict(np.clip(places, curve.start, curve.end))
    return bool(np.all(np.isfinite(values) & (values > 0)))


def longest_line(attributes: tuple[int, ...], traffic: Array) -> RunLine | None:
    """The line with the most different values, of at least `DISTINCT`; None when there is none."""
    best, most = None, DISTINCT - 1
    for attribute in attributes:
        others = [at for at in attributes if at != attribute]
        _, setting = np.unique(traffic[:, others], axis=0, return_inverse=True)
        for number in range(int(setting.max(initial=-1)) + 1):
            rows = setting.ravel() == number
            if (values := len(np.unique(traffic[rows, attribute]))) > most:
                best, most = RunLine(attribute, rows), values
    return best


def _fit_of_runs(attributes: tuple[int, ...], traffic: Array, kpps: Array) -> FitOf | None:
    line = longest_line(attributes, traffic)
    if line is None:
        return None
    first = traffic[line.rows][0]
    setting = {ATTRIBUTES[at]: float(first[at]) for at in attributes if at != line.attribute}

    def fit_of(rows: Rows) -> FittedModel | None:
        used = line.rows & rows
        curve = MeasuredCurve(
            ATTRIBUTES[line.attribute], THROUGHPUT, traffic[used, line.attribute], kpps[used], setting
        )
        # the time that it took is no part of a model: the same runs make the same files
        model = replace(fit(curve), seconds=0.0)
        return model if is_above_zero(model) else None

    return fit_of


def _compared(attributes: tuple[int, ...], traffic: Array, kpps: Array, fit_of: FitOf, curve: FittedModel) -> SoloFit:
    """Errors with and without the curve at left-out measurements, on average over splits; up to the first doubt."""
    settings, setting = np.unique(traffic, axis=0, return_inverse=True)
    setting, logarithm = setting.ravel(), np.log(kpps)
    measured = np.bincount(setting, logarithm) / np.bincount(setting)
    total, sure, splits = np.zeros((2, len(settings))), True, 0
    while sure and splits < SPLITS:
        part = np.random.default_rng(splits).permutation(len(settings)) % FOLDS
        for number in range(FOLDS):
            left = part == number
            rows = ~left[setting]
            for at, used in enumerate((None, fit_of(rows))):
                model = SoloThroughput.fit(attributes, traffic[rows], kpps[rows], used)
                total[at, left] += np.abs(np.log(model.kpps(settings[left])) - measured[left])
        splits += 1
        gain = (total[0] - total[1]) / splits
        sure = bool(gain.mean() > SURE * gain.std(ddof=1) / np.sqrt(len(gain)))
    without, with_curve = (100.0 * float(one.mean()) / splits for one in total)
    return SoloFit(curve, len(settings), with_curve, without, sure)
