"""Copies of a state, and a state that becomes such a copy again.

A restore is prepared beside the state, as `STATE.restoring`, and takes effect by renaming files. Who opens the
state first completes what was begun, so that a kill leaves either the former state, with its journal, or the copy.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from placer.fleet.learning.actions import ActionKind
from placer.fleet.learning.versions import ModelStore
from placer.fleet.protocol import Check
from placer.fleet.state.file import connect, lock_file, refusing
from placer.fleet.state.saved_fleet import check_tables, read_saved_fleet, upgrade
from placer.fleet.state.saved_learning import read_learnt, read_readings, recorded_actions
from placer.model.nic_kind import NicKind
from profiles import InputError
from profiles.aside import directory_aside, file_aside

JOURNALS = ("-journal", "-wal", "-shm")
"""Suffixes of the files that SQLite keeps beside a file; those of another file must never come beside it."""

BY_STEPS = 2  # the mode of SQLite in which a file can be made smaller in steps


def back_up(state: Path, copy: Path) -> None:
    """Copy a state as it is after its last event, with the versions of its models, also while a process uses it.

    Raises InputError when there is no such state, it is damaged, or `copy` exists.
    """
    models = _models_of(copy)
    for path in (copy, models):
        if path.exists():
            raise InputError.of("--backup", f"{path} exists already", hint="name a new file")
    if not state.is_file():
        raise InputError.of("--state", f"{state} does not exist", hint="name the state of a service")
    with file_aside(copy) as aside:
        _copy(state, aside)
        if _models_of(state).is_dir():
            _copy_models(_models_of(state), models)


def restore(state: Path, copy: Path, kinds: Sequence[NicKind], check: Check) -> None:
    """Replace a state by a copy of one; the former state stays as `STATE.before-restore`, its models beside it.

    `kinds`, `check`: as of `State`. The models of the copy are those beside it; where there are none, those beside the
    state.

    Raises InputError when the copy is no sound state of this fleet, a model of it is missing, another process uses the
    state, or a former restore is still kept. Nothing was changed then.
    """
    complete_restore(state)
    former = _beside(state, "before-restore")
    for path in (former, _models_of(former), *(Path(f"{former}{suffix}") for suffix in JOURNALS)):
        if path.exists():
            hint = "remove it or move it away, or leave out --restore to continue from the state"
            raise InputError.of("--restore", f"{path} is kept from a former restore", hint=hint)
    if not copy.is_file():
        raise InputError.of("--restore", f"{copy} does not exist", hint="name a file that --backup wrote")
    if state.exists() and copy.samefile(state):
        raise InputError.of("--restore", f"{copy} is the state itself", hint="name a copy of it")
    lock = None
    try:
        if state.exists():
            with refusing(state):
                lock = lock_file(state)
        prepared, models = _beside(state, "restoring"), _beside(state, "restoring.models")
        shutil.rmtree(models, ignore_errors=True)  # of a restore that was killed before it was prepared
        with file_aside(prepared) as aside:
            _copy(copy, aside)
            needed = _check_copy(aside, str(copy), kinds, check)
            source = next((path for path in (_models_of(copy), _models_of(state)) if path.is_dir()), None)
            if missing := [version for version in needed if source is None or not (source / str(version)).is_dir()]:
                message = f"version {missing[0]} of the models is missing beside {copy}"
                raise InputError.of("--restore", message, hint=f"give back the folder {_models_of(copy)}")
            if source is not None:
                _copy_models(source, models)
        complete_restore(state)
    finally:
        if lock is not None:
            os.close(lock)


def complete_restore(state: Path) -> None:
    """Complete a restore that was prepared; each step can be repeated after a kill."""
    prepared, former = _beside(state, "restoring"), _beside(state, "before-restore")
    if not prepared.exists():
        return
    for suffix in JOURNALS:
        _move(Path(f"{state}{suffix}"), Path(f"{former}{suffix}"))
    _move(state, former)
    if (models := _beside(state, "restoring.models")).exists():
        if not _models_of(former).exists():
            _move(_models_of(state), _models_of(former))
        _move(models, _models_of(state))
    prepared.rename(state)
    folder = os.open(state.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _copy(source: Path, target: Path) -> None:
    """Copy a state whole and sound, in a form that can be made smaller in steps; it is on disk afterwards."""
    mode = "rw" if os.access(source, os.W_OK) else "ro"
    with (
        refusing(source),
        closing(connect(source, mode)) as file,
        closing(sqlite3.connect(target, isolation_level=None)) as made,
    ):
        file.backup(made)
        made.execute("PRAGMA journal_mode = DELETE")
        check_tables(made, str(source))
        if made.execute("PRAGMA auto_vacuum").fetchone() != (BY_STEPS,):
            made.execute(f"PRAGMA auto_vacuum = {BY_STEPS}")
            made.execute("VACUUM")
    with target.open("rb") as written:
        os.fsync(written.fileno())


def _check_copy(file: Path, name: str, kinds: Sequence[NicKind], check: Check) -> Iterable[int]:
    """The versions of models that a state needs. Raises InputError when it makes no sense, or is of another fleet."""
    with refusing(file), closing(connect(file)) as made:
        upgrade(made)
        read_saved_fleet(made, name, kinds, check)
        for _ in read_readings(made, name, check):
            pass
        actions = recorded_actions(read_learnt(made, name)).values()
    return sorted({action.version for some in actions for action in some
                   if action.kind is ActionKind.CANARY and action.version is not None})  # fmt: skip


def _copy_models(source: Path, target: Path) -> None:
    """Copy versions, but nothing of a training under way."""
    with directory_aside(target) as aside:
        for version in source.iterdir():
            if version.name.isdigit():
                shutil.copytree(version, aside / version.name)


def _move(source: Path, target: Path) -> None:
    if source.exists():
        source.rename(target)


def _beside(state: Path, suffix: str) -> Path:
    return state.with_name(f"{state.name}.{suffix}")


def _models_of(state: Path) -> Path:
    """The folder of versions beside a state."""
    return ModelStore.beside(state, "").folder
