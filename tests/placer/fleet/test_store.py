"""The state file: nothing acknowledged is lost, and a file that makes no sense is refused by name."""

import random
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from placer.fleet.engine import Engine
from placer.fleet.events import (
    Arrive,
    Change,
    Depart,
    Drain,
    FleetEvent,
    Join,
    Learned,
    Leave,
    Measure,
    MeasuredInstance,
)
from placer.fleet.learning.learning import correct
from placer.fleet.queued_fleet import QUEUE
from placer.fleet.state.backup import back_up
from placer.fleet.state.store import State
from placer.model.nic import Tenant
from placer.model.oracle import PredictorOracle
from placer.model.sla import Sla
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import InputError, Workload
from tests.effort import examples
from tests.placer.fleet.learning.toy_predictor import ToyPredictor

KINDS = catalogue((1, 1.0)).kinds
PAGE = 4096
MOST_FLOWS = 1e6


def profiled(workload: Workload) -> list[tuple[str, str]]:
    """Refuses more flows than were profiled."""
    return [("flows", "is outside the profiled range")] if workload.traffic.flows > MOST_FLOWS else []


def arrivals(state: State, *identities: str) -> None:
    handle(state, *(Arrive(Tenant(identity, Workload("d", TOY_TRAFFIC), Sla(max_drop=0.5))) for identity in identities))


def handle(state: State, *events: FleetEvent) -> None:
    engine = Engine(state.fleet, [ToyOracle()], waiting=state.waiting, when_full=QUEUE)
    for event in events:
        state.record(event, engine.handle(event), engine.fleet)
    state.commit()


def placed(state: State) -> dict[str, str]:
    """The NIC of every tenant."""
    return {tenant.id: nic.id for nic in state.fleet.nics.values() for tenant in nic.tenants}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A state with two tenants on one NIC, and one that waits."""
    path = tmp_path / "s.db"
    with State(path, KINDS) as state:
        arrivals(state, "1", "2", "3")
    return path


def test_a_reopened_state_is_as_it_was(saved: Path) -> None:
    """Two of three fit on the NIC."""
    with State(saved, KINDS) as state:
        assert placed(state) == {"1": "nic-1", "2": "nic-1"}
        assert [tenant.id for tenant in state.waiting] == ["3"]


def test_tenants_of_a_nic_are_in_the_same_order_after_a_restart(saved: Path) -> None:
    """One that changed is behind the others, as events after it have it."""

    def order(state: State) -> list[str]:
        return [tenant.id for tenant in state.fleet.nics["nic-1"].tenants]

    with State(saved, KINDS) as state:
        handle(state, Change("1", sla=Sla(max_drop=0.4)))
        assert order(state) == ["2", "1"]
    with State(saved, KINDS) as state:
        assert order(state) == ["2", "1"]


def test_a_fleet_with_names_is_continued_as_it_was(tmp_path: Path) -> None:
    """Each d has the first NIC for itself; with other names in the file later, both NICs and their tenants stay."""
    path = tmp_path / "s.db"
    one = replace(KINDS[0], count=None, cores=3)
    with State(path, [replace(one, names=("east",))]) as state:
        arrivals(state, "1", "2")
        assert placed(state) == {"1": "east", "2": "nic-2"}
    with State(path, [replace(one, names=("west", "north", "east"))]) as state:
        assert placed(state) == {"1": "east", "2": "nic-2"}
        arrivals(state, "3", "4", "5")
    with State(path, [one]) as state:
        homes = placed(state)
        assert set(homes.values()) == {"east", "nic-2", "west", "north", homes["5"]}
        assert len({nic.number for nic in state.fleet.nics.values()}) == 5


@pytest.mark.parametrize("names", [(), ("east",)])
def test_a_nic_that_left_is_gone_after_a_restart_and_its_place_in_the_count_with_it(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Numbered, or named in the fleet file and never used; the next NIC has a number of its own."""
    path, kinds = tmp_path / "s.db", [replace(KINDS[0], count=2, cores=3, names=names)]
    left = names[0] if names else "nic-1"
    with State(path, kinds) as state:
        if not names:
            arrivals(state, "1")
            handle(state, Depart("1"))
        handle(state, Leave(left))
    with State(path, kinds) as state:
        assert state.fleet.find(left) is None and state.fleet.gone[left].number == 1
        arrivals(state, "2", "3")
        assert placed(state) == {"2": "nic-2"}
    with State(path, kinds) as state:
        handle(state, Join(left, kinds[0].model))
    with State(path, kinds) as state:
        assert placed(state) == {"2": "nic-2", "3": left}


