"""A restart: the engine of a state is, to the last bit, what it was. A fleet that begins with a plan: its NICs, its
SLAs, and what a restart makes of it."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from random import Random
from unittest.mock import Mock

import pytest

from placer.fleet.engine import Engine
from placer.fleet.event_lines import decision_line
from placer.fleet.events import Arrive, Depart, Drain, Rebalance
from placer.fleet.feedback_summary import FeedbackSummary
from placer.fleet.learning.actions import ActionKind, ModelAction
from placer.fleet.learning.learning import correct
from placer.fleet.protocol import Reader
from placer.fleet.service import opening
from placer.fleet.service.opening import OnlineSettings, open_engine, replay, take_over
from placer.fleet.state.looking import looking
from placer.fleet.state.model_actions import RecordedActions
from placer.fleet.state.retention import Retention
from placer.fleet.state.saved_learning import read_asked, recorded_actions
from placer.fleet.state.store import State
from placer.model.fleet import Fleet
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import PredictorOracle
from placer.model.plan import Placement, Plan
from placer.model.sla import Sla
from placer.policy.rules import FIRST_FIT
from placer.progress import Progress
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, arrival, catalogue
from profiles import InputError, Workload
from tests.placer.fleet.learning.toy_predictor import BiasedPredictor, Planned
from tests.placer.fleet.state.postgres.agents import Agent, picture
from tests.postgres import Cluster

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
    assert engine is not None and engine.feedback is not None
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
    """What is in a file, whenever it was written."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE log SET time = NULL")
        return [row for row in file.iterdump() if "log_times" not in row]


@pytest.mark.slow
@pytest.mark.parametrize("every", [97, 3])
def test_kills_change_nothing(tmp_path: Path, every: int) -> None:
    """Answers, ledger, versions, evidence and placements are those of a service that was never killed."""
    lines = list(events(620))
    uninterrupted = answers(tmp_path / "one.db", lines, set())
    assert '"promoted"' in "".join(uninterrupted)
    assert answers(tmp_path / "other.db", lines, set(range(every, len(lines), every))) == uninterrupted
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


KINDS = catalogue((None, 1.0)).kinds


def plan(*placed: tuple[str, str, str | None, float], kind: NicKind = KINDS[0]) -> Plan:
    """A plan of (id, NF, NIC, largest drop)."""
    return Plan(
        "by hand",
        None,
        tuple(
            Placement(arrival(identity, 0, nf, drop), nic, None if nic is None else kind)
            for identity, nf, nic, drop in placed
        ),
        0.0,
    )


TINY = plan(("1", "d", "nic-5", 0.5), ("2", "c", "nic-2", 0.5), ("3", "c", None, 0.5), ("4", "d", "nic-5", 0.5))


def engine(fleet: Fleet | None = None, events: int = 0) -> Engine:
    """It takes the NIC with the lowest number."""
    return Engine(fleet or Fleet(KINDS), [ToyOracle()], FIRST_FIT, events=events)


def arrive(one: Engine, identity: str, nf: str, drop: float = 0.5) -> str | None:
    return one.handle(Arrive(Tenant(identity, Workload(nf, TOY_TRAFFIC), Sla(max_drop=drop)))).nic


def test_nics_keep_the_ids_of_the_plan_and_later_ones_have_higher_numbers() -> None:
    """Two `d` fill six of eight cores of nic-5, `c` is alone on nic-2, `3` is rejected; the next NIC is nic-6."""
    one = engine()
    assert take_over(TINY, one, None) == 0
    assert {nic.id: [*nic.tenants_by_id] for nic in one.fleet.nics.values()} == {"nic-5": ["1", "4"], "nic-2": ["2"]}
    assert arrive(one, "5", "b") == "nic-2" and arrive(one, "6", "d", 0.01) == "nic-6"
    assert one.fleet.nic_of("3") is None


def test_a_nic_with_a_name_takes_what_the_plan_has_on_it() -> None:
    """slot-1 has the number 1, so that the next NIC is nic-2."""
    fleet = Fleet(KINDS)
    fleet.join(KINDS[0], "slot-1")
    one = engine(fleet)
    take_over(plan(("1", "d", "slot-1", 0.5), ("2", "d", "slot-1", 0.5)), one, None)
    assert list(fleet.nics) == ["slot-1"] and arrive(one, "3", "d", 0.01) == "nic-2"


