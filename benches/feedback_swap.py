"""How long events take while the models are swapped: a retrained version comes on trial, then it decides.

The fleet and its events are those of `feedback-speed`. The new version was trained with another seed, and what it
estimates of the measured co-locations was computed in advance, as the service does it in the background.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import pandas as pd
import typer

from benches.bench import register
from benches.co_locations import recorded_profile
from benches.feedback_speed import FeedbackLoad
from placer.fleet.learning.actions import ActionKind, ModelAction, RetrainedModel
from placer.fleet.learning.retraining import estimates_of
from placer.model.oracle import DEFAULT_RISK, TestbedOracle
from predictor import Predictor, train
from profiler.testbeds import open_testbed

Nics = Annotated[str, typer.Option(help="Fleet sizes.")]
Events = Annotated[int, typer.Option(min=100, help="Decisions before, during and after the trial.")]
EVERY = 10


@register("feedback-swap")
def run(nics: Nics = "100,1000,10000", events: Events = 2_000) -> pd.DataFrame:
    """Per fleet size and phase: the slowest decision and the slowest measurement (ms)."""
    profile = recorded_profile()
    first, second = train(profile, ["tomur"]), train(profile, ["tomur"], seed=1)
    rows = []
    with open_testbed("simulated") as testbed:
        for size in map(int, nics.split(",")):
            load = FeedbackLoad(first, TestbedOracle(testbed), size, learns=True)
            rows += _phases(load, second.predictors["tomur"], size, events)
    return pd.DataFrame(rows)


def _phases(load: FeedbackLoad, predictor: Predictor, size: int, events: int) -> list[dict[str, object]]:
    feedback = load.engine.feedback
    assert feedback is not None
    rows = []
    for phase, action in (
        ("before", None),
        ("canary", ModelAction(ActionKind.CANARY, 2)),
        ("decides", ModelAction(ActionKind.ROLL_BACK, 2)),
    ):
        if action is not None:
            estimates = estimates_of(predictor, DEFAULT_RISK, feedback.corrections.entries())
            feedback.actions = Swapped(action, RetrainedModel(predictor, estimates))
        timed = load.decided(events, EVERY, load)
        rows.append({
            "nics": size, "phase": phase, "slowest_decision_ms": round(1e3 * max(timed.decisions), 1),
            "slowest_measurement_ms": round(1e3 * max(timed.measurements), 1),
            "decisions_per_s": round(events / timed.seconds),
        })  # fmt: skip
    return rows


class Swapped:
    """One action, with the next measurement."""

    def __init__(self, action: ModelAction, model: RetrainedModel) -> None:
        self.action: ModelAction | None = action
        self.model = model

    def due(self, event: int) -> Sequence[ModelAction]:
        """As of `Actions`."""
        due, self.action = self.action, None
        return [due] if due else []

    def models(self, version: int) -> Mapping[str, RetrainedModel]:
        """As of `Actions`."""
        return {"bluefield-2": self.model}
