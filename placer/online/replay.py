"""Replay: the events of a log are decided on once more, so that an engine is what it was, to the last bit.

What it forecasts, its ledger and the evidence of a trial depend on the whole history, and are nowhere else.
"""

from __future__ import annotations

from placer.model.catalogue import Catalogue
from placer.online.engine import Engine
from placer.online.events import Refused
from placer.online.model_actions import RecordedActions
from placer.online.protocol import Reader, decision_line
from placer.online.saved import SavedState
from placer.progress import Progress

REPLAYED = 20_000
"""The most events that are decided on once more."""


def replayed(
    saved: SavedState, engine: Engine, before: RecordedActions, catalogue: Catalogue, progress: Progress
) -> Engine | None:
    """The engine, whose fleet is empty, after all events of a state; None where there are too many.

    None, too, where it decides otherwise than before, as after a change of models or of this program.
    """
    if saved.events > REPLAYED:
        return None
    if engine.feedback is not None:
        engine.feedback.actions = before
    reader = Reader(catalogue.default_traffic, catalogue.check, engine.workload_of)
    with progress.task("deciding once more") as advance:
        for number, (line, answer) in enumerate(saved.log(), start=1):
            if not _decides(engine, reader, line, answer):
                progress.say(f"event {number} would be decided otherwise now: the fleet is continued as it is")
                return None
            advance(number, saved.events)
    if engine.feedback is not None:
        engine.feedback.take_rows()
    return engine


def _decides(engine: Engine, reader: Reader, line: str, answer: str) -> bool:
    """Whether the engine decides on an event as it did."""
    try:
        event = reader.read(line)
        return decision_line(event, engine.handle(event)) == answer
    except Refused:
        return False
