"""Versions of the models: the first as it was given, later ones retrained with what production measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from placer.feedback.actions import RetrainedModel
from placer.feedback.challenge import ModelScore
from placer.feedback.corrected_oracle import CorrectedOracle
from placer.feedback.corrections import Estimate, LearntCorrections
from placer.feedback.ledger import Ledger, LedgerEntry
from placer.feedback.reading import ProductionReading
from placer.model.oracle import co_location_of

LARGEST_SHOWN = 1e300
"""Evidence beyond this is shown as this: JSON knows no infinity."""


class VersionStatus(StrEnum):
    """What became of a version."""

    INITIAL = "initial"
    CANARY = "canary"
    PROMOTED = "promoted"
    REJECTED = "rejected"
    ROLLED_BACK = "rolled-back"


@dataclass(slots=True)
class ModelVersion:
    """Models of all NICs, and the corrections of their predictions.

    Parameters
    ----------
    number
        From 1.
    oracles
        By NIC model.
    corrections
        Of its predictions.
    trained_at
        The number of the event up to which it was trained with readings.
    score, champion_score
        How far it and the champion were off while it was on trial.
    within
        Of its scored measurements, how many were inside its interval of 90 %.
    e_value
        The evidence of its trial that it is better; None without a trial.
    """

    number: int
    oracles: Mapping[str, CorrectedOracle]
    corrections: LearntCorrections
    trained_at: int = 0
    status: VersionStatus = VersionStatus.INITIAL
    score: ModelScore = field(default_factory=ModelScore)
    champion_score: ModelScore = field(default_factory=ModelScore)
    within: int = 0
    e_value: float | None = None

    @classmethod
    def of(
        cls, number: int, models: Mapping[str, RetrainedModel], risks: Mapping[str, float | None], ledger: Ledger,
        trained_at: int = 0, status: VersionStatus = VersionStatus.INITIAL,
    ) -> ModelVersion:  # fmt: skip
        """A version of these models, by NIC model, that knows all entries of the ledger."""
        corrections = LearntCorrections(ledger)
        oracles = {
            name: CorrectedOracle(model.predictor, risks[name], name, corrections, model.estimates)
            for name, model in models.items()
        }
        made = cls(number, oracles, corrections, trained_at, status)
        made.relearn(ledger)
        return made

    def estimate(self, reading: ProductionReading) -> Estimate:
        """What the models predict of a reading, without corrections and drift."""
        estimates = self.oracles[reading.nic_model].estimates(reading.co_location)
        return estimates[reading.co_location.index(reading.workload)]

    def expected_kpps(self, reading: ProductionReading) -> float:
        """What the models predict of a reading, with drift, which is no error of theirs."""
        alone = len(reading.co_location) == 1
        drift = self.corrections.drift(reading.nic_model, reading.workload.nf, alone=alone)
        return self.estimate(reading).kpps * drift

    def learn(self, entry: LedgerEntry, reading: ProductionReading) -> None:
        """Count an entry that got a reading."""
        self.corrections.learn(entry, reading.nic_model, reading.workload, self.estimate(reading))

    def change(self, nic_model: str, nf: str, alone: bool, factor: float) -> None:
        """An NF has so many times the throughput of before."""
        before = self.corrections.drift(nic_model, nf, alone)
        self.corrections.set_drift(nic_model, nf, alone, factor * before)

    def relearn(self, ledger: Ledger) -> None:
        """Correct its predictions by all that was measured, also while it was not followed."""
        for nic_model, workload, entry in ledger.entries():
            if nic_model in self.oracles:
                co_location = co_location_of((*entry.competitors, workload))
                estimates = self.oracles[nic_model].estimates(co_location)
                self.corrections.learn(entry, nic_model, workload, estimates[co_location.index(workload)])

    def as_dict(self) -> dict[str, Any]:
        """As `placer feedback` shows it."""
        scored = self.score.measured
        return {
            "version": self.number,
            "status": self.status.value,
            "e_value": None if self.e_value is None else min(self.e_value, LARGEST_SHOWN),
            "mape_pct": self.score.mape_pct,
            "champion_mape_pct": self.champion_score.mape_pct,
            "coverage_90_pct": 100.0 * self.within / scored if scored else None,
            "trained_at": self.trained_at,
        }