def test_an_instance_of_the_plan_leaves_and_is_moved_as_any_other() -> None:
    """A drain moves `2` beside the two `d`; when `1` and `4` leave, the NIC is used again before a new one is."""
    one = engine()
    take_over(TINY, one, None)
    assert [(move.id, move.target) for move in one.handle(Drain("nic-2")).moves] == [("2", "nic-5")]
    for identity in ("1", "2", "4"):
        one.handle(Depart(identity))
    assert arrive(one, "5", "d") == "nic-5"


@pytest.mark.parametrize(("drop", "violated", "nic"), [(0.2, 0, "nic-1"), (0.05, 1, "nic-2")])
def test_slas_that_the_plan_violates_are_counted_and_bar_arrivals_there(drop: float, violated: int, nic: str) -> None:
    """`c` loses 10 % beside `b`: where it may, `a` is placed beside them, else on another NIC."""
    one = engine()
    assert take_over(plan(("1", "c", "nic-1", drop), ("2", "b", "nic-1", 0.5)), one, None) == violated
    assert arrive(one, "3", "a") == nic


def test_a_rebalance_ends_what_the_plan_violates() -> None:
    """`b` leaves `c`, which is then alone on nic-1."""
    one = engine()
    take_over(plan(("1", "c", "nic-1", 0.05), ("2", "b", "nic-1", 0.5), ("3", "d", "nic-3", 0.5)), one, None)
    assert [(move.id, move.target) for move in one.handle(Rebalance(5)).moves] == [("2", "nic-3")]


def test_a_restart_finds_the_fleet_of_the_plan(tmp_path: Path) -> None:
    """NICs, tenants, order of arrival and the next number are the same, and so is the next decision."""
    with State(tmp_path / "s.db", KINDS) as state:
        one = engine(state.fleet)
        take_over(TINY, one, state)
        before = picture(one.fleet)
    with State(tmp_path / "s.db", KINDS) as state:
        assert state.events == 3 and picture(state.fleet) == before
        assert arrive(engine(state.fleet, state.events), "6", "d", 0.01) == "nic-6"


def test_a_plan_that_is_not_on_disk_whole_is_not_there_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is empty after an end before the commit, so that the same command begins again."""
    with pytest.raises(KeyboardInterrupt), State(tmp_path / "s.db", KINDS) as state:
        monkeypatch.setattr(state, "commit", Mock(side_effect=KeyboardInterrupt))
        take_over(TINY, engine(state.fleet), state)
    with State(tmp_path / "s.db", KINDS) as state:
        assert (state.events, state.fleet.tenants) == (0, 0)


def test_agents_take_over_a_plan_once(postgres: Cluster) -> None:
    """The second one, which knows nothing of the first, follows it; both have the fleet of the plan."""
    address = postgres.database()
    one, other = Agent.of(address, KINDS), Agent.of(address, KINDS)
    assert take_over(TINY, one.engine, one.state) == 0
    assert take_over(plan(("1", "d", "nic-1", 0.5)), other.engine, other.state) is None
    assert picture(one.engine.fleet) == picture(other.engine.fleet)
    assert {nic.id: [*nic.tenants_by_id] for nic in other.engine.fleet.nics.values()} == {
        "nic-5": ["1", "4"],
        "nic-2": ["2"],
    }
    for agent in (one, other):
        agent.state.close()
    again = Agent.of(address, KINDS)
    assert picture(again.engine.fleet) == picture(one.engine.fleet)
    again.state.close()


@pytest.mark.parametrize("kept", [None, 2])
def test_only_a_log_that_is_whole_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int | None
) -> None:
    """Of another one, the fleet is continued as it is, with the number of its last event."""
    replayed, path = Mock(return_value=None), tmp_path / "s.db"
    monkeypatch.setattr(opening, "replay", replayed)
    monkeypatch.setattr(opening, "_within_budget", lambda *given: (0.1, [ToyOracle()], ()))
    settings = OnlineSettings("toy", FIRST_FIT, "reject", risk=0.1)

    def reopened(state: State) -> Engine:
        with ExitStack() as stack:
            return open_engine(CATALOGUE, settings, state, (), stack, Progress(quiet=True), Mock())

    with State(path, CATALOGUE.kinds) as state:
        engine = reopened(state)
        for number in range(5):
            event = Arrive(arrival(f"{number}", 0, "d", 0.9).tenant)
            state.record(event, engine.handle(event), engine.fleet)
        state.commit()
        state.retention = None if kept is None else Retention(events=kept)
        state.maintain()
    replayed.reset_mock()
    with State(path, CATALOGUE.kinds) as state:
        again = reopened(state)
        assert (again.events, picture(again.fleet)) == (5, picture(engine.fleet))
    assert replayed.called is (kept is None)
