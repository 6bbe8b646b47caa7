"""`placer feedback` from end to end, with the recorded models."""

import json
from pathlib import Path

import pytest

from placer.fleet.state.file import reading
from placer.fleet.state.saved_learning import READING_COLUMNS
from placer.testing.strategies import catalogue
from predictor import train
from profiles.profile import read_profile
from tests.placer.commands.conftest import Placer, refuse, run_placer
from tests.postgres import Cluster

REPO = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve instances on a few NICs; every NIC was measured once, at 9 tenths of what was predicted."""
    path = tmp_path_factory.mktemp("feedback") / "fleet.db"
    nfs = ("NIDS", "FlowStats", "ACL", "NAT")
    lines = [{"event": "arrive", "id": str(at), "nf": nfs[at % 4], "sla_drop": 0.2} for at in range(12)]
    placed = _online(path, lines)
    on: dict[str, list[str]] = {}
    for answer in placed:
        on.setdefault(str(answer["nic"]), []).append(str(answer["id"]))
    asked = _online(path, [_measured(nic, dict.fromkeys(ids, 1.0), None) for nic, ids in on.items()])
    kpps = [{one["id"]: 0.9 * one["predicted_kpps"] for one in answer["instances"]} for answer in asked]
    _online(path, [_measured(nic, of, 1e6) for nic, of in zip(on, kpps, strict=True)])
    return path


def _measured(nic: str, kpps: dict[str, float], offered: float | None) -> dict[str, object]:
    instances = [{"id": one, "throughput_kpps": value, "offered_kpps": offered} for one, value in kpps.items()]
    return {"event": "measured", "nic": nic, "window_s": 1, "instances": instances}


def _online(state: Path, events: list[dict[str, object]]) -> list[dict[str, object]]:
    text = "\n".join(map(json.dumps, events)) + "\n"
    ended = run_placer("online", "--state", state, "--risk", "0.22", "--quiet", stdin=text)
    assert ended.status == 0, ended.stderr
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert all(answer["ok"] for answer in answers)
    return answers


def test_what_was_learnt_is_shown(placer: Placer, state: Path) -> None:
    """Half of the readings are lower bounds, and the models are the first ones."""
    shown = json.loads(placer("feedback", "--state", state, "--format", "json").stdout)
    assert (shown["measurements"], shown["lower_bounds"], shown["model"]) == (24, 12, 1) and shown["drift"] == []
    assert [(one["version"], one["status"]) for one in shown["versions"]] == [(1, "initial")]
    assert "24 readings, 12 of them lower bounds. Version 1 decides." in placer("feedback", "--state", state).stdout


@pytest.mark.slow
def test_an_exported_profile_trains(placer: Placer, state: Path, tmp_path: Path) -> None:
    """It is the recorded one with a run for each measured workload in its co-location."""
    out = tmp_path / "profile"
    ended = placer("feedback", "--state", state, "--export", out)
    assert ended.status == 0 and "measured co-locations" in ended.stderr
    made = read_profile(out)
    assert 4 <= sum(len(nf.co_runs) for nf in made.nfs.values()) <= 12
    assert (made.nfs["NIDS"].co_runs["throughput_kpps"] > 0).all()
    assert set(train(made, ["tomur"]).nfs) == set(made.nfs)


@pytest.fixture
def database(state: Path, postgres: Cluster) -> str:
    """The address of a database that has learnt the same."""
    from placer.fleet.state.postgres.connection import open_connection, run
    from placer.fleet.state.postgres.schema import make_state

    address = postgres.database()
    with open_connection(address) as connection, reading(state) as file:
        make_state(connection, address, catalogue((None, 1.0)).kinds)
        for table, columns in (("readings", READING_COLUMNS), ("learnt", "name, value")):
            marks = ", ".join("%s" for _ in columns.split(","))
            for row in file.execute(f"SELECT {columns} FROM {table} ORDER BY rowid"):
                run(connection, f"INSERT INTO {table} ({columns}) VALUES ({marks})", *row)
    return address


@pytest.mark.long
def test_a_database_is_shown_and_exported_as_a_file_is(
    placer: Placer, state: Path, database: str, tmp_path: Path
) -> None:
    """The same readings, the same summary, the same profile."""
    in_file, in_database = (placer("feedback", "--state", one, "--format", "json") for one in (state, database))
    assert in_database == in_file
    for name, one in (("file", state), ("database", database)):
        assert placer("feedback", "--state", one, "--export", tmp_path / name, "--quiet").status == 0
    made = sorted(path.relative_to(tmp_path / "file") for path in (tmp_path / "file").rglob("*.csv"))
    assert made
    for path in made:
        assert (tmp_path / "database" / path).read_bytes() == (tmp_path / "file" / path).read_bytes()


@pytest.mark.long
def test_models_in_a_database_are_frozen(placer: Placer, database: str) -> None:
    """What is asked for later comes later."""
    for option, frozen in (("--freeze", True), ("--unfreeze", False), ("--freeze", True)):
        shown = json.loads(placer("feedback", "--state", database, option, "--format", "json").stdout)
        assert shown["frozen"] is frozen


def test_a_database_without_a_state_is_refused(postgres: Cluster) -> None:
    """And none is made there."""
    address = postgres.database()
    for _ in range(2):
        assert "lacks the tables of a state" in refuse("feedback", "--state", address)


def test_models_are_frozen_and_released(placer: Placer, state: Path) -> None:
    """What is asked for is shown at once, and taken by the service with its next measurement."""
    for option, frozen in (("--freeze", True), ("--unfreeze", False)):
        shown = json.loads(placer("feedback", "--state", state, option, "--format", "json").stdout)
        assert shown["frozen"] is frozen


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rollback", 7), "--rollback: there is no version 7"),
        (("--freeze", "--rollback", 1), "--freeze, --rollback, --export: only one of them at a time"),
        (("--profile", "x"), "--profile: has no effect without --export PROFILE"),
        (("--format", "xml"), "--format"),
    ],
)
def test_what_makes_no_sense_is_refused(state: Path, arguments: tuple[object, ...], message: str) -> None:
    """With what would."""
    assert message in refuse("feedback", "--state", state, *arguments)


@pytest.mark.long
def test_versions_need_a_state_and_a_profile_of_the_fleet(placer: Placer, tmp_path: Path) -> None:
    """Else nothing could be kept, or retrained."""
    ended = placer("online", "--retrain", REPO / "traces" / "bluefield-2-simulated")
    assert "--retrain: there is no state to keep versions beside" in ended.stderr
    ended = placer("online", "--state", tmp_path / "s.db", "--retrain", REPO / "traces" / "server-simulated")
    assert ended.status == 2 and "is not a profile of another NIC model of the fleet" in ended.stderr
