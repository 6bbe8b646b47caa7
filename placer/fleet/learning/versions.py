"""Versions of the models: the first as it was given, later ones retrained with what production measured."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import quote

from placer.fleet.learning.actions import RetrainedModel
from placer.fleet.learning.challenge import ModelScore
from placer.fleet.learning.corrected_oracle import CorrectedOracle
from placer.fleet.learning.corrections import Estimate, LearntCorrections
from placer.fleet.learning.ledger import Ledger, LedgerEntry, ProductionReading
from placer.model.oracle import co_location_of
from predictor import Predictor, load_models
from profiles import InputError

LARGEST_SHOWN = 1e300  # evidence beyond this is shown as this: JSON knows no infinity


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

    `number`: from 1. `oracles`: by NIC model. `trained_at`: the number of the event up to which it was trained with
    readings. `score`, `champion_score`: how far it and the champion were off while it was on trial. `within`: of its
    scored measurements, how many were inside its interval of 90 %. `e_value`: the evidence of its trial that it is
    better; None without a trial.
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


# Versions of models on disk, beside the state of their fleet: FILE.models/NUMBER/NIC-MODEL.


TRAINING_PREFIX = "training-"


class ModelStore:
    """The folder of versions.

    `folder`: is made when the first version is kept. `predictor`: the name of the predictor that decides.
    """

    def __init__(self, folder: Path, predictor: str) -> None:
        self.folder = folder
        self.predictor = predictor

    @classmethod
    def beside(cls, state: Path, predictor: str) -> ModelStore:
        """That of a state file."""
        return cls(state.with_name(f"{state.name}.models"), predictor)

    def training_folder(self) -> Path:
        """A new folder to make models in; what earlier processes left there is removed."""
        for old in self.folder.glob(f"{TRAINING_PREFIX}*"):
            shutil.rmtree(old, ignore_errors=True)
        made = self.folder / f"{TRAINING_PREFIX}{os.getpid()}"
        made.mkdir(parents=True, exist_ok=True)
        return made

    def keep(self, trained: Mapping[str, Path], number: int) -> None:
        """Keep trained models, by NIC model, as a version."""
        place = self.folder / str(number)
        shutil.rmtree(place, ignore_errors=True)  # of a process that was killed before it recorded the version
        place.mkdir(parents=True)
        for nic_model, folder in trained.items():
            folder.rename(place / quote(nic_model, safe=""))

    def predictors(self, number: int, nic_models: Sequence[str]) -> dict[str, Predictor]:
        """The predictors of a version, by NIC model, as far as it was retrained.

        Raises InputError when the version is missing or damaged.
        """
        place = self.folder / str(number)
        if not place.is_dir():
            hint = "restore it together with the state, or begin a new one"
            raise InputError.of(str(place), f"is missing: version {number} of the models", hint=hint)
        found = {}
        for nic_model in nic_models:
            folder = place / quote(nic_model, safe="")
            if folder.is_dir():
                found[nic_model] = load_models(folder).predictors[self.predictor]
        return found
