"""A restart: the engine of a state is, to the last bit, what it was."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random

import pytest

from placer.fleet.engine import Engine
from placer.fleet.feedback_summary import FeedbackSummary
from placer.fleet.learning.actions import ActionKind, ModelAction
from placer.fleet.learning.learning import correct
from placer.fleet.protocol import Reader, decision_line
from placer.fleet.service.opening import replay
from placer.fleet.state.looking import looking
from placer.fleet.state.model_actions import RecordedActions
from placer.fleet.state.saved_learning import read_asked, recorded_actions
from placer.fleet.state.store import State
from placer.model.fleet import Fleet
from placer.model.oracle import PredictorOracle
from placer.progress import Progress
from placer.testing.strategies import TOY_TRAFFIC, catalogue
from profiles import InputError
from tests.placer.fleet.learning.toy_predictor import BiasedPredictor, Planned

CATALOGUE = catalogue((None, 1.0))
TRIED_AT = 150


class Recorded(RecordedActions):
    """What was recorded; its versions are toy models."""

    def models(self, version: int) -> Mapping[str, object]:  # type: ignore[override]
        return Planned({}).models(version)


def engine_of(fleet: Fleet, events: int = 0) -> Engine:
    """Whose first models are 10 % too high."""
    feedback, oracles = correct(CATALOGUE.kinds, [PredictorOracle(BiasedPredictor(1.1))])
    return Engine(fleet, oracles, feedback=feedback, events=events)


def opened(state: State) -> Engine:
    """The engine of a state; a better version comes with a fixed event."""
    fresh = engine_of(Fleet(CATALOGUE.kinds))
    before = Recorded(recorded_actions(state.learnt), None, ("toy-0",))
    # the toy world has neither models nor traffic ranges
    world = type("World", (), {"default_traffic": TOY_TRAFFIC, "check": lambda self, workload: ()})()
    engine = replay(state, fresh, before, world, Progress(quiet=True))
    assert engine is not None
    assert engine.feedback is not None
    engine.feedback.actions = Planned({TRIED_AT: [ModelAction(ActionKind.CANARY, 2, 0)]})
    return engine


def events(count: int) -> Iterator[str]:
    """Arrivals of ever new traffic, departures, and readings that are 10 % lower than the first models say."""
    draw, present = Random(7), []
    for number in range(count):
        if number % 3 == 0:
            present.append(f"t{number}")
            traffic = {"flows": draw.randint(1, 300)}
            line = {"event": "arrive", "id": present[-1], "nf": draw.choice("abc"), "traffic": traffic, "sla_drop": 0.3}
        elif number % 10 == 4 and len(present) > 12:
            line = {"event": "depart", "id": present.pop(draw.randrange(len(present)))}
        else:
            line = {"event": "measured"}
        yield json.dumps(line)


def answers(path: Path, lines: list[str], kills: set[int]) -> list[str]:
    """The answers to lines by a service that is killed after some of them."""
    found, done = [], 0
    while done < len(lines):
        with State(path, CATALOGUE.kinds) as state:
            engine = opened(state)
            reader = Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of)
            while done < len(lines):
                event = reader.read(_measured(lines[done], engine, done))
                decision = engine.handle(event)
                state.record(event, decision, engine.fleet)
                state.commit()
                found.append(decision_line(event, decision))
                done += 1
                if done in kills:
                    break
    return found


def _measured(line: str, engine: Engine, number: int) -> str:
    """A measurement of some NIC, as the toy world is."""
    if json.loads(line)["event"] != "measured":
        return line
    draw = Random(number)
    nic = draw.choice(list(engine.fleet.nics.values()))
    kpps = engine.feedback.versions[1].oracles["toy-0"].predictor.throughput([nic.co_location])[0]  # type: ignore[union-attr]
    of = dict(zip(nic.co_location, kpps.tolist(), strict=True))
    instances = [
        {"id": one.id, "throughput_kpps": of[one.workload] / 1.1 * draw.gauss(1, 0.02), "offered_kpps": 1e6}
        for one in nic.tenants
    ]
    return json.dumps({"event": "measured", "nic": nic.id, "window_s": 1, "instances": instances})


def contents(path: Path) -> list[str]:
    """All rows of a state."""
    with closing(sqlite3.connect(path)) as file:
        return list(file.iterdump())


@pytest.mark.slow
@pytest.mark.parametrize("every", [97, 3])
def test_kills_change_nothing(tmp_path: Path, every: int) -> None:
    """Answers, ledger, versions, evidence and placements are those of a service that was never killed."""
    lines = list(events(620))
    uninterrupted = answers(tmp_path / "one.db", lines, set())
    assert '"promoted"' in "".join(uninterrupted)
    kills = set(range(every, len(lines), every))
    assert answers(tmp_path / "other.db", lines, kills) == uninterrupted
    assert contents(tmp_path / "other.db") == contents(tmp_path / "one.db")


def test_what_operators_ask_for_waits_in_the_state(tmp_path: Path) -> None:
    """It is shown at once, also while a service uses the file."""
    path = tmp_path / "one.db"
    with State(path, CATALOGUE.kinds) as state:
        with looking(path) as look:
            look.ask(ModelAction(ActionKind.FREEZE))
            look.ask(ModelAction(ActionKind.ROLL_BACK, 1))
            summary = FeedbackSummary.of(look)
        assert list(state.list_requests()) == ["asked 1", "asked 2"]
    assert (summary.frozen, summary.model, summary.measurements) == (True, 1, 0)


def test_a_row_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    """By name, with the file."""
    path = tmp_path / "one.db"
    with State(path, CATALOGUE.kinds):
        pass
    with closing(sqlite3.connect(path)) as file:
        file.execute("INSERT INTO learnt VALUES ('action 1', '{}'), ('model', 'x')")
        file.commit()
    with pytest.raises(InputError) as refused, ExitStack():
        State(path, CATALOGUE.kinds)
    assert str(refused.value).count("makes no sense") == 2
    with closing(sqlite3.connect(path)) as file:
        assert read_asked(file) == {}
