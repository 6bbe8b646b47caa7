"""Learning from production: readings correct predictions at once, and retrained models replace those they surpass.

measurement -> what was expected -> trial of a challenger -> ledger and corrections -> drift
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from typing import Any

from placer.fleet.learning.actions import ActionKind, Actions, ModelAction, NoActions, RetrainedModel
from placer.fleet.learning.challenge import ChallengeVerdict
from placer.fleet.learning.corrections import Estimate, LearntCorrections, Place
from placer.fleet.learning.drift import Drift, DriftDetector
from placer.fleet.learning.ledger import Ledger, ProductionReading
from placer.fleet.learning.trial import CanaryOracle, Trial, places_known
from placer.fleet.learning.versions import ModelVersion, VersionStatus
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, PredictorOracle
from profiles import CoLocation

NOTED, CANARY, DRIFT, PROMOTED, ROLLED_BACK = STATUSES = ("noted", "canary", "drift", "promoted", "rolled-back")
"""What a measurement leads to, the least important first."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What was predicted of a workload, kpps; the interval is None where errors are not known."""

    kpps: float
    low_kpps: float | None
    high_kpps: float | None


class Feedback:
    """Follows the measurements of a fleet.

    `given`: per kind, the oracle before anything is learnt. `versions`: of the models, by number. `drifts`: changes of
    NFs that were found, in order; each relative to the one before. `risks`: by NIC model, the risk at which predictions
    are used. `capacities`: readings since the start that are not lower bounds. `taught`: how many of them had come when
    the latest version came.
    """

    def __init__(self, kinds: Sequence[NicKind], given: Sequence[Oracle]) -> None:
        self.ledger = Ledger()
        self.drifts: list[Drift] = []
        self.actions: Actions = NoActions()
        self.frozen = False
        self.trial: Trial | None = None
        self.capacities = self.taught = 0
        self._kinds, self._given = tuple(kinds), tuple(given)
        # of another oracle, throughput is not all that it says
        learnt = {kind.model: one for kind, one in zip(kinds, given, strict=True) if type(one) is PredictorOracle}
        self.risks = {name: oracle.risk for name, oracle in learnt.items()}
        models = {name: RetrainedModel(oracle.predictor) for name, oracle in learnt.items()}
        self.champion = ModelVersion.of(1, models, self.risks, self.ledger)
        self.versions = {1: self.champion}
        self._detector = DriftDetector()
        self._found: list[tuple[int, Drift]] = []
        self._trials = 0
        self._taken = 0
        self._rows: dict[str, str | None] = {}

    @property
    def model(self) -> int:
        """The number of the version that decides."""
        return self.champion.number

    @property
    def corrections(self) -> LearntCorrections:
        """Of the predictions that decide."""
        return self.champion.corrections

    @property
    def oracles(self) -> Mapping[str, Oracle]:
        """By NIC model, what is predicted of it, corrected."""
        return self.champion.oracles

    @cached_property
    def deciders(self) -> tuple[Oracle, ...]:
        """Per kind, what decides; while a challenger is on trial, both models have to agree."""
        canary = self.trial.challenger if self.on_trial and self.trial else None
        by_model: dict[str, Oracle] = {
            name: CanaryOracle(oracle, canary.oracles[name]) if canary else oracle
            for name, oracle in self.champion.oracles.items()
        }
        pairs = zip(self._kinds, self._given, strict=True)
        return tuple(by_model[kind.model] if type(one) is PredictorOracle else one for kind, one in pairs)

    @property
    def on_trial(self) -> bool:
        """Whether a challenger that was never promoted is on trial."""
        return self.trial is not None and self.trial.challenger.status is VersionStatus.CANARY

    def expect(self, nic_model: str, co_location: CoLocation) -> tuple[Expected, ...]:
        """What is predicted of each workload, as corrected until now."""
        oracle = self.champion.oracles[nic_model]
        known = zip(co_location, oracle.estimates(co_location), oracle.bounds(co_location), strict=True)
        found = []
        for workload, estimate, plain in known:
            shift = oracle.shift(co_location, workload)
            bounds = [None if kpps is None else _shift(kpps, estimate, shift.by, shift.spread_left)
                      for kpps in plain]  # fmt: skip
            found.append(Expected(shift.median(estimate), *bounds))
        return tuple(found)

    def total_drift(self, nic_model: str, nf: str, alone: bool) -> float:
        """How many times its throughput at the start the NF has, as far as changes were found."""
        return self._drift_after(-1, nic_model, nf, alone)

    def restore(self, readings: Iterable[ProductionReading]) -> None:
        """Learn what was learnt before a restart; actions come from `actions`, with their events."""
        event = 0
        for reading in readings:
            if reading.nic_model in self.oracles:
                if reading.event != event:
                    event = reading.event
                    self.begin(event)
                self.learn([reading])
        self.take_rows()

    def begin(self, event: int) -> str:
        """Take the actions that are due before the measurement of this event; returns what came of them."""
        status = NOTED
        for action in self.actions.due(event):
            status = _more_important(status, self._take(action, event))
        return status

    def learn(self, readings: Iterable[ProductionReading]) -> str:
        """Learn the readings of one NIC; returns the status of the answer."""
        status = CANARY if self.on_trial else NOTED
        for reading in readings:
            status = _more_important(status, self._try_out(reading))
            entry = self.ledger.add(reading)
            self.capacities += reading.is_capacity
            for version in self._live():
                version.learn(entry, reading)
            if self._detect_drift(reading):
                status = _more_important(status, DRIFT)
        return status

    def take_rows(self) -> dict[str, str | None]:
        """What a state has to record since the last call, by name; None where a row is to be removed."""
        rows, self._rows = self._rows, {}
        return rows

    def _live(self) -> tuple[ModelVersion, ...]:
        """The versions whose predictions are followed."""
        if self.trial is None:
            return (self.champion,)
        return self.trial.champion, self.trial.challenger

    def _take(self, action: ModelAction, event: int) -> str:
        self._taken += 1
        self._rows[f"action {self._taken}"] = json.dumps(action.as_dict(event))
        if action.asked is not None:
            self._rows[action.asked] = None
        if action.kind is ActionKind.CANARY:
            return self._try(action)
        if action.kind is ActionKind.ROLL_BACK:
            return self._go_back(action.version)
        self.frozen = action.kind is ActionKind.FREEZE
        if self.frozen:
            self._end_trial(VersionStatus.REJECTED)
        self._rows["frozen"] = json.dumps(self.frozen)
        return NOTED

    def _try(self, action: ModelAction) -> str:
        """Put a retrained version on trial."""
        assert action.version is not None
        self.taught = self.capacities
        self._end_trial(VersionStatus.REJECTED)
        version = self._make(action.version, action.trained_at)
        self.versions[version.number] = version
        self._start_trial(self.champion, version, places_known(self.ledger, action.trained_at))
        return CANARY

    def _make(self, number: int, trained_at: int) -> ModelVersion:
        retrained = self.actions.models(number)
        models = {
            name: retrained.get(name, RetrainedModel(oracle.predictor))
            for name, oracle in self.champion.oracles.items()
        }
        made = ModelVersion.of(number, models, self.risks, self.ledger, trained_at, VersionStatus.CANARY)
        for nic_model, nf in {(drift.nic_model, drift.nf) for _, drift in self._found}:
            for alone in (True, False):
                since = self._drift_after(trained_at, nic_model, nf, alone)
                before = self.corrections.drift(nic_model, nf, alone)
                made.corrections.set_drift(nic_model, nf, alone, since if nic_model in retrained else before)
        return made

    def _drift_after(self, event: int, nic_model: str, nf: str, alone: bool) -> float:
        factor = 1.0
        for found, drift in self._found:
            if found > event and (drift.nic_model, drift.nf) == (nic_model, nf):
                factor *= drift.alone if alone else drift.beside
        return factor

    def _start_trial(self, champion: ModelVersion, challenger: ModelVersion, known: Set[Place]) -> None:
        self._trials += 1
        self.trial = Trial(self._trials, champion, challenger, known)
        self._forget_deciders()

    def _end_trial(self, status: VersionStatus) -> None:
        if self.on_trial and self.trial:
            self.trial.challenger.status = status
            self._record(self.trial.challenger)
        self.trial = None
        self._forget_deciders()

    def _try_out(self, reading: ProductionReading) -> str:
        """Score a reading in the trial under way, and act on its verdict."""
        trial = self.trial
        if trial is None:
            return NOTED
        verdict = trial.add(reading)
        challenger = trial.challenger
        if self.on_trial:
            challenger.champion_score, challenger.score = trial.scores
            challenger.e_value = trial.e_value
            self._record(challenger)
        if verdict is ChallengeVerdict.OPEN:
            return NOTED
        if verdict is ChallengeVerdict.WORSE:
            self._end_trial(VersionStatus.REJECTED)
            return NOTED
        if self.on_trial:
            return self._promote(trial)
        trial.champion.status = VersionStatus.ROLLED_BACK
        self._record(trial.champion)
        return self._go_back(challenger.number)

    def _promote(self, trial: Trial) -> str:
        """The challenger decides from now on; the former champion may win its place back."""
        former, self.champion = trial.champion, trial.challenger
        self.champion.status = VersionStatus.PROMOTED
        self._record(self.champion)
        self._start_trial(self.champion, former, trial.known)
        return PROMOTED

    def _go_back(self, number: int | None) -> str:
        """Another version decides again."""
        version = self.versions.get(number or 0)
        if version is None or version is self.champion:
            return NOTED
        self._end_trial(VersionStatus.REJECTED)
        if self.champion.status is VersionStatus.PROMOTED:
            self.champion.status = VersionStatus.ROLLED_BACK
            self._record(self.champion)
        version.relearn(self.ledger)
        self.champion = version
        self._forget_deciders()
        return ROLLED_BACK

    def _forget_deciders(self) -> None:
        self.__dict__.pop("deciders", None)
        self._rows["model"] = json.dumps(self.model)

    def _record(self, version: ModelVersion) -> None:
        self._rows[f"version {version.number}"] = json.dumps(version.as_dict())

    def _detect_drift(self, reading: ProductionReading) -> bool:
        """Whether the reading shows that its NF has changed; then predictions follow."""
        nic_model, nf = reading.nic_model, reading.workload.nf
        expected, spread = self.champion.expected_kpps(reading), self.champion.estimate(reading).spread
        found = self._detector.add(reading, expected, spread)
        if found is None:
            return False
        self.ledger.forget(nic_model, nf, found.since)
        for version in self.versions.values():
            for alone, factor in ((True, found.alone), (False, found.beside)):
                version.change(nic_model, nf, alone, factor)
        self.drifts.append(found)
        self._found.append((reading.event, found))
        self._rows["drift"] = json.dumps(self._drift_rows())
        return True

    def _drift_rows(self) -> list[dict[str, Any]]:
        last = {(drift.nic_model, drift.nf): drift.since for _, drift in self._found}
        return [
            {"nf": nf, "factor": self.total_drift(nic_model, nf, False), "since": since, "nic_model": nic_model}
            for (nic_model, nf), since in last.items()
        ]


def correct(kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> tuple[Feedback, tuple[Oracle, ...]]:
    """What learns, and the oracle per kind, corrected where predictions of throughput are all that it says."""
    feedback = Feedback(kinds, oracles)
    return feedback, feedback.deciders


def _more_important(one: str, other: str) -> str:
    return max(one, other, key=STATUSES.index)


def _shift(kpps: float, estimate: Estimate, by: float, spread_left: float) -> float:
    if not (kpps > 0 and estimate.kpps > 0):
        return kpps
    return estimate.kpps * exp(by + spread_left * log(kpps / estimate.kpps))