def test_everything_committed_is_in_the_file_itself(tmp_path: Path) -> None:
    """Copied alone from an open state, without the files next to it, as after a kill."""
    state = State(tmp_path / "s.db", KINDS)
    arrivals(state, "1")
    shutil.copy(tmp_path / "s.db", tmp_path / "alone.db")
    with State(tmp_path / "alone.db", KINDS) as alone:
        assert placed(alone) == {"1": "nic-1"}
    state.close()


def test_a_state_of_an_earlier_version_keeps_its_write_ahead_log(saved: Path, tmp_path: Path) -> None:
    """Earlier versions used a write-ahead log; opening such a file moves its content into the file itself."""
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("DELETE FROM tenants WHERE id = '3'")
        for suffix in ("", "-wal"):
            shutil.copy(f"{saved}{suffix}", f"{tmp_path / 'killed.db'}{suffix}")
    with State(tmp_path / "killed.db", KINDS) as state:
        assert not state.waiting
    assert not (tmp_path / "killed.db-wal").exists()


def test_an_event_that_was_not_committed_is_forgotten(saved: Path) -> None:
    """An error before the commit leaves the file as it was."""
    with pytest.raises(RuntimeError), State(saved, KINDS) as state:
        state.record(Drain("nic-1"), Engine(state.fleet, [ToyOracle()]).handle(Drain("nic-1")), state.fleet)
        raise RuntimeError
    with State(saved, KINDS) as state:
        assert not state.fleet.out_of_service


def test_a_state_in_use_is_refused(saved: Path) -> None:
    """Two services never decide on one fleet."""
    with State(saved, KINDS), pytest.raises(InputError, match="in use"):
        State(saved, KINDS)
    State(saved, KINDS).close()


def test_a_state_of_another_fleet_is_refused(saved: Path) -> None:
    """The file has one kind of NIC, not two."""
    with pytest.raises(InputError, match="another fleet"):
        State(saved, catalogue((1, 1.0), (1, 1.0)).kinds)


