"""Measured runs of real co-locations compared with predictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from predictor.contention.calibration import Conditions
from predictor.contention.equilibrium import EquilibriumModel
from predictor.contention.intervals import ABSURD_QUANTILE
from predictor.contention.nf_model import NfModel
from predictor.contention.workload_table import WorkloadTable
from predictor.regression.significant import significant
from predictor.training.measurements import Measurements, Runs
from profiles import CoLocation, InputError
from profiles.arrays import Floats
from profiles.profile import KPPS_COLUMN

USUAL_REPEATS = 10  # repeats of an NF from which its own noise counts as much as that of the median NF


@dataclass(frozen=True)
class ComparedRuns:
    """Measured runs of one NF in real co-locations, compared with predictions, one row each."""

    conditions: Conditions  # of the predictions
    error: Floats  # measured over predicted, logarithm, shape (N,)
    noise: Floats  # variance of the measurement, shape (N,); 0 where it is not known
    co_location: NDArray[np.intp]  # equal numbers for rows of one co-location, shape (N,)

    @classmethod
    def of(cls, conditions: Conditions, ratio: Floats, noise: Floats, co_location: NDArray[np.intp]) -> ComparedRuns:
        """From the ratio of measured to predicted, shape (N,)."""
        error, kept = significant(np.log(ratio), of=1.0), significant(conditions.kept)
        return cls(replace(conditions, kept=kept), error, significant(noise), co_location)

    @classmethod
    def joined(cls, parts: Sequence[ComparedRuns]) -> ComparedRuns:
        """The rows of all parts, in order."""
        traffic, kept, pressure = (
            np.concatenate([getattr(part.conditions, name) for part in parts])
            for name in ("traffic", "kept", "pressure")
        )
        conditions = Conditions(traffic, kept, pressure, _stack([part.conditions.neighbours for part in parts]))
        rest = (np.concatenate([getattr(part, name) for part in parts]) for name in ("error", "noise", "co_location"))
        return cls(conditions, *rest)


def _stack(parts: Sequence[Floats]) -> Floats:
    """The rows of all parts, filled up with NaN to the same width."""
    width = max(part.shape[1] for part in parts)
    return np.concatenate(
        [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=np.nan) for part in parts]
    )


def compare_by_name(
    models: Mapping[str, NfModel], co_locations: Mapping[CoLocation, Floats]
) -> list[tuple[str, ComparedRuns]]:
    """Per NF, its runs in co-locations whose members are known by name."""
    if not co_locations:
        return []
    noise = _noise(co_locations)
    model = EquilibriumModel(WorkloadTable(models))
    equilibrium = model.solve(list(co_locations))
    measured, variance = (np.full(equilibrium.throughput.shape, np.nan) for _ in range(2))
    for row, (co_location, runs) in enumerate(co_locations.items()):
        given = equilibrium.batch.order[row, : equilibrium.batch.sizes[row]]
        measured[row, : len(given)] = runs.mean(axis=0)[given]
        variance[row, : len(given)] = [noise[co_location[at].nf] / len(runs) for at in given]
    return [
        (name, ComparedRuns.of(conditions, measured[at] / equilibrium.throughput[at], variance[at], at[0]))
        for name, at, conditions in model.conditions(equilibrium)
    ]


def compare_with(measured: Measurements, models: Mapping[str, NfModel]) -> dict[str, ComparedRuns]:
    """Per NF, its runs in all real co-locations; NFs without any are left out. Raises `InputError` when measured co-
    locations are nothing like the NF alone and next to benches."""
    parts: dict[str, list[ComparedRuns]] = defaultdict(list)
    for name, rows in _compare_by_sums({name: nf.co_runs for name, nf in measured.nfs.items()}, models).items():
        if len(rows.error):
            parts[name].append(rows)
    for name, rows in compare_by_name(models, measured.co_locations):
        parts[name].append(rows)
    compared = {name: ComparedRuns.joined(of_nf) for name, of_nf in parts.items()}
    for name, rows in compared.items():
        _refuse_absurd(name, rows)
    return compared


def compare_next_to_benches(measured: Measurements, models: Mapping[str, NfModel]) -> dict[str, ComparedRuns]:
    """Per NF, its runs next to memory and accelerator benches together."""
    return _compare_by_sums({name: nf.pattern for name, nf in measured.nfs.items()}, models)


def _compare_by_sums(runs: Mapping[str, Runs], models: Mapping[str, NfModel]) -> dict[str, ComparedRuns]:
    """Runs under contention of which only the sums are known; each is a co-location of its own."""
    compared = {}
    for name, model in models.items():
        of_nf = runs[name]
        predicted = model.throughput(of_nf.counters, of_nf.traffic, of_nf.service_ms, of_nf.rate_kpps)
        ratio = of_nf.throughput / predicted
        conditions = model.conditions(of_nf.traffic, predicted, of_nf.service_ms)
        compared[name] = ComparedRuns.of(conditions, ratio, np.zeros(len(ratio)), -1 - np.arange(len(ratio)))
    return compared


def _refuse_absurd(name: str, rows: ComparedRuns) -> None:
    typical = float(np.exp(np.median(rows.error)))
    fastest = float((np.exp(rows.error) * rows.conditions.kept).max())
    if fastest > ABSURD_QUANTILE:
        wrong = f"in one run {fastest:.3g} times as fast as alone"
    elif not 1 / ABSURD_QUANTILE <= typical <= ABSURD_QUANTILE:
        wrong = f"typically {typical:.3g} times as fast as predicted"
    else:
        return
    raise InputError.of(
        f"{name}/co-locations.csv, co-runs.csv, or those of the NFs in its co-locations",
        f"in co-locations {name} is {wrong}",
        column=KPPS_COLUMN,
        hint="throughput_kpps are thousands of packets per second",
    )


def _noise(co_locations: Mapping[CoLocation, Floats]) -> dict[str, float]:
    """Variance of the logarithm of a measurement, per NF, by repeats; 0 where nothing was repeated. With few repeats of
    an NF, it is shrunk towards the median of all NFs."""
    squares: dict[str, list[float]] = defaultdict(list)
    for co_location, runs in co_locations.items():
        spread = np.log(runs).var(axis=0, ddof=1) if len(runs) > 1 else ()
        for one, squared in zip(co_location, spread, strict=False):
            squares[one.nf].append(float(squared))
    usual = float(np.median([np.mean(of_nf) for of_nf in squares.values()])) if squares else 0.0
    return {
        nf: (sum(squares[nf]) + USUAL_REPEATS * usual) / (len(squares[nf]) + USUAL_REPEATS) if squares else 0.0
        for nf in {workload.nf for co_location in co_locations for workload in co_location}
    }


# The execution pattern of each NF that fits real co-locations best.


def choose(plausible: Mapping[str, Sequence[NfModel]], co_locations: Mapping[CoLocation, Floats]) -> dict[str, NfModel]:
    """One of the plausible models of each NF: the only one, else the one that fits measured co-locations best. The
    throughput in a co-location depends on the models of all its members, so NFs are decided one after another."""
    chosen = {name: models[0] for name, models in plausible.items()}
    for name, models in plausible.items():
        if len(models) == 1 or not co_locations:
            continue
        misfits = [_misfit({**chosen, name: model}, co_locations) for model in models]
        evidence = {str(model.execution.pattern): round(one, 3) for model, one in zip(models, misfits, strict=True)}
        chosen[name] = replace(models[int(np.argmin(misfits))], evidence_in_co_location=evidence)
    return chosen


def _misfit(models: Mapping[str, NfModel], co_locations: Mapping[CoLocation, Floats]) -> float:
    """Mean absolute percentage error of all NFs in measured co-locations."""
    errors = np.concatenate([rows.error for _, rows in compare_by_name(models, co_locations)])
    return float(100 * np.abs(np.expm1(-errors)).mean())
