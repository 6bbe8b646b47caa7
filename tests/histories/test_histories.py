"""Under kills, stops and cut connections no answer is wrong: checked against every order that is possible."""

import json
import random
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line
from placer.fleet.events import Refused
from placer.fleet.protocol import Reader
from placer.fleet.state.postgres.agreement import Agreement
from placer.fleet.state.postgres.batch import News
from placer.fleet.state.store import State
from placer.model.fleet import Fleet
from placer.testing.strategies import TOY_TRAFFIC
from tests.histories.faults import check, faults_of_log, run
from tests.histories.fleet import KINDS, draw_event, engine_of, faults_of_fleet, sort_answer
from tests.postgres import cluster, needs_postgres

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="there is no go")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_neither_a_restart_nor_what_was_taken_back_changes_a_decision(tmp_path: Path, seed: int) -> None:
    """200 events, on an engine that decides on nothing else, and on one that also decides on other events, which are
    taken back, and is often started again from its state."""
    draw, plain = random.Random(seed), engine_of(Fleet(KINDS))
    for _ in range(40):
        with State(tmp_path / "s.db", KINDS) as state:
            engine = engine_of(state.fleet if state.events else Fleet(KINDS), state.waiting, state.events)
            for _ in range(5):
                batch: Any = Agreement(None, 0)  # type: ignore[arg-type]
                batch.begin(engine, News())
                for _ in range(draw.randrange(3)):
                    _answer(engine, draw_event(draw))
                batch.abandon(engine)
                event = draw_event(draw)
                assert _answer(engine, event, state) == _answer(plain, event), event


def _answer(engine: Engine, drawn: dict[str, Any], state: State | None = None) -> dict[str, Any]:
    """What the engine decides on an event, which comes into the state."""
    try:
        event = Reader(TOY_TRAFFIC, lambda workload: (), engine.workload_of).read(json.dumps(drawn))
        decision = engine.handle(event)
    except Refused as refused:
        return {"refused": str(refused)}
    if state is not None:
        state.record(event, decision, engine.fleet)
    return sort_answer(json.loads(decision_line(event, decision)))


@needs_go
@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_doubled(tmp_path: Path) -> None:
    """60,000 operations of 24 clients on instances that they share, and 20 faults."""
    study = run(tmp_path, operations=60_000, faults=20)
    assert len(study.faults) == 20 and (study.different, study.ends) == (0, [])
    found, text = check(tmp_path / "history.jsonl")
    assert found, text


@needs_go
@pytest.mark.slow
@pytest.mark.parametrize("flaw", ["forgets-keys", "answers-early"])
def test_a_service_with_a_flaw_is_found_out(tmp_path: Path, flaw: str) -> None:
    """One that decides again on what is sent again, and one that answers before its disk has written."""
    study = run(tmp_path, operations=12_000, faults=6, flaw=flaw)
    assert study.different > 0 or not check(tmp_path / "history.jsonl")[0]


@pytest.mark.slow
@pytest.mark.parametrize("agents", [0, pytest.param(1, marks=needs_postgres)], ids=["file", "database"])
def test_a_fleet_is_what_it_would_be_if_nobody_had_been_killed(tmp_path: Path, agents: int) -> None:
    """2,000 operations, half of them on NICs or with constraints, and 20 faults."""
    with cluster() if agents else nullcontext() as server:
        study = run(tmp_path, operations=2_000, faults=20, server=server, of_fleet=True)
        assert (study.different, study.ends) == (0, [])
        assert faults_of_fleet(study.state, study.history, tmp_path / "replayed.db") == []


@pytest.mark.slow
def test_a_fleet_that_answers_before_its_disk_has_written_is_found_out(tmp_path: Path) -> None:
    study = run(tmp_path, operations=1_000, faults=8, flaw="answers-early", of_fleet=True)
    assert faults_of_fleet(study.state, study.history, tmp_path / "replayed.db")


@needs_go
@needs_postgres
@pytest.mark.slow
def test_agents_on_one_database_lose_and_double_nothing(tmp_path: Path) -> None:
    """60,000 operations on three agents, and 20 faults, restarts of the database among them."""
    with cluster() as server:
        study = run(tmp_path, operations=60_000, faults=20, agents=3, server=server)
        assert len(study.faults) == 20 and (study.different, study.ends) == (0, [])
        found, text = check(tmp_path / "history.jsonl")
        assert found, text
        assert faults_of_log(study.state) == []


@needs_go
@needs_postgres
@pytest.mark.slow
def test_agents_that_do_not_compare_versions_are_found_out(tmp_path: Path) -> None:
    """NICs are overcommitted, or instances are in two places."""
    with cluster() as server:
        study = run(tmp_path, operations=6_000, faults=2, flaw="forgets-versions", agents=3, server=server)
        assert faults_of_log(study.state) or not check(tmp_path / "history.jsonl")[0]