@pytest.mark.parametrize(
    "content",
    [b"", b"not a database, but a text that is long enough to look like one " * 20, b"SQLite format 3\0" + bytes(4080)],
    ids=["empty", "text", "header"],
)
def test_a_file_that_is_not_a_state_is_refused_and_not_changed(content: bytes, tmp_path: Path) -> None:
    """An empty file is not taken for an empty fleet: it may be what is left of one."""
    (tmp_path / "s.db").write_bytes(content)
    with pytest.raises(InputError, match="is not the state of a fleet"):
        State(tmp_path / "s.db", KINDS)
    assert (tmp_path / "s.db").read_bytes() == content


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    """Even if one of its tables has a name of ours."""
    with closing(sqlite3.connect(tmp_path / "s.db")) as file:
        file.execute("CREATE TABLE nics (id TEXT)")
    with pytest.raises(InputError, match="is not the state of a fleet"):
        State(tmp_path / "s.db", KINDS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE tenants SET nf = 'z' WHERE id = '1'", "tenants '1': nf 'z' does not run on a toy-0"),
        ("UPDATE tenants SET sla_drop = NULL WHERE id = '2'", "tenants '2': has not one SLA"),
        ("UPDATE tenants SET sla_min_kpps = 5 WHERE id = '2'", "tenants '2': has not one SLA"),
        ("UPDATE tenants SET sla_drop = 1.5 WHERE id = '3'", "tenants '3': sla_drop 1.5"),
        ("UPDATE tenants SET sla_drop = NULL, sla_min_kpps = 'much' WHERE id = '3'", "sla_min_kpps 'much'"),
        ("UPDATE tenants SET flows = 'many' WHERE id = '1'", "flows 'many' is not a number"),
        ("UPDATE tenants SET flows = 9e999 WHERE id = '1'", "flows inf is not a number"),
        ("UPDATE tenants SET mtbr = -5 WHERE id = '1'", "mtbr -5.0 is not a number from 0 up"),
        ("UPDATE tenants SET nic = 'nic-9' WHERE id = '1'", "tenants '1': nic 'nic-9' is not among the NICs"),
        ("UPDATE tenants SET id = 'a' || char(10) WHERE id = '1'", r"id 'a\\n' is not a name"),
        ("UPDATE tenants SET id = CAST(x'ff' AS TEXT) WHERE id = '1'", r"id '\\udcff' is not a name"),
        ("UPDATE nics SET kind = 99", "nics 'nic-1': kind 99 is not one of 1"),
        ("UPDATE nics SET kind = 'x'", "kind 'x' is not one of"),
        ("UPDATE nics SET number = 0", "number 0 is not"),
        ("UPDATE nics SET number = 9223372036854775807",
            "nics 'nic-1': number 9223372036854775807 is not .* 1 to 1,000"),
        ("UPDATE nics SET number = 2", "nics 'nic-1': number 2 is not that of its id"),
        ("INSERT INTO nics VALUES ('nic-6', 0, 2, 'up', null, null)", "nics 'nic-6': number 2 is not that of its id"),
        ("UPDATE tenants SET place = -1 WHERE id = '1'", "tenants '1': place -1 is not"),
        ("UPDATE tenants SET place = 9223372036854775807 WHERE id = '3'",
            "tenants '3': place 9223372036854775807 is not"),
        ("UPDATE tenants SET flows = 1e12 WHERE id = '2'", "tenants '2': flows is outside the profiled range"),
        ("CREATE VIEW v AS SELECT * FROM tenants", "has a view 'v'"),
        ("CREATE TRIGGER t AFTER INSERT ON log BEGIN DELETE FROM tenants; END", "has a trigger 't'"),
        ("INSERT INTO nics VALUES ('other', 0, 1, 'up', null, null)", "number 1 is not a whole number of its own"),
        ("UPDATE nics SET service = 'asleep'", "service 'asleep' is not one of up, cordoned, draining, failed, gone"),
        ("UPDATE nics SET service = 'failed'", "nics 'nic-1': failed, but has tenants"),
        ("UPDATE nics SET service = 'gone'", "nics 'nic-1': gone, but has tenants"),
        ("UPDATE tenants SET nic = 'nic-1'", "nics 'nic-1': its tenants take more than its 8 cores"),
        ("DROP TABLE log", "lacks the tables of a state: log"),
        ("ALTER TABLE tenants DROP COLUMN mtbr", "lacks the tables of a state: tenants"),
        ("UPDATE facts SET value = '7' WHERE name = 'format'", "is of format 7, not 2"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_in_a_state_is_refused_by_name(change: str, message: str, saved: Path) -> None:
    """Each is found on opening, and nothing is changed."""
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.execute(change)
    before = saved.read_bytes()
    with pytest.raises(InputError, match=message):
        State(saved, KINDS, profiled)
    assert saved.read_bytes() == before


@pytest.mark.long
def test_a_state_with_flipped_bits_works_or_is_refused(saved: Path, tmp_path: Path) -> None:
    """Sixty copies with bits flipped anywhere, and every byte of the schema, whose text SQLite quotes in messages."""
    content, rng = saved.read_bytes(), random.Random(3)
    used = [at for at, byte in enumerate(content) if byte]
    damages = [
        [(rng.choice(used), 1 << rng.randrange(8)) for _ in range(rng.choice((1, 3, 10)))] for _ in range(examples(60))
    ]
    damages += [[(at, 0x80)] for at in used if at < PAGE]
    refused = 0
    for number, damage in enumerate(damages):
        copy = bytearray(content)
        for at, bit in damage:
            copy[at] ^= bit
        path = tmp_path / f"{number}.db"
        path.write_bytes(copy)
        try:
            with State(path, KINDS) as state:
                arrivals(state, "4")
                assert len(list(state.log())) > 0
        except InputError as error:
            refused += 1
            assert all(str(fault).startswith(f"{path}: ") for fault in error.faults)
            assert all(str(fault).isprintable() for fault in error.faults)
        path.unlink()
    assert refused > 60


def test_damaged_pages_are_refused(saved: Path) -> None:
    """SQLite's own check finds them."""
    content = bytearray(saved.read_bytes())
    content[4096 * 4 : 4096 * 6] = bytes(8192)
    saved.write_bytes(content)
    with pytest.raises(InputError, match=r"is damaged|is not the state of a fleet"):
        State(saved, KINDS)


def test_a_backup_of_a_state_in_use_is_a_state(saved: Path, tmp_path: Path) -> None:
    """It holds what was committed; an existing file is not replaced."""
    copy = tmp_path / "copies" / "copy.db"
    with State(saved, KINDS) as state:
        back_up(saved, copy)
        arrivals(state, "4")
    with State(copy, KINDS) as state:
        assert placed(state) == {"1": "nic-1", "2": "nic-1"} and len(list(state.log())) == 3
    with pytest.raises(InputError, match="exists already"):
        back_up(saved, copy)


def test_a_backup_of_something_else_is_refused(tmp_path: Path) -> None:
    """Nothing is written."""
    (tmp_path / "empty.db").touch()
    with pytest.raises(InputError, match="is not the state of a fleet"):
        back_up(tmp_path / "empty.db", tmp_path / "copy.db")
    with pytest.raises(InputError, match="does not exist"):
        back_up(tmp_path / "missing.db", tmp_path / "copy.db")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.db"]


def test_a_state_of_the_former_format_is_read_and_continued(saved: Path) -> None:
    """It had no tables of readings."""
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.executescript("DROP TABLE readings; DROP TABLE learnt; UPDATE facts SET value = '1' WHERE name = 'format'")
    with State(saved, KINDS) as state:
        assert placed(state) == {"1": "nic-1", "2": "nic-1"} and state.readings == ()
    with State(saved, KINDS) as state:
        assert state.events == 3


def test_a_state_whose_readings_do_not_say_who_was_below_its_sla_is_continued(saved: Path) -> None:
    """It has one column less, which is added; nothing that was read then is known to be below an SLA."""
    with State(saved, KINDS) as state:
        state.note("model", 1)
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.execute("ALTER TABLE readings DROP COLUMN below_sla")
        row = (3, "toy-0", '[["a", 16000, 1500, 600]]', 0, "1", 80.0, None)
        columns = "event, nic_model, co_location, place, tenant, throughput_kpps, offered_kpps"
        file.execute(f"INSERT INTO readings ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    for _ in range(2):
        with State(saved, KINDS) as state:
            assert [reading.below_sla for reading in state.readings] == [False]


def test_readings_are_as_they_were_after_a_restart(saved: Path) -> None:
    """All of them, in order, with what is not known and who was below its SLA."""
    with State(saved, KINDS) as state:
        feedback, oracles = correct(KINDS, [PredictorOracle(ToyPredictor(), None)])
        engine = Engine(state.fleet, oracles, waiting=state.waiting, feedback=feedback, events=state.events)
        event = Measure("nic-1", 10.0, (MeasuredInstance("1", 100.0, 900.0), MeasuredInstance("2", 650.5)))
        decision = engine.handle(event)
        assert isinstance(decision, Learned) and [reading.below_sla for reading in decision.readings] == [True, False]
        state.record(event, decision, engine.fleet)
    with State(saved, KINDS) as state:
        assert state.readings == decision.readings and state.events == 4
