"""Retraining in the background: profile and ledger become a profile, from which `placer train` makes new models.

Decisions go on meanwhile. Training is a process of its own; a thread waits for it and prepares what was trained.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from placer.fleet.learning.actions import RetrainedModel
from placer.fleet.learning.corrected_oracle import CorrectedOracle
from placer.fleet.learning.corrections import Estimate, LearntCorrections, MeasuredEntry
from placer.fleet.learning.learning import Feedback
from placer.fleet.learning.ledger import Ledger
from placer.fleet.learning.versions import ModelStore
from placer.model.oracle import co_location_of
from predictor import Models, Predictor, load_models
from profiles import CoLocation

if TYPE_CHECKING:
    from placer.fleet.learning.export import DriftOf

READINGS_TO_RETRAIN = 500  # capacity readings since the latest version came, after which models are retrained

TRAINING_NICENESS = 10
MAX_MESSAGE_LENGTH = 300


@dataclass(frozen=True)
class RetrainingSource:
    """What a NIC model is retrained from: a profile of it, and models that know its NFs' contention."""

    profile: Path
    models: Models


@dataclass(frozen=True)
class TrainedModels:
    """Models that were trained, by NIC model, with readings up to this event: where they are, and in memory."""

    folders: Mapping[str, Path]
    models: Mapping[str, RetrainedModel]
    trained_at: int


class Retrainer:
    """Retrains models, one version at a time.

    `sources`: by NIC model.
    """

    def __init__(self, sources: Mapping[str, RetrainingSource], store: ModelStore, say: Callable[[str], None]) -> None:
        self.sources = dict(sources)
        self.store = store
        self.say = say
        self._thread: Thread | None = None
        self._trained: TrainedModels | None = None
        self._next = READINGS_TO_RETRAIN
        self._training: subprocess.Popen[str] | None = None
        self._closed = False

    @property
    def is_busy(self) -> bool:
        """Whether a training is under way, or its models wait to be taken."""
        return self._thread is not None

    def is_due(self, feedback: Feedback) -> bool:
        """Whether enough was measured for another version."""
        if feedback.frozen or feedback.on_trial or self.is_busy:
            return False
        return feedback.capacities >= max(feedback.taught + READINGS_TO_RETRAIN, self._next)

    def start(self, feedback: Feedback, event: int) -> None:
        """Begin to train with what was measured up to this event."""
        self._next = feedback.capacities + READINGS_TO_RETRAIN
        entries = feedback.corrections.entries()
        nfs = {entry.workload.nf for entry in entries}
        drift = {
            name: {(nf, alone): feedback.total_drift(name, nf, alone) for nf in nfs for alone in (True, False)}
            for name in self.sources
        }
        self._thread = Thread(target=self._train, args=(entries, drift, feedback.risks, event), daemon=True)
        self._thread.start()

    def take(self) -> TrainedModels | None:
        """Models that are ready; None while there are none."""
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread = None
        trained, self._trained = self._trained, None
        return trained

    def close(self) -> None:
        """End a training that is under way."""
        self._closed = True
        if self._training is not None and self._training.poll() is None:
            self._training.terminate()
        self.wait()

    def wait(self) -> None:
        """Wait for a training that is under way."""
        if self._thread is not None:
            self._thread.join()

    def _train(
        self,
        entries: list[MeasuredEntry],
        drift: Mapping[str, Mapping[tuple[str, bool], float]],
        risks: Mapping[str, float | None],
        event: int,
    ) -> None:
        from placer.fleet.learning.export import export_profile  # with pandas, which takes a while to load

        try:
            folders, models = {}, {}
            place = self.store.training_folder()
            for at, (name, source) in enumerate(self.sources.items()):
                own = [entry for entry in entries if entry.nic_model == name]
                export_profile(source.profile, place / f"profile-{at}", own, source.models, _drift_of(drift[name]))
                folders[name] = place / f"models-{at}"
                self._run_training(place / f"profile-{at}", folders[name])
                predictor = load_models(folders[name]).predictors[self.store.predictor]
                models[name] = RetrainedModel(predictor, estimates_of(predictor, risks[name], own))
            self._trained = TrainedModels(folders, models, event)
        except Exception as error:  # whatever fails here must not end the service
            if not self._closed:
                self.say(f"the models were not retrained: {str(error)[:MAX_MESSAGE_LENGTH]}")

    def _run_training(self, profile: Path, models: Path) -> None:
        """Run `placer train` at a lower priority; RuntimeError with what it printed where it fails."""
        command = [sys.executable, "-m", "placer", "train", str(profile), "--out", str(models), "--quiet"]
        self._training = subprocess.Popen(
            [*command, "--predictor", self.store.predictor],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        os.setpriority(os.PRIO_PROCESS, self._training.pid, TRAINING_NICENESS)
        _, printed = self._training.communicate()
        if self._training.returncode:
            lines = printed.strip().splitlines()
            raise RuntimeError(lines[-1] if lines else f"placer train ended with {self._training.returncode}")


def estimates_of(
    predictor: Predictor, risk: float | None, entries: Sequence[MeasuredEntry]
) -> dict[CoLocation, tuple[Estimate, ...]]:
    """What a model estimates of all that was measured, so that no decision waits for it later."""
    oracle = CorrectedOracle(predictor, risk, "", LearntCorrections(Ledger()))
    places = dict.fromkeys(co_location_of((*entry.competitors, entry.workload)) for entry in entries)
    return {place: oracle.estimates(place) for place in places}


def _drift_of(factors: Mapping[tuple[str, bool], float]) -> DriftOf:
    return lambda nf, alone: factors.get((nf, alone), 1.0)
