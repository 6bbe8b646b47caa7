"""Retraining in a simulated production takes as many events as the file says."""

from __future__ import annotations

from collections.abc import Sequence

from placer.fleet.learning.actions import ActionKind, ModelAction, RetrainedModel
from placer.fleet.learning.learning import Feedback
from placer.fleet.learning.retraining import TrainedModels
from placer.fleet.simulated.simulation import SimulatedRetraining
from placer.model.oracle import PredictorOracle
from placer.testing.strategies import catalogue
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

KINDS = catalogue((None, 1.0)).kinds


class InstantRetrainer:
    """Is due all the time, and fails at some trainings."""

    def __init__(self, *failing: int) -> None:
        self.failing = failing
        self.started: list[int] = []

    def is_due(self, feedback: Feedback) -> bool:
        return True

    def start(self, feedback: Feedback, event: int) -> None:
        self.started.append(event)

    def wait(self) -> None:
        """There is nothing to wait for."""

    def take(self) -> TrainedModels | None:
        if len(self.started) in self.failing:
            return None
        return TrainedModels({}, {"toy-0": RetrainedModel(ToyPredictor())}, self.started[-1])


def actions(retrainer: InstantRetrainer, events: int) -> dict[int, Sequence[ModelAction]]:
    """What is due, by event; every version that comes is known from then on."""
    feedback = Feedback(KINDS, [PredictorOracle(ToyPredictor())])
    retraining = SimulatedRetraining(feedback, retrainer, takes=3)  # type: ignore[arg-type]
    found = {}
    for event in range(1, events + 1):
        due = retraining.due(event)
        for one in due:
            assert one.version is not None and list(retraining.models(one.version)) == ["toy-0"]
            feedback.versions[one.version] = feedback.champion
        if due:
            found[event] = due
    return found


def test_a_version_comes_so_many_events_after_its_training_began() -> None:
    """Trained with what was measured before; the next training begins afterwards."""
    retrainer = InstantRetrainer()
    assert actions(retrainer, 9) == {
        4: (ModelAction(ActionKind.CANARY, 2, 0),),
        8: (ModelAction(ActionKind.CANARY, 3, 4),),
    }
    assert retrainer.started == [0, 4, 8]


def test_a_training_that_fails_brings_no_version() -> None:
    """And the next one begins."""
    assert actions(InstantRetrainer(1), 9) == {8: (ModelAction(ActionKind.CANARY, 2, 4),)}
