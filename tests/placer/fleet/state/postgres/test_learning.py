"""What one agent learns, all know: after the same log they predict alike, those that start later included."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from placer.fleet.engine import Engine
from placer.fleet.learning.actions import ActionKind, ModelAction
from placer.fleet.learning.learning import correct
from placer.fleet.learning.versions import ModelStore
from placer.fleet.protocol import Reader
from placer.fleet.state.looking import looking
from placer.fleet.state.model_actions import LiveActions, RecordedActions
from placer.fleet.state.postgres.models import SharedModelStore
from placer.fleet.state.postgres.state import SharedState, learn_from_others
from placer.fleet.state.saved_learning import recorded_actions
from placer.model.fleet import Fleet
from placer.model.oracle import PredictorOracle
from placer.testing.strategies import TOY_TRAFFIC, catalogue
from predictor import Predictor
from tests.placer.fleet.learning.toy_predictor import MODEL, BiasedPredictor, Planned
from tests.placer.fleet.service.test_opening import TRIED_AT, _measured, events
from tests.postgres import Cluster

KINDS = catalogue((None, 1.0)).kinds


class ToyStore(ModelStore):
    """Every version is the toy world as it is."""

    def predictors(self, number: int, nic_models: Sequence[str]) -> dict[str, Predictor]:
        return {MODEL: BiasedPredictor(1.0)}  # type: ignore[dict-item]


STORE = ToyStore(Path(), "toy")


def agent(address: str) -> tuple[SharedState, Engine]:
    """An agent whose first models are 10 % too high."""
    state = SharedState(address, KINDS)
    feedback, oracles = correct(KINDS, [PredictorOracle(BiasedPredictor(1.1))])
    feedback.actions = RecordedActions(recorded_actions(state.learnt), STORE, (MODEL,))
    feedback.restore(state.readings)
    engine = Engine(state.fleet if state.events else Fleet(KINDS), oracles, feedback=feedback, events=state.events)
    engine.follow_models()
    state.agreement.learn = partial(learn_from_others, STORE)
    state.attach(engine)
    return state, engine


def learnt(engine: Engine) -> dict[str, Any]:
    feedback = engine.feedback
    assert feedback is not None
    places = sorted({nic.co_location for nic in engine.fleet.nics.values()})
    return {
        "versions": [one.as_dict() for one in feedback.versions.values()],
        "model": feedback.model,
        "on_trial": feedback.on_trial,
        "expected": [feedback.expect(MODEL, place) for place in places],
        "capacities": feedback.capacities,
    }


def handle(of: tuple[SharedState, Engine], line: str, number: int) -> None:
    """Let an agent decide on a line, once it knows what others did."""
    state, engine = of
    state.agreement.follow(engine, state.agreement.fetch().batches)
    reader = Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of)
    text = _measured(line, engine, number)

    def work() -> None:
        event = reader.read(text)
        state.record(event, engine.handle(event), engine.fleet)

    state.decide(engine, work)


@pytest.mark.long
def test_all_agents_learn_alike(postgres: Cluster) -> None:
    """Two decide and measure in turn; a better version comes on trial at one of them and is promoted."""
    address = postgres.database()
    agents = [agent(address), agent(address)]
    planned = Planned({TRIED_AT: [ModelAction(ActionKind.CANARY, 2, 0)]})
    for _, engine in agents:
        assert engine.feedback is not None
        engine.feedback.actions = planned
    for number, line in enumerate(events(620)):
        handle(agents[number % 2], line, number)
    for state, engine in agents:
        state.agreement.follow(engine, state.agreement.fetch().batches)
    late = agent(address)
    expected = learnt(late[1])
    assert expected["model"] == 2
    for _, engine in agents:
        assert learnt(engine) == expected
    for state, _ in (*agents, late):
        state.close()


@pytest.mark.parametrize("alone", [False, True], ids=["at once", "alone"])
@pytest.mark.parametrize("committed", [False, True], ids=["before", "after"])
def test_a_measurement_outlives_its_connection(postgres: Cluster, committed: bool, alone: bool) -> None:
    """Cut before it was committed, or before the agent heard of that: it is learnt once, by all."""
    address = postgres.database()
    one, other = agent(address), agent(address)
    lines = list(events(12))
    at = next(number for number, line in enumerate(lines) if '"measured"' in line)
    for number, line in enumerate(lines[:at]):
        handle(one, line, number)
    state, engine = one
    agreement = state.agreement
    agreement.begin(engine, agreement.fetch(alone=alone), alone=alone)
    event = Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of).read(_measured(lines[at], engine, at))
    state.record(event, engine.handle(event), engine.fleet)
    agreement.seal(engine)
    if committed:
        agreement._commit(agreement.link.connection)
    other[0]._ask("SELECT pg_terminate_backend(%s)", agreement.link.connection.info.backend_pid)
    agreement.commit()
    assert agreement.finish(engine) == 0
    other[0].agreement.follow(other[1], other[0].agreement.fetch().batches)
    late = agent(address)
    assert late[1].events == at + 1 and learnt(other[1]) == learnt(engine) == learnt(late[1])
    for each, _ in (one, other, late):
        each.close()


def test_versions_are_loaded_by_other_agents(postgres: Cluster, tmp_path: Path) -> None:
    """Whole folders, with their files as they are; a version that is kept again replaces the former one."""
    address = postgres.database()
    with SharedState(address, KINDS) as one, SharedState(address, KINDS) as other:
        for content in (b"\x00old", b"\x00new"):
            folder = tmp_path / content.hex()
            (folder / "inner").mkdir(parents=True)
            (folder / "inner" / "model.bin").write_bytes(content)
            one.models("tomur").keep({"a/b": folder}, 2)
        store = other.models("tomur")
        assert isinstance(store, SharedModelStore)
        store.fetch(2)
        assert (store.folder / "2" / "a%2Fb" / "inner" / "model.bin").read_bytes() == b"\x00new"


def test_what_is_asked_for_takes_effect_with_the_next_measurement(postgres: Cluster) -> None:
    """At the agent that decides on it, and at those that follow."""
    address = postgres.database()
    agents = [agent(address), agent(address)]
    for state, engine in agents:
        assert engine.feedback is not None
        engine.feedback.actions = LiveActions(state, STORE, engine.feedback, None)
    with looking(address) as look:
        look.ask(ModelAction(ActionKind.FREEZE))
        assert list(agents[1][0].list_requests()) == ["asked 1"]
    for number, line in enumerate(events(12)):
        handle(agents[0], line, number)
    state, engine = agents[1]
    state.agreement.follow(engine, state.agreement.fetch().batches)
    assert list(state.list_requests()) == []
    for state, engine in agents:
        assert engine.feedback is not None and engine.feedback.frozen
        state.close()


def test_only_one_agent_retrains(postgres: Cluster) -> None:
    """The one with the lease."""

    class Due:
        taken = 0

        def take(self) -> None:
            self.taken += 1

        def is_due(self, feedback: object) -> bool:
            return False

    address = postgres.database()
    agents, retrainers = [agent(address), agent(address)], [Due(), Due()]
    for (state, engine), retrainer in zip(agents, retrainers, strict=True):
        assert engine.feedback is not None
        assert LiveActions(state, STORE, engine.feedback, retrainer).due(1) == ()  # type: ignore[arg-type]
    assert [one.taken for one in retrainers] == [1, 0]
    for state, _ in agents:
        state.close()
