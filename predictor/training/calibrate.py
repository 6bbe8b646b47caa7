"""What measured company tells of trained models: which is right, how to correct them, and how far to trust them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from predictor.contention.calibration import Calibration
from predictor.contention.intervals import Errors, Place, Spread, fit_spreads
from predictor.contention.nf_model import NfModel
from predictor.training.co_runs import CoLocation, Compared, compared_by_name, compared_by_sums, joined
from profiles import InputError
from profiles.profile import THROUGHPUT, NfProfile, Profile

Array = NDArray[np.float64]

ABSURD = 3.0
"""Times what is predicted, typically, or what an NF reaches alone, in any run, that no measurement of it is."""
ENOUGH = 20
"""Runs in real company from which they alone tell how far predictions err."""


def choose(plausible: Mapping[str, Sequence[NfModel]], co_locations: Mapping[CoLocation, Array]) -> dict[str, NfModel]:
    """One of the plausible models of each NF: where benches tell them apart, the first; else what `companies` tell.

    In each company everybody's throughput depends on everybody's model, so NFs are decided one after another.
    """
    chosen = {name: models[0] for name, models in plausible.items()}
    for name, models in plausible.items():
        if len(models) == 1 or not co_locations:
            continue
        misfits = [_misfit({**chosen, name: model}, co_locations) for model in models]
        evidence = {str(model.execution.pattern): round(one, 3) for model, one in zip(models, misfits, strict=True)}
        chosen[name] = replace(models[int(np.argmin(misfits))], evidence_in_co_location=evidence)
    return chosen


def judge(
    profile: Profile, models: Mapping[str, NfModel], co_locations: Mapping[CoLocation, Array]
) -> dict[str, NfModel]:
    """The models, corrected where real company was measured and that helps, each told how far it errs.

    Without real company, errors beside benches that were left out of training stand in.
    """
    compared, default = _compared(profile, models, co_locations), profile.default_traffic()
    places = {name: Place.of(np.array(default.as_tuple()), model.measured) for name, model in models.items()}
    calibrations: dict[str, Calibration | None] = {}
    unseen: dict[str, Errors] = {}
    spreads: dict[str, Spread] = {}
    for name, model in models.items():
        rows = compared.get(name)
        calibrations[name] = Calibration.fit(rows.seen, rows.error, rows.co_location) if rows else None
        if rows and len(rows.error) >= ENOUGH:
            unseen[name] = Errors(_left(calibrations[name], rows), places[name](rows.seen), rows.noise)
            continue
        of_benches = [model.memory.errors, *_beside_benches(profile.nfs[name], model)]
        spreads[name] = Spread.even(
            places[name], np.concatenate([*of_benches, *([_left(calibrations[name], rows)] if rows else [])])
        )
    spreads |= fit_spreads(unseen, places)
    return {
        name: replace(model, calibration=calibrations[name], spread=spreads[name]) for name, model in models.items()
    }


def _misfit(models: Mapping[str, NfModel], co_locations: Mapping[CoLocation, Array]) -> float:
    """Mean absolute percentage error of everybody in measured companies."""
    errors = np.concatenate([rows.error for _, rows in compared_by_name(models, co_locations)])
    return float(100 * np.abs(np.expm1(-errors)).mean())


def _left(calibration: Calibration | None, rows: Compared) -> Array:
    """What is left of each error when its row is not learnt from."""
    return calibration.errors if calibration else rows.error


def _compared(
    profile: Profile, models: Mapping[str, NfModel], co_locations: Mapping[CoLocation, Array]
) -> dict[str, Compared]:
    parts: dict[str, list[Compared]] = defaultdict(list)
    for name, model in models.items():
        if len(profile.nfs[name].co_runs):
            parts[name].append(compared_by_sums(profile.nfs[name].co_runs, model))
    for name, rows in compared_by_name(models, co_locations):
        parts[name].append(rows)
    compared = {name: joined(of_nf) for name, of_nf in parts.items()}
    for name, rows in compared.items():
        _refuse_absurd(name, rows)
    return compared


def _refuse_absurd(name: str, rows: Compared) -> None:
    """InputError when measured company is nothing like the NF alone and beside benches."""
    typical = float(np.exp(np.median(rows.error)))
    fastest = float((np.exp(rows.error) * rows.seen.kept).max())
    if fastest > ABSURD:
        told = f"in one run {fastest:.3g} times as fast as alone"
    elif not 1 / ABSURD <= typical <= ABSURD:
        told = f"typically {typical:.3g} times as fast as predicted"
    else:
        return
    raise InputError.of(
        f"{name}/companies.csv, co-runs.csv or those of its companions",
        f"in company {name} is {told}",
        column=THROUGHPUT,
        hint="throughput_kpps are thousands of packets per second",
    )


def _beside_benches(nf: NfProfile, model: NfModel) -> list[Array]:
    return [compared_by_sums(nf.pattern, model).error] if len(nf.pattern) else []
