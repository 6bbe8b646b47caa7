"""What real co-locations add to trained models: the choice between patterns, a correction, and the size of errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from predictor.contention.calibration import Calibration
from predictor.contention.intervals import ABSURD, ErrorModel, HeldOutErrors, TrafficScale
from predictor.contention.nf_model import NfModel
from predictor.training.co_runs import ComparedRuns, compared_by_name, compared_by_sums
from predictor.training.error_models import fit_error_models
from predictor.training.measurements import CoLocation, Measurements, NfMeasurements
from profiles import InputError
from profiles.profile import THROUGHPUT

Array = NDArray[np.float64]

ENOUGH = 20
"""Runs in real co-locations from which on errors are estimated from these alone."""


def choose(plausible: Mapping[str, Sequence[NfModel]], co_locations: Mapping[CoLocation, Array]) -> dict[str, NfModel]:
    """One of the plausible models of each NF: the only one, else the one that fits measured co-locations best.

    The throughput in a co-location depends on the models of all its members, so NFs are decided one after another.
    """
    chosen = {name: models[0] for name, models in plausible.items()}
    for name, models in plausible.items():
        if len(models) == 1 or not co_locations:
            continue
        misfits = [_misfit({**chosen, name: model}, co_locations) for model in models]
        evidence = {str(model.execution.pattern): round(one, 3) for model, one in zip(models, misfits, strict=True)}
        chosen[name] = replace(models[int(np.argmin(misfits))], evidence_in_co_location=evidence)
    return chosen


def calibrated(models: Mapping[str, NfModel], measured: Measurements) -> dict[str, NfModel]:
    """The models with a correction, where real co-locations were measured and it helps, and with an error model.

    Without real co-locations, errors next to benches that were left out of training are used.

    Raises
    ------
    InputError
        When measured co-locations contradict the other runs beyond belief.
    """
    compared = _compared(models, measured)
    scales = {name: TrafficScale.of(measured.default_traffic, model.measured) for name, model in models.items()}
    calibrations: dict[str, Calibration | None] = {}
    held_out: dict[str, HeldOutErrors] = {}
    error_models: dict[str, ErrorModel] = {}
    for name, model in models.items():
        rows = compared.get(name)
        calibrations[name] = Calibration.fit(rows.conditions, rows.error, rows.co_location) if rows else None
        if rows and len(rows.error) >= ENOUGH:
            distance = scales[name].distance(rows.conditions)
            held_out[name] = HeldOutErrors(_left(calibrations[name], rows), distance, rows.noise)
            continue
        of_benches = [model.memory.errors, *_next_to_benches(measured.nfs[name], model)]
        of_co_runs = [_left(calibrations[name], rows)] if rows else []
        error_models[name] = ErrorModel.even(scales[name], np.concatenate([*of_benches, *of_co_runs]))
    error_models |= fit_error_models(held_out, scales)
    return {
        name: replace(model, calibration=calibrations[name], error_model=error_models[name])
        for name, model in models.items()
    }


def _misfit(models: Mapping[str, NfModel], co_locations: Mapping[CoLocation, Array]) -> float:
    """Mean absolute percentage error of all NFs in measured co-locations."""
    errors = np.concatenate([rows.error for _, rows in compared_by_name(models, co_locations)])
    return float(100 * np.abs(np.expm1(-errors)).mean())


def _left(calibration: Calibration | None, rows: ComparedRuns) -> Array:
    """The error of each row when it is left out of the correction."""
    return calibration.errors if calibration else rows.error


def _compared(models: Mapping[str, NfModel], measured: Measurements) -> dict[str, ComparedRuns]:
    parts: dict[str, list[ComparedRuns]] = defaultdict(list)
    for name, model in models.items():
        co_runs = measured.nfs[name].co_runs
        if len(co_runs):
            parts[name].append(compared_by_sums(co_runs, model))
    for name, rows in compared_by_name(models, measured.co_locations):
        parts[name].append(rows)
    compared = {name: ComparedRuns.joined(of_nf) for name, of_nf in parts.items()}
    for name, rows in compared.items():
        _refuse_absurd(name, rows)
    return compared


def _refuse_absurd(name: str, rows: ComparedRuns) -> None:
    """InputError when measured co-locations are nothing like the NF alone and next to benches."""
    typical = float(np.exp(np.median(rows.error)))
    fastest = float((np.exp(rows.error) * rows.conditions.kept).max())
    if fastest > ABSURD:
        wrong = f"in one run {fastest:.3g} times as fast as alone"
    elif not 1 / ABSURD <= typical <= ABSURD:
        wrong = f"typically {typical:.3g} times as fast as predicted"
    else:
        return
    raise InputError.of(
        f"{name}/co-locations.csv, co-runs.csv, or those of the NFs in its co-locations",
        f"in co-locations {name} is {wrong}",
        column=THROUGHPUT,
        hint="throughput_kpps are thousands of packets per second",
    )


def _next_to_benches(nf: NfMeasurements, model: NfModel) -> list[Array]:
    return [compared_by_sums(nf.pattern, model).error] if len(nf.pattern) else []
