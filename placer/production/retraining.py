"""Retraining in a simulated production: as `placer online --retrain`, but a training takes a fixed number of events.

So the same file leads to the same versions at the same events, however fast the machine is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placer.feedback.actions import ActionKind, ModelAction, RetrainedModel
from placer.feedback.learning import Feedback
from placer.feedback.retraining import Retrainer


class SimulatedRetraining:
    """Retrains the models of one fleet.

    Parameters
    ----------
    feedback
        Of the fleet.
    retrainer
        Trains.
    takes
        Events from the start of a training to its version.
    """

    def __init__(self, feedback: Feedback, retrainer: Retrainer, takes: int) -> None:
        self._feedback, self._retrainer, self._takes = feedback, retrainer, takes
        self._models: dict[int, Mapping[str, RetrainedModel]] = {}
        self._ready_at: int | None = None

    def due(self, event: int) -> Sequence[ModelAction]:
        """As of `Actions`."""
        if self._ready_at is None:
            if self._retrainer.is_due(self._feedback):
                self._retrainer.start(self._feedback, event - 1)
                self._ready_at = event + self._takes
            return ()
        if event < self._ready_at:
            return ()
        self._ready_at = None
        self._retrainer.wait()
        trained = self._retrainer.take()
        if trained is None:
            return ()
        number = max(self._feedback.versions) + 1
        self._models[number] = trained.models
        return (ModelAction(ActionKind.CANARY, number, trained.trained_at),)

    def models(self, version: int) -> Mapping[str, RetrainedModel]:
        """As of `Actions`."""
        return self._models.get(version, {})
