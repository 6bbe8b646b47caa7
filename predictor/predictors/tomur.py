"""Tomur: a model per resource, composed by execution pattern (Tomur, appendix F), and corrected by measured co-runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from predictor.contention.calibration import NEAR_LENGTH, Conditions
from predictor.contention.checks import CoLocationChecks
from predictor.contention.correcting import Corrected, Corrections, correct_members, corrections_of
from predictor.contention.equilibrium import Equilibrium, EquilibriumModel
from predictor.contention.execution import COMPOSITIONS
from predictor.contention.intervals import lower_factors
from predictor.contention.left_out import LeftOutCoLocation, rows_left_out
from predictor.contention.nf_model import NfModel
from predictor.contention.workload_table import WorkloadTable
from predictor.registry import PREDICTORS, SOLO_ERROR, Prediction, Predictor, Warn
from predictor.regression.packed import PackedArrays
from predictor.tables import contention_of, counters_of, model_of, refuse_unreadable, traffic_of
from profiles import CoLocation, TrafficProfile, Workload
from profiles.arrays import Floats

if TYPE_CHECKING:
    import pandas as pd

    from profiles.profile import Profile


MEASURED_NEAR = 0.7  # share of the usual spread below which measured co-locations count as correcting a prediction
MOST_SOLVED = 100_000  # Co-locations whose throughputs are kept for the next question
NOTICEABLE_DROP = 0.005  # share of throughput from which a drop makes its resource the bottleneck


@PREDICTORS.register("tomur")
class TomurPredictor(Predictor):
    """Multi-resource prediction from the NF models alone. `nfs`: the NF models. `composition`: a name in `COMPOSITIONS`
    for all NFs, such as the strawmen `sum` and `min`; each NF's own pattern when None, which alone is corrected by
    measured co-runs."""

    supports_loads = True

    def __init__(self, nfs: Mapping[str, NfModel], *, composition: str | None = None) -> None:
        self._nfs = nfs
        self._table = WorkloadTable(nfs)
        self._composition = COMPOSITIONS[composition] if composition else None
        self._model = EquilibriumModel(self._table, self._composition)
        known = {name: model.calibration for name, model in nfs.items() if model.calibration}
        self._corrections = {} if composition else known
        self._solved: dict[tuple[Workload, ...], Floats] = {}
        self._exponents: dict[float, Floats] = {}
        self._left_out: dict[CoLocation, LeftOutCoLocation] | None = None

    @classmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        """The predictor over the NF models, which is all it needs."""
        return cls(nfs)

    def save(self, folder: Path) -> None:
        """Nothing beyond the NF models."""

    @classmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        """The predictor over the NF models."""
        return cls(nfs)

    @property
    def least_risk(self) -> float:
        """The largest of the NFs' smallest risks for which errors were measured."""
        return max(model.error_model.least_risk for model in self._nfs.values())

    def solo(self, workloads: Sequence[Workload]) -> Floats:
        """Throughput (kpps) of each workload alone on the NIC."""
        return self._table.solo_of(workloads)

    def throughput(self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None) -> list[Floats]:
        """Throughput (kpps) of every workload; with `risk`, what that share falls short of at most."""
        if risk is None:
            if all(tuple(co_location) in self._solved for co_location in co_locations):
                return [estimate[:, 0].copy() for estimate in self._estimates(co_locations)]
            equilibrium = self._model.solve(co_locations)
            corrected = self._corrected(equilibrium, least=2, certainty=False)
            return equilibrium.batch.in_given_order(corrected.throughput)
        estimates = self._estimates(co_locations)
        kpps, spread, nf = np.concatenate(estimates).T if estimates else np.zeros((3, 0))
        factors = lower_factors(self._lower_exponents(risk)[nf.astype(np.intp)], spread)
        return _split(kpps * np.minimum(factors, 1.0), estimates)

    def checks(self, risk: float | None) -> CoLocationChecks | None:
        """As of `Predictor`."""
        if self._composition is not None:
            return None
        exponents = None if risk is None else self._lower_exponents(risk)
        return CoLocationChecks(self._table, self._packed, exponents)

    def _lower_exponents(self, risk: float) -> Floats:
        """`ErrorModel.lower_exponents` of each NF, shape (NFs, 3)."""
        if risk not in self._exponents:
            self._exponents[risk] = np.array([model.error_model.lower_exponents(risk) for model in self._nfs.values()])
        return self._exponents[risk]

    def shortfall(
        self, co_locations: Sequence[Sequence[Workload]], required_kpps: Sequence[Sequence[float]]
    ) -> list[Floats]:
        """As `Predictor.shortfall`, by the error models; 0 or 1 for a workload that is alone."""
        estimates = self._estimates(co_locations)
        kpps, spread, _ = np.concatenate(estimates).T if estimates else np.zeros((3, 0))
        nf = [workload.nf for co_location in co_locations for workload in co_location]
        required = np.array([need for needs in required_kpps for need in needs], dtype=np.float64)
        short = (kpps < required).astype(np.float64)
        for name, at in _by_nf(nf):
            known = at[spread[at] > 0]
            short[known] = self._nfs[name].error_model.shortfall(spread[known], required[known] / kpps[known])
        return _split(short, estimates)

    def shortfalls(
        self, co_locations: Sequence[Sequence[Workload]], required_kpps: Sequence[Sequence[Floats]]
    ) -> list[list[Floats]]:
        estimates = self._estimates(co_locations)
        rows = [(kpps, spread) for estimate in estimates for kpps, spread, _ in estimate.tolist()]
        needs = [need for requirements in required_kpps for need in requirements]
        found: list[Floats] = [(kpps < need).astype(np.float64) for (kpps, _), need in zip(rows, needs, strict=True)]
        for name, at in _by_nf([workload.nf for co_location in co_locations for workload in co_location]):
            known = [place for place in at.tolist() if rows[place][1] > 0 and len(needs[place])]
            if known:
                sizes = [len(needs[place]) for place in known]
                kpps, spread = (np.repeat([rows[place][part] for place in known], sizes) for part in (0, 1))
                factor = np.concatenate([needs[place] for place in known]) / kpps
                short = self._nfs[name].error_model.shortfall(spread, factor)
                for place, answer in zip(known, np.split(short, np.cumsum(sizes)[:-1]), strict=True):
                    found[place] = answer
        answers = iter(found)
        return [list(islice(answers, len(co_location))) for co_location in co_locations]

    def alone_spread(self, workloads: Sequence[Workload]) -> Floats:
        rows = self._table.rows(workloads)
        known: Floats = self._table.alone_spread[rows]
        return np.where(known > 0, known, SOLO_ERROR)

    def left_out(self, default: TrafficProfile) -> Mapping[CoLocation, LeftOutCoLocation]:
        """Measured co-locations at default traffic, each as predicted from the others."""
        if self._left_out is None:
            self._left_out = self._leave_out(default)
        return self._left_out

    def _leave_out(self, default: TrafficProfile) -> dict[CoLocation, LeftOutCoLocation]:
        by_co_location = rows_left_out(self._nfs, default)
        if not by_co_location:
            return {}
        uncorrected = TomurPredictor({name: replace(model, neighbours=None) for name, model in self._nfs.items()})
        estimates = uncorrected._estimates(list(by_co_location))
        kpps, spread, _ = np.concatenate(estimates).T
        alone = self.solo([workload for key in by_co_location for workload in key])
        rows = [of_nf[workload.nf] for key, of_nf in by_co_location.items() for workload in key]
        error, left, deviation, noise = np.array([(row.error, row.left, row.deviation, row.noise) for row in rows]).T
        measured = kpps * np.exp(spread * error)
        predicted = np.minimum(kpps * np.exp(spread * (error - left)), alone)
        parts = [_split(part, estimates) for part in (measured, predicted, spread * deviation, spread * noise)]
        return {
            key: LeftOutCoLocation(kpps, estimate, around, noise, tuple(self._nfs[nf.nf].error_model for nf in key))
            for key, kpps, estimate, around, noise in zip(by_co_location, *parts, strict=True)
        }

    def _estimates(self, co_locations: Sequence[Sequence[Workload]]) -> list[Floats]:
        """Of each co-location, throughput (kpps), its spread, and the number of the NF, shape (workloads, 3). Placement
        asks for the same co-locations at several risks, so what was solved is kept."""
        keys = [tuple(co_location) for co_location in co_locations]
        if len(self._solved) > MOST_SOLVED:
            self._solved.clear()
        if missing := [key for key in dict.fromkeys(keys) if key not in self._solved]:
            equilibrium = self._model.solve(missing)
            batch = equilibrium.batch
            corrected = self._corrected(equilibrium, least=2, certainty=True)
            nf = self._table.nf[batch.member]
            rows = batch.in_given_order(np.stack([corrected.throughput, corrected.spread, nf], axis=2))
            self._solved.update(zip(missing, rows, strict=True))
        return [self._solved[key] for key in keys]

    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        """Throughput, the drop on each resource, the bottleneck, and an interval of that coverage."""
        equilibrium = self._model.solve(co_locations)
        batch = equilibrium.batch
        corrected = self._corrected(equilibrium, least=1, certainty=True)
        calibrated = (corrected.near >= NEAR_LENGTH) | (corrected.left < MEASURED_NEAR)
        low, high = np.ones(calibrated.shape), np.ones(calibrated.shape)
        positions = np.nonzero(batch.occupied)
        for name, rows in self._table.by_nf(batch.member[positions]):
            at = tuple(axis[rows] for axis in positions)
            low[at], high[at] = self._factors(name, corrected.spread[at], coverage)
        parts = (corrected.throughput, equilibrium.solo, calibrated, low, high)
        columns = [*(part[:, :, None] for part in parts), equilibrium.drops, equilibrium.bound]
        rows_of = batch.in_given_order(np.concatenate(columns, axis=2))
        return [
            [self._prediction(workload, *values) for workload, values in zip(co_location, row.tolist(), strict=True)]
            for co_location, row in zip(co_locations, rows_of, strict=True)
        ]

    def predict_contention(self, nf: str, table: pd.DataFrame) -> Floats:
        """Throughput (kpps) of `nf` per row, under contention of which only the sums are known."""
        return self._under_contention(nf, table)[0]

    def contention_details(self, nf: str, table: pd.DataFrame, *, coverage: float = 0.9) -> list[Prediction]:
        """Throughput, the drop on each resource, the bottleneck, an interval, and whether co-runs corrected it."""
        kpps, near, conditions = self._under_contention(nf, table)
        model, traffic = self._nfs[nf], conditions.traffic
        solo, contention = model.solo_kpps(traffic), contention_of(table, model.accelerators)
        drops, names = model.drops(counters_of(table), traffic, *contention), ("memory", *model.accelerators)
        low, high = self._factors(nf, model.error_model.at(conditions), coverage)
        return [
            Prediction(
                throughput,
                alone,
                (lost := dict(zip(names, row, strict=True))),
                max(lost, key=lambda name: lost[name]) if max(row) > NOTICEABLE_DROP * alone else "cpu",
                low_kpps=_none_if_nan(throughput * below),
                high_kpps=_none_if_nan(throughput * above),
                extrapolated=model.is_extrapolated(TrafficProfile(*attributes)),
                calibrated=applied,
            )
            for throughput, alone, row, attributes, applied, below, above in zip(
                *(part.tolist() for part in (kpps, solo, drops, traffic, near, low, high)), strict=True
            )
        ]

    def _under_contention(self, nf: str, table: pd.DataFrame) -> tuple[Floats, NDArray[np.bool_], Conditions]:
        """Per row: throughput, whether measured co-runs are near enough to count as correcting it, its conditions."""
        model = model_of(self._nfs, nf)
        refuse_unreadable(table, model.accelerators)
        traffic, (service, rate) = traffic_of(table), contention_of(table, model.accelerators)
        predicted = model.throughput(counters_of(table), traffic, service, rate, self._composition)
        conditions = model.conditions(traffic, predicted, service)
        correction = self._corrections.get(nf)
        if not correction:
            return predicted, np.zeros(len(table), dtype=bool), conditions
        corrected = np.minimum(predicted * correction(conditions), model.solo_kpps(traffic))
        return corrected, correction.applies(conditions), conditions

    def _corrected(self, equilibrium: Equilibrium, *, least: int, certainty: bool) -> Corrected:
        """Predictions corrected by measured runs, and if `certainty` how far they err, of co-locations of at least so
        many."""
        batch, corrected = equilibrium.batch, Corrected.of(equilibrium.throughput)
        correct_members(
            self._table.columns, self._corrections_by_number, batch.member, batch.sizes, least, equilibrium.throughput,
            equilibrium.solo, certainty, corrected,
        )  # fmt: skip
        return corrected

    @cached_property
    def _packed(self) -> PackedArrays:
        return PackedArrays((self._model.memory, self._corrections_by_number))

    @cached_property
    def _corrections_by_number(self) -> Corrections:
        return corrections_of(list(self._nfs.values()), self._table.accelerators, none=self._composition is not None)

    def _factors(self, nf: str, spread: Floats, coverage: float) -> tuple[Floats, Floats]:
        """Factors below and above predictions of that spread; NaN where too few errors are known."""
        unknown = np.full(len(spread), np.nan)
        return self._nfs[nf].error_model.interval(spread, coverage) or (unknown, unknown)

    def _prediction(
        self,
        workload: Workload,
        kpps: float,
        solo: float,
        calibrated: float,
        low: float,
        high: float,
        *resources: float,
    ) -> Prediction:
        model, names = self._nfs[workload.nf], ("memory", *self._table.accelerators)
        drops = dict(zip(names, resources[: len(names)], strict=True))
        bound = dict(zip(names, resources[len(names) :], strict=True))
        uses = ("memory", *model.accelerators)
        offered = workload.rate_kpps
        return Prediction(
            min(kpps, offered),
            solo,
            {name: drops[name] for name in uses},
            _bottleneck(solo, {name: drops[name] for name in uses}, {name: bound[name] for name in uses}),
            low_kpps=_none_if_nan(min(kpps * low, offered)),
            high_kpps=_none_if_nan(min(kpps * high, offered)),
            extrapolated=model.is_extrapolated(workload.traffic),
            calibrated=bool(calibrated),
            capacity_kpps=kpps,
        )


def _split(values: Floats, estimates: Sequence[Floats]) -> list[Floats]:
    """The values of each co-location."""
    ends = np.cumsum([len(estimate) for estimate in estimates], dtype=np.intp).tolist()
    return [values[end - len(one) : end] for end, one in zip(ends, estimates, strict=True)]


def _by_nf(names: Sequence[str]) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Each NF and where it is named."""
    distinct = {name: number for number, name in enumerate(dict.fromkeys(names))}
    numbers = np.array([distinct[name] for name in names], dtype=np.intp)
    for name, number in distinct.items():
        yield name, np.flatnonzero(numbers == number)


def _none_if_nan(kpps: float) -> float | None:
    return None if math.isnan(kpps) else kpps


def _bottleneck(solo: float, drops: Mapping[str, float], bound: Mapping[str, float]) -> str:
    """The resource with the largest drop; where no drop is noticeable, the stage that is slowest alone."""
    worst = max(drops, key=lambda name: drops[name])
    if drops[worst] > NOTICEABLE_DROP * solo:
        return worst
    slowest = min(bound, key=lambda name: bound[name])
    return "cpu" if slowest == "memory" else slowest
