"""Copies of a state, and a restore: whole or not at all, with the models, whatever lies beside the state."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from placer.fleet.engine import Engine
from placer.fleet.events import Arrive
from placer.fleet.learning.actions import ActionKind, ModelAction
from placer.fleet.state import backup
from placer.fleet.state.backup import back_up, restore
from placer.fleet.state.store import State
from placer.model.nic import Tenant
from placer.model.sla import Sla
from placer.testing.strategies import TOY_TRAFFIC, ToyOracle, catalogue
from profiles import InputError, Workload

KINDS = catalogue((None, 1.0)).kinds
VERSION_2 = ModelAction(ActionKind.CANARY, 2, 0).as_dict(1)


def unchecked(workload: Workload) -> list[tuple[str, str]]:
    return []


def arrive(path: Path, *identities: str) -> None:
    with State(path, KINDS) as state:
        engine = Engine(state.fleet, [ToyOracle()], events=state.events)
        for identity in identities:
            event = Arrive(Tenant(identity, Workload("a", TOY_TRAFFIC), Sla(max_drop=0.5)))
            state.record(event, engine.handle(event), engine.fleet)


def tenants(path: Path) -> list[str]:
    with State(path, KINDS) as state:
        return sorted(tenant.id for tenant in state.fleet.all_tenants())


def needs_version_2(path: Path, content: str) -> None:
    """A state that decides by version 2 of its models, which is beside it."""
    with State(path, KINDS) as state:
        state.note("action 1", VERSION_2)
    folder = Path(f"{path}.models") / "2"
    folder.mkdir(parents=True)
    (folder / "model").write_text(content)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A state with one tenant, which had none when `copy.db` was made of it."""
    path = tmp_path / "s.db"
    arrive(path)
    back_up(path, tmp_path / "copy.db")
    arrive(path, "later")
    return path


def left_by_a_kill(path: Path) -> None:
    """Kill a process in the middle of a commit: pages of the file are overwritten, its journal has the former ones."""
    code = (
        "import os, sqlite3, sys\n"
        "file = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "file.execute('PRAGMA journal_mode = TRUNCATE')\n"
        "file.execute('PRAGMA cache_size = 1')\n"
        "file.execute('BEGIN IMMEDIATE')\n"
        "file.executemany('INSERT INTO log (event, answer) VALUES (?, ?)', [('x' * 900, '{}')] * 3000)\n"
        "print('begun', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        process.kill()
    assert Path(f"{path}-journal").stat().st_size > 0


def test_a_journal_of_the_former_state_never_comes_into_the_restored_one(saved: Path, tmp_path: Path) -> None:
    """The state that was killed in a commit stays as it was, with its journal; copied over it, the copy would break."""
    left_by_a_kill(saved)
    restore(saved, tmp_path / "copy.db", KINDS, unchecked)
    assert not Path(f"{saved}-journal").exists() and tenants(saved) == []
    assert tenants(tmp_path / "s.db.before-restore") == ["later"]


@pytest.mark.parametrize("step", range(6))
def test_a_restore_that_is_killed_at_any_step_is_completed_by_the_next_start(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Before it is prepared nothing has changed; afterwards the state is the copy, with the models of the copy."""
    needs_version_2(saved, "of the state")
    shutil.copytree(f"{saved}.models", tmp_path / "copy.db.models")
    (tmp_path / "copy.db.models" / "2" / "model").write_text("of the copy")
    left_by_a_kill(saved)
    calls, rename = [], Path.rename

    def killed(self: Path, target: Path) -> Path:
        if self.name.startswith("s.db"):
            calls.append(self.name)
            if len(calls) > step:
                raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", killed)
    try:
        restore(saved, tmp_path / "copy.db", KINDS, unchecked)
        assert step == 5
    except KeyboardInterrupt:
        pass
    monkeypatch.undo()
    assert tenants(saved) == [] and tenants(tmp_path / "s.db.before-restore") == ["later"]
    assert Path(f"{saved}.models/2/model").read_text() == "of the copy"
    assert Path(f"{saved}.before-restore.models/2/model").read_text() == "of the state"
    assert not list(tmp_path.glob("*restoring*"))


def test_a_restore_into_a_new_place_takes_the_models_along(saved: Path, tmp_path: Path) -> None:
    """A machine that was replaced has no state; a backup has the models that were beside its state."""
    needs_version_2(saved, "trained")
    back_up(saved, tmp_path / "second.db")
    restore(tmp_path / "new.db", tmp_path / "second.db", KINDS, unchecked)
    assert tenants(tmp_path / "new.db") == ["later"]
    assert (tmp_path / "new.db.models" / "2" / "model").read_text() == "trained"
    for path in (tmp_path / "second.db.models", Path(f"{saved}.models")):
        shutil.rmtree(path)
    with pytest.raises(InputError, match="version 2 of the models is missing"):
        restore(tmp_path / "other.db", tmp_path / "second.db", KINDS, unchecked)
    assert not list(tmp_path.glob("other.db*"))


def test_what_cannot_be_restored_is_refused_and_nothing_is_touched(saved: Path, tmp_path: Path) -> None:
    """A state in use, a copy that is none or of another fleet, and a former state that is still kept."""
    copy, broken = tmp_path / "copy.db", tmp_path / "broken.db"
    content = bytearray(copy.read_bytes())
    content[4096 * 4 : 4096 * 7] = bytes(4096 * 3)
    broken.write_bytes(content)
    with closing(sqlite3.connect(tmp_path / "wrong.db")) as file:
        file.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    before = saved.read_bytes()
    for path, message in (
        (tmp_path / "none.db", "none.db does not exist"),
        (saved, "is the state itself"),
        (broken, "is damaged|is not the state"),
        (tmp_path / "wrong.db", "wrong.db: lacks the tables|wrong.db: is not the state"),
    ):
        with pytest.raises(InputError, match=message):
            restore(saved, path, KINDS, unchecked)
    with pytest.raises(InputError, match="another fleet"):
        restore(saved, copy, catalogue((1, 1.0), (1, 1.0)).kinds, unchecked)
    with State(saved, KINDS), pytest.raises(InputError, match="in use by another process"):
        restore(saved, copy, KINDS, unchecked)
    assert saved.read_bytes() == before
    assert not list(tmp_path.glob("*before-restore*")) + list(tmp_path.glob("*restoring*"))
    restore(saved, copy, KINDS, unchecked)
    with pytest.raises(InputError, match="before-restore is kept from a former restore"):
        restore(saved, copy, KINDS, unchecked)


def test_a_copy_of_a_former_state_can_be_made_smaller_in_steps(saved: Path, tmp_path: Path) -> None:
    """Files of former versions could not; the copy has all events."""
    with closing(sqlite3.connect(saved, isolation_level=None)) as file:
        file.execute("PRAGMA auto_vacuum = NONE")
        file.execute("VACUUM")
    back_up(saved, tmp_path / "second.db")
    with closing(sqlite3.connect(tmp_path / "second.db")) as file:
        assert file.execute("PRAGMA auto_vacuum").fetchone() == (backup.BY_STEPS,)
        assert [json.loads(event)["id"] for (event,) in file.execute("SELECT event FROM log")] == ["later"]
