"""What real co-locations add to trained models: corrections, and how far predictions err."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from predictor.contention.calibration import Calibration
from predictor.contention.intervals import ErrorModel, HeldOutErrors, TrafficScale
from predictor.contention.measured_alone import MeasuredAlone
from predictor.contention.nf_model import NfModel
from predictor.regression.significant import significant
from predictor.training.co_runs import ComparedRuns, compared_next_to_benches, compared_with
from predictor.training.error_models import fit_error_models, restandardised
from predictor.training.measurements import Measurements
from predictor.training.neighbours import fit_neighbours

Array = NDArray[np.float64]

ENOUGH = 20
"""Runs in real co-locations from which on errors are estimated from these alone."""


def calibrated(models: Mapping[str, NfModel], measured: Measurements) -> dict[str, NfModel]:
    """The models with corrections, where real co-locations were measured and they help, and with error models.

    First a correction by the conditions of predictions, which helps everywhere; then, in units of the spread that is
    left, one by the NFs that share the NIC, which answers measured co-locations as measured.

    Without real co-locations, errors next to benches that were left out of training are used.

    Raises
    ------
    InputError
        When measured co-locations contradict the other runs beyond belief.
    """
    default = np.array(measured.default_traffic.as_tuple())
    scales = {name: TrafficScale.of(default, model.measured) for name, model in models.items()}
    models = {
        name: replace(model, error_model=ErrorModel.even(scales[name], np.zeros(0))) for name, model in models.items()
    }
    models = {name: replace(model, alone=_measured_alone(model, measured)) for name, model in models.items()}
    compared, of_benches = compared_with(measured, models), compared_next_to_benches(measured, models)
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
        of_co_runs = [_left(calibrations[name], rows)] if rows else []
        errors = [model.memory.errors, of_benches[name].error, *of_co_runs]
        error_models[name] = ErrorModel.even(scales[name], np.concatenate(errors))
    fitted = fit_error_models(held_out, scales)
    neighbours, optimism = {}, {}
    for name, errors_of in fitted.items():
        rows, calibration = compared[name], calibrations[name]
        named, spread = rows.conditions.named, errors_of.at(rows.conditions)
        kept = _kept(calibration, rows)
        standard, noise = (kept / spread)[named], (rows.noise / spread**2)[named]
        if found := fit_neighbours(tuple(models), rows.conditions.neighbours[named], standard, noise):
            neighbours[name] = found
            optimism[name] = ((_left(calibration, rows) - kept) / spread)[named]
    error_models |= restandardised(fitted, neighbours, optimism)
    return {
        name: replace(
            model,
            calibration=calibrations[name],
            neighbours=neighbours.get(name),
            error_model=error_models[name],
        )
        for name, model in models.items()
    }


def _measured_alone(model: NfModel, measured: Measurements) -> MeasuredAlone | None:
    of_nf = measured.nfs[model.name].alone
    further = [(one.traffic.as_tuple(), runs) for one, runs in measured.alone.items() if one.nf == model.name]
    traffic = np.concatenate([of_nf.traffic, *(np.tile(at, (len(runs), 1)) for at, runs in further)])
    kpps = np.concatenate([of_nf.throughput, *(runs for _, runs in further)])
    if not len(traffic):
        return None
    return MeasuredAlone.fit(traffic, significant(np.log(kpps / model.modelled_solo_kpps(traffic)), of=1.0))


def _kept(calibration: Calibration | None, rows: ComparedRuns) -> Array:
    """The error of each row that the calibration, which was fitted to it, leaves."""
    return rows.error - np.log(calibration(rows.conditions)) if calibration else rows.error


def _left(calibration: Calibration | None, rows: ComparedRuns) -> Array:
    """The error of each row when it is left out of the correction."""
    return calibration.errors if calibration else rows.error
