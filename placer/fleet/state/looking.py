"""A look at a state that a service may be using: what it has learnt, and what an operator asks of its models."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from placer.fleet.learning.actions import ModelAction
from placer.fleet.learning.versions import ModelStore
from placer.fleet.state.file import reading
from placer.fleet.state.open_state import is_address, refuse_without_driver
from placer.fleet.state.saved_learning import ask
from placer.fleet.state.tables import Tables


class Look(Tables, Protocol):
    """An open state.

    `name`: how messages name it. `learns`: whether it can have measurements; a file of the former format has none.
    """

    name: str
    learns: bool

    def ask(self, action: ModelAction) -> None:
        """Ask for an action, which takes effect with the next measurement."""

    def models(self, predictor: str) -> ModelStore:
        """The versions of the models of this predictor."""


class FileLook:
    def __init__(self, path: Path, file: sqlite3.Connection) -> None:
        self.name = str(path)
        self.execute = file.execute
        self._path, self._file = path, file
        tables = {row for (row,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        self.learns = "readings" in tables

    def ask(self, action: ModelAction) -> None:
        ask(self._file, action)

    def models(self, predictor: str) -> ModelStore:
        return ModelStore.beside(self._path, predictor)


@contextmanager
def looking(where: str | Path) -> Iterator[Look]:
    """A look at the state in a file, or in a database where an address is given.

    Raises InputError when there is no such state, or it is damaged.
    """
    if is_address(where):
        refuse_without_driver()
        from placer.fleet.state.postgres.schema import looking_at

        with looking_at(str(where)) as look:
            yield look
        return
    with reading(Path(where)) as file:
        yield FileLook(Path(where), file)
