"""Learning from production: readings correct predictions at once, each compared with what was predicted before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log

from placer.feedback.corrected_oracle import CorrectedOracle
from placer.feedback.corrections import Estimate, LearntCorrections
from placer.feedback.drift import Drift, DriftDetector
from placer.feedback.reading import ProductionReading
from placer.model.fleet import NicKind
from placer.model.oracle import Oracle, PredictorOracle
from profiles import CoLocation

NOTED, DRIFT = "noted", "drift"
"""What a measurement leads to."""

COVERAGE = 0.9
"""The probability of the intervals that are given with predictions."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What was predicted of a workload, kpps; the interval is None where errors are not known."""

    kpps: float
    low_kpps: float | None
    high_kpps: float | None


class Feedback:
    """Follows the measurements of a fleet.

    Parameters
    ----------
    corrections
        What was learnt, shared by all oracles.
    oracles
        By NIC model, whose predictions are corrected.

    Attributes
    ----------
    drifts
        Changes of NFs that were found, in order; each relative to the one before.
    """

    def __init__(self, corrections: LearntCorrections, oracles: Sequence[CorrectedOracle]) -> None:
        self.corrections = corrections
        self.oracles = {oracle.nic_model: oracle for oracle in oracles}
        self.model = 1
        self.drifts: list[Drift] = []
        self._detector = DriftDetector()

    def expected(self, nic_model: str, co_location: CoLocation) -> tuple[Expected, ...]:
        """What is predicted of each workload, as corrected until now."""
        oracle = self.oracles[nic_model]
        (plain,) = oracle.predictor.predict([co_location], coverage=COVERAGE)
        estimates = oracle.estimates(co_location)
        found = []
        for workload, estimate, one in zip(co_location, estimates, plain, strict=True):
            shift = self.corrections.shift(nic_model, co_location, workload, estimate)
            bounds = [None if kpps is None else _shifted(kpps, estimate, shift.by, shift.spread_left)
                      for kpps in (one.low_kpps, one.high_kpps)]  # fmt: skip
            found.append(Expected(shift.median(estimate), *bounds))
        return tuple(found)

    def restore(self, readings: Iterable[ProductionReading]) -> None:
        """Learn what was learnt before a restart."""
        self.learn(one for one in readings if one.nic_model in self.oracles)

    def learn(self, readings: Iterable[ProductionReading]) -> str:
        """Learn the readings of one NIC; returns the status of the answer."""
        status = NOTED
        for reading in readings:
            estimates = self.oracles[reading.nic_model].estimates(reading.co_location)
            estimate = estimates[reading.co_location.index(reading.workload)]
            entry = self.corrections.ledger.add(reading)
            self.corrections.learn(entry, reading.nic_model, reading.workload, estimate)
            if self._drifted(reading, estimate):
                status = DRIFT
        return status

    def _drifted(self, reading: ProductionReading, estimate: Estimate) -> bool:
        """Whether the reading shows that its NF has changed; then predictions follow."""
        nic_model, nf = reading.nic_model, reading.workload.nf
        before = self.corrections.drift(nic_model, nf, alone=len(reading.co_location) == 1)
        found = self._detector.add(reading, estimate.kpps * before, estimate.spread)
        if found is None:
            return False
        for alone, factor in ((True, found.alone), (False, found.beside)):
            self.corrections.set_drift(nic_model, nf, alone, factor * self.corrections.drift(nic_model, nf, alone))
        self.corrections.ledger.forget(nic_model, nf, found.since)
        self.drifts.append(found)
        return True


def corrected(kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> tuple[Feedback, tuple[Oracle, ...]]:
    """What learns, and the oracle per kind, corrected where predictions of throughput are all that it says."""
    corrections, made = LearntCorrections(), dict[str, CorrectedOracle]()
    found: list[Oracle] = []
    for kind, oracle in zip(kinds, oracles, strict=True):
        if type(oracle) is PredictorOracle:
            if kind.model not in made:
                made[kind.model] = CorrectedOracle(oracle.predictor, oracle.risk, kind.model, corrections)
            found.append(made[kind.model])
        else:
            found.append(oracle)
    return Feedback(corrections, list(made.values())), tuple(found)


def _shifted(kpps: float, estimate: Estimate, by: float, spread_left: float) -> float:
    if not (kpps > 0 and estimate.kpps > 0):
        return kpps
    return estimate.kpps * exp(by + spread_left * log(kpps / estimate.kpps))
