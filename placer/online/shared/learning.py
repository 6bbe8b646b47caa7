"""What other agents have learnt: the same readings and actions lead to the same predictions everywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from placer.feedback.actions import ActionKind
from placer.feedback.model_store import ModelStore
from placer.online.engine import Engine
from placer.online.model_actions import RecordedActions
from placer.online.saved_learning import recorded_actions
from placer.online.saved_readings import reading_of


def learn_from_others(
    store: ModelStore, engine: Engine, rows: Sequence[Sequence[Any]], learnt: Mapping[str, str | None]
) -> None:
    """Learn what another agent has measured, with the actions on models that it took with it.

    Parameters
    ----------
    store
        Of versions that came.
    rows
        The readings.
    learnt
        What the agent recorded, by name.
    """
    feedback = engine.feedback
    if feedback is None:
        return
    recorded = recorded_actions({name: json.loads(value) for name, value in learnt.items() if value is not None})
    live, drifts = feedback.actions, len(feedback.drifts)
    feedback.actions = RecordedActions(recorded, store, list(feedback.oracles))
    try:
        feedback.restore(map(reading_of, rows))
    finally:
        feedback.actions = live
    engine.follow_readings(drifted=len(feedback.drifts) > drifts)


def brings_a_version(learnt: Mapping[str, str | None]) -> bool:
    """Whether a retrained version came with a measurement."""
    actions = recorded_actions({name: json.loads(value) for name, value in learnt.items() if value is not None})
    return any(action.kind is ActionKind.CANARY for some in actions.values() for action in some)
