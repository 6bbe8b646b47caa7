"""An oracle whose predictions are corrected by what production measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log

import numpy as np

from placer.fleet.learning.corrections import Estimate, LearntCorrections, Place, PredictionShift
from placer.fleet.learning.ledger import competitors_of
from placer.model.oracle import CACHED_ANSWERS, Oracle, PredictorOracle, Verdict
from predictor import Predictor
from predictor.regression.significant import significant
from profiles import CoLocation, Workload

ONE_SIGMA = 0.16  # the risk at which a prediction is one usual error below the median
USUAL_SPREAD = 0.05  # how far predictions err, of the logarithm, by a predictor that does not estimate its errors
LEAST_SPREAD = 0.005  # how far predictions err at least, of the logarithm: no estimate of errors is better than that


INTERVAL_COVERAGE = 0.9  # of the intervals of predictions
Bounds = tuple[float | None, float | None]  # the interval of a prediction, kpps; None where errors are not known


class CorrectedThroughput:
    """The throughput (kpps) at risk of one workload in one co-location; it is asked for again and again.

    `plain`: throughput at risk and prediction before corrections; several where it has equal competitors.
    """

    __slots__ = ("_corrections", "_place", "_plain")

    def __init__(self, corrections: LearntCorrections, place: Place, plain: Iterable[tuple[float, Estimate]]) -> None:
        self._corrections = corrections
        self._place = place
        self._plain = tuple(plain)

    def __call__(self) -> float:
        shift = self._corrections.shift(self._place)
        return min([kpps if shift.changes_nothing else shift.at_risk(estimate) for kpps, estimate in self._plain])


class CorrectedOracle(PredictorOracle):
    """What a predictor expects, corrected.

    `predictor`, `risk`: as of a `PredictorOracle`. `nic_model`: the NIC model of the readings that count. `estimates`:
    of co-locations, as far as they are known.
    """

    def __init__(
        self,
        predictor: Predictor,
        risk: float | None,
        nic_model: str,
        corrections: LearntCorrections,
        estimates: Mapping[CoLocation, tuple[Estimate, ...]] | None = None,
    ) -> None:
        super().__init__(predictor, risk)
        self.nic_model = nic_model
        self.corrections = corrections
        self._estimates: dict[CoLocation, tuple[Estimate, ...]] = dict(estimates or {})
        self._corrected: dict[CoLocation, tuple[float, ...]] = {}
        self._bounds: dict[CoLocation, tuple[Bounds, ...]] = {}
        self._stamp = corrections.stamp

    @property
    def revision(self) -> int:
        """Changes with everything that is learnt."""
        return self.corrections.stamp

    def changed_since(self, revision: int) -> Sequence[tuple[Workload, CoLocation]] | None:
        return self.corrections.changed_since(revision, self.nic_model)

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        if self._stamp != self.corrections.stamp or len(self._corrected) > CACHED_ANSWERS:
            self._stamp = self.corrections.stamp
            self._corrected.clear()
        plain = super().throughput(co_locations)
        if not self.corrections.stamp:
            return plain
        self._estimate(
            [
                co_location
                for co_location in dict.fromkeys(co_locations)
                if co_location not in self._corrected and self._concern(co_location)
            ]
        )
        return [self._correct(one, kpps) for one, kpps in zip(co_locations, plain, strict=True)]

    def meets(self, co_location: CoLocation, required_kpps: Sequence[float]) -> Verdict:
        if self.corrections.stamp and self._concern(co_location):
            return Oracle.meets(self, co_location, required_kpps)
        return super().meets(co_location, required_kpps)

    @property
    def is_checked(self) -> bool:
        return not self.corrections.stamp and super().is_checked

    def solo(self, workload: Workload) -> float:
        return Oracle.solo(self, workload) if self.corrections.stamp else super().solo(workload)

    def in_advance(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        """As of `Oracle`: as predicted, with drift; beside others more, where more was measured."""
        now = self.throughput(co_locations)
        self._estimate(list(dict.fromkeys(co_locations)))  # of which readings are likely: one by one takes longer
        return [
            self._in_advance(one, kpps) if self._concern(one) else kpps
            for one, kpps in zip(co_locations, now, strict=True)
        ]

    def throughput_of(self, workload: Workload, co_location: CoLocation) -> float:
        """As of `Oracle`, without asking what was learnt of the other workloads."""
        return self.following([(workload, co_location)])[0]()

    def following(self, asked: Sequence[tuple[Workload, CoLocation]]) -> list[Callable[[], float]]:
        co_locations = [co_location for _, co_location in asked]
        self._estimate(list(dict.fromkeys(co_locations)))
        found: list[Callable[[], float]] = []
        for (workload, co_location), plain in zip(asked, super().throughput(co_locations), strict=True):
            first = co_location.index(workload)
            equal = slice(first, first + co_location.count(workload))  # co-locations are sorted
            place = self.nic_model, workload, competitors_of(co_location, workload)
            of_equal = zip(plain[equal], self.estimates(co_location)[equal], strict=True)
            found.append(CorrectedThroughput(self.corrections, place, of_equal))
        return found

    def median(self, co_location: CoLocation) -> tuple[float, ...]:
        """The corrected median prediction of each workload, kpps."""
        return tuple(
            self.shift(co_location, workload).median(estimate)
            for workload, estimate in zip(co_location, self.estimates(co_location), strict=True)
        )

    def estimates(self, co_location: CoLocation) -> tuple[Estimate, ...]:
        """The prediction of each workload before corrections."""
        found = self._estimates.get(co_location)
        if found is None:
            self._estimate([co_location])
            found = self._estimates[co_location]
        return found

    def bounds(self, co_location: CoLocation) -> tuple[Bounds, ...]:
        """The interval of each workload's prediction before corrections, of `INTERVAL_COVERAGE`."""
        found = self._bounds.get(co_location)
        if found is None:
            if len(self._bounds) >= CACHED_ANSWERS:
                self._bounds.clear()
            (predictions,) = self.predictor.predict([co_location], coverage=INTERVAL_COVERAGE)
            found = self._bounds[co_location] = tuple(
                (prediction.low_kpps, prediction.high_kpps) for prediction in predictions
            )
        return found

    def _correct(self, co_location: CoLocation, kpps: tuple[float, ...]) -> tuple[float, ...]:
        found = self._corrected.get(co_location)
        if found is None:
            found = kpps
            if self._concern(co_location):
                found = tuple(self._at_risk(co_location, *part) for part in self._parts(co_location, kpps))
            self._corrected[co_location] = found
        return found

    def _in_advance(self, co_location: CoLocation, now: tuple[float, ...]) -> tuple[float, ...]:
        alone = len(co_location) == 1
        drift = (self.corrections.drift(self.nic_model, workload.nf, alone) for workload in co_location)
        predicted = (one.at_risk * factor for one, factor in zip(self.estimates(co_location), drift, strict=True))
        return tuple(predicted) if alone else tuple(map(max, predicted, now))

    def _parts(self, co_location: CoLocation, kpps: tuple[float, ...]) -> list[tuple[Workload, float, Estimate]]:
        return list(zip(co_location, kpps, self.estimates(co_location), strict=True))

    def _at_risk(self, co_location: CoLocation, workload: Workload, kpps: float, estimate: Estimate) -> float:
        shift = self.shift(co_location, workload)
        return kpps if shift.changes_nothing else shift.at_risk(estimate)

    def shift(self, co_location: CoLocation, workload: Workload) -> PredictionShift:
        return self.corrections.shift((self.nic_model, workload, competitors_of(co_location, workload)))

    def _concern(self, co_location: CoLocation) -> bool:
        """Whether anything was learnt of a workload of the co-location."""
        return any(self.corrections.concern(self.nic_model, workload) for workload in co_location)

    def _estimate(self, co_locations: Sequence[CoLocation]) -> None:
        """Ask for the estimates of co-locations, as far as they are not known, all at once."""
        if len(self._estimates) > CACHED_ANSWERS:
            self._estimates.clear()
        new = [co_location for co_location in co_locations if co_location not in self._estimates]
        if not new:
            return
        medians, at_risk = self.predictor.throughput(new), super().throughput(new)
        below = self.predictor.throughput(new, risk=ONE_SIGMA) if self.predictor.supports_risk else None
        for at, co_location in enumerate(new):
            # rounded, because the last digits depend on what else is asked for at the same time
            middle = significant(np.asarray(medians[at])).tolist()
            lower = [None] * len(co_location) if below is None else significant(np.asarray(below[at])).tolist()
            self._estimates[co_location] = tuple(
                Estimate(kpps, low, _spread(kpps, usual))
                for kpps, low, usual in zip(middle, at_risk[at], lower, strict=True)
            )


def _spread(kpps: float, usual: float | None) -> float:
    """How far a prediction errs, of the logarithm, of which `usual` is one usual error below."""
    if usual is None:
        return USUAL_SPREAD
    return max(log(kpps / usual), LEAST_SPREAD) if kpps > usual > 0 else LEAST_SPREAD
