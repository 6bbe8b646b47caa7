"""Tomur: a model per resource, composed by execution pattern (Tomur, appendix F), and corrected by measured company."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.contention.calibration import Seen
from predictor.contention.composition import COMPOSITIONS
from predictor.contention.equilibrium import Answer, Contended, Where
from predictor.contention.nf_model import NfModel
from predictor.contention.workload_table import Facts
from predictor.prediction import Prediction
from predictor.registry import PREDICTORS, Predictor, Warn
from predictor.tables import contention_of, counters_of, model_of, refuse_unreadable, traffic_of
from profiles import TrafficProfile, Workload
from profiles.profile import Profile

Array = NDArray[np.float64]

FELT = 0.005
"""Share of throughput from which contention is said to be felt."""


@PREDICTORS.register("tomur")
class TomurPredictor(Predictor):
    """Multi-resource prediction from the NF models alone.

    Parameters
    ----------
    nfs
        The NF models.
    composition
        A name in `COMPOSITIONS` for all NFs, such as the strawmen `sum` and `min`; each NF's own pattern when None,
        which alone is corrected by measured co-runs.
    """

    def __init__(self, nfs: Mapping[str, NfModel], *, composition: str | None = None) -> None:
        self._nfs = nfs
        self._facts = Facts(nfs)
        self._composition = COMPOSITIONS[composition] if composition else None
        self._contended = Contended(self._facts, self._composition)
        known = {name: model.calibration for name, model in nfs.items() if model.calibration}
        self._corrections = {} if composition else known

    @classmethod
    def train(cls, profile: Profile, nfs: Mapping[str, NfModel], *, seed: int, warn: Warn) -> Self:
        """The NF models are all it needs."""
        return cls(nfs)

    def save(self, folder: Path) -> None:
        """Nothing beyond the NF models."""

    @classmethod
    def load(cls, folder: Path, nfs: Mapping[str, NfModel]) -> Self:
        """The predictor over the NF models."""
        return cls(nfs)

    def solo(self, workloads: Sequence[Workload]) -> Array:
        """Throughput (kpps) of each workload alone on the NIC."""
        return self._facts.solo_of(workloads)

    def throughput(self, co_locations: Sequence[Sequence[Workload]], *, risk: float | None = None) -> list[Array]:
        """Throughput (kpps) of every workload of every company; with `risk`, what that share falls short of at most."""
        answer = self._contended.answer(co_locations)
        seen = list(self._contended.seen(answer)) if self._corrections or risk is not None else []
        throughput, _ = self._corrected(answer, seen)
        if risk is not None:
            for name, where, made_of in seen:
                spread = self._nfs[name].spread
                throughput[where] *= np.minimum(spread.lower(made_of, risk), 1.0) if spread else 0.0
        return answer.seats.in_given_order(throughput)

    def predict(self, co_locations: Sequence[Sequence[Workload]], *, coverage: float = 0.9) -> list[list[Prediction]]:
        """Throughput, the drop on each resource, the bottleneck, and an interval of that coverage."""
        answer = self._contended.answer(co_locations)
        seen = list(self._contended.seen(answer))
        throughput, calibrated = self._corrected(answer, seen)
        low, high = np.ones(throughput.shape), np.ones(throughput.shape)
        alone = self._contended.seen(answer, answer.seats.seated & ~answer.beside)
        for name, where, made_of in [*seen, *alone]:
            low[where], high[where] = self._factors(name, made_of, coverage)
        parts = (throughput, answer.solo, calibrated, low, high)
        columns = [*(part[:, :, None] for part in parts), answer.drops, answer.bound]
        rows = answer.seats.in_given_order(np.concatenate(columns, axis=2))
        return [
            [self._prediction(workload, *values) for workload, values in zip(co_location, told.tolist(), strict=True)]
            for co_location, told in zip(co_locations, rows, strict=True)
        ]

    def predict_contention(self, nf: str, table: pd.DataFrame) -> Array:
        """Throughput (kpps) of `nf` per row, beside contention known by its sums."""
        return self._beside(nf, table)[0]

    def contention_details(self, nf: str, table: pd.DataFrame, *, coverage: float = 0.9) -> list[Prediction]:
        """Throughput, the drop on each resource, the bottleneck, an interval, and whether co-runs corrected it."""
        kpps, near, seen = self._beside(nf, table)
        model, traffic = self._nfs[nf], seen.traffic
        solo, contention = model.solo_kpps(traffic), contention_of(table, model.accelerators)
        drops, names = model.drops_beside(counters_of(table), traffic, *contention), ("memory", *model.accelerators)
        low, high = self._factors(nf, seen, coverage)
        return [
            Prediction(
                throughput,
                alone,
                (lost := dict(zip(names, row, strict=True))),
                max(lost, key=lambda name: lost[name]) if max(row) > FELT * alone else "cpu",
                low_kpps=_known(throughput * below),
                high_kpps=_known(throughput * above),
                extrapolated=model.is_extrapolated(TrafficProfile(*attributes)),
                calibrated=applied,
            )
            for throughput, alone, row, attributes, applied, below, above in zip(
                *(part.tolist() for part in (kpps, solo, drops, traffic, near, low, high)), strict=True
            )
        ]

    def _beside(self, nf: str, table: pd.DataFrame) -> tuple[Array, NDArray[np.bool_], Seen]:
        """Throughput per row, where measured co-runs are near enough to say that they corrected it, and of what."""
        model = model_of(self._nfs, nf)
        refuse_unreadable(table, model.accelerators)
        traffic, (service, rate) = traffic_of(table), contention_of(table, model.accelerators)
        predicted = model.beside(counters_of(table), traffic, service, rate, self._composition)
        seen = model.seen(traffic, predicted, service)
        correction = self._corrections.get(nf)
        if not correction:
            return predicted, np.zeros(len(table), dtype=bool), seen
        corrected = np.minimum(predicted * correction(seen), model.solo_kpps(traffic))
        return corrected, correction.applies(seen), seen

    def _corrected(self, answer: Answer, seen: Sequence[tuple[str, Where, Seen]]) -> tuple[Array, NDArray[np.bool_]]:
        """Throughput corrected by measured co-runs, and where they are near enough to say so."""
        corrected, near = answer.throughput.copy(), np.zeros(answer.throughput.shape, dtype=bool)
        for name, where, made_of in seen:
            if correction := self._corrections.get(name):
                corrected[where] *= correction(made_of)
                near[where] = correction.applies(made_of)
        return np.minimum(corrected, answer.solo), near

    def _factors(self, nf: str, seen: Seen, coverage: float) -> tuple[Array, Array]:
        """Factors below and above predictions; NaN where too little was measured to say."""
        spread, unknown = self._nfs[nf].spread, np.full(len(seen.kept), np.nan)
        return (spread.interval(seen, coverage) if spread else None) or (unknown, unknown)

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
        model, names = self._nfs[workload.nf], ("memory", *self._facts.accelerators)
        drops = dict(zip(names, resources[: len(names)], strict=True))
        bound = dict(zip(names, resources[len(names) :], strict=True))
        uses = ("memory", *model.accelerators)
        return Prediction(
            kpps,
            solo,
            {name: drops[name] for name in uses},
            _bottleneck(solo, {name: drops[name] for name in uses}, {name: bound[name] for name in uses}),
            low_kpps=_known(kpps * low),
            high_kpps=_known(kpps * high),
            extrapolated=model.is_extrapolated(workload.traffic),
            calibrated=bool(calibrated),
        )


def _known(kpps: float) -> float | None:
    return None if math.isnan(kpps) else kpps


def _bottleneck(solo: float, drops: Mapping[str, float], bound: Mapping[str, float]) -> str:
    """The resource that costs most; where none is felt, the stage that is slowest alone."""
    worst = max(drops, key=lambda name: drops[name])
    if drops[worst] > FELT * solo:
        return worst
    slowest = min(bound, key=lambda name: bound[name])
    return "cpu" if slowest == "memory" else slowest
