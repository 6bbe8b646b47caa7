"""Where actions on the models come from: what operators ask for, retrained models, or the record of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from placer.fleet.learning.actions import ActionKind, ModelAction, RetrainedModel
from placer.fleet.learning.learning import Feedback
from placer.fleet.learning.retraining import Retrainer
from placer.fleet.learning.versions import ModelStore
from placer.fleet.state.saved import SavedState

RETRAINING_TASK = "retraining"


class RecordedActions:
    """What took effect before, at the same events.

    `recorded`: by event. `store`: the versions; None where none can have come.
    """

    def __init__(
        self, recorded: Mapping[int, Sequence[ModelAction]], store: ModelStore | None, nic_models: Sequence[str]
    ) -> None:
        self.recorded = recorded
        self.store = store
        self.nic_models = tuple(nic_models)

    def due(self, event: int) -> Sequence[ModelAction]:
        return self.recorded.get(event, ())

    def models(self, version: int) -> Mapping[str, RetrainedModel]:
        found = self.store.predictors(version, self.nic_models) if self.store else {}
        return {name: RetrainedModel(predictor) for name, predictor in found.items()}


class LiveActions(RecordedActions):
    """What is asked for, and what was retrained; begins to retrain when that is due.

    `retrainer`: None where models are not retrained.
    """

    def __init__(self, state: SavedState, store: ModelStore, feedback: Feedback, retrainer: Retrainer | None) -> None:
        super().__init__({}, store, list(feedback.oracles))
        self.feedback = feedback
        self.state = state
        self.retrainer = retrainer
        self._ready: Mapping[str, RetrainedModel] = {}

    def models(self, version: int) -> Mapping[str, RetrainedModel]:
        """As of `Actions`: those that just came are in memory."""
        return self._ready or super().models(version)

    def due(self, event: int) -> Sequence[ModelAction]:
        asked = [ModelAction.of(action, name) for name, action in self.state.list_requests().items()]
        return asked or self._retrain(event)

    def _retrain(self, event: int) -> Sequence[ModelAction]:
        if self.retrainer is None or not self.state.leads(RETRAINING_TASK):
            return ()
        trained = self.retrainer.take()
        feedback = self.feedback
        if trained is not None and not feedback.frozen and self.store is not None:
            number = max(feedback.versions) + 1
            self.store.keep(trained.folders, number)
            self._ready = trained.models
            return (ModelAction(ActionKind.CANARY, number, trained.trained_at),)
        if self.retrainer.is_due(feedback):
            self.retrainer.start(feedback, event - 1)
        return ()
