"""A look at a state in PostgreSQL, without being an agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from psycopg import Connection

from placer.feedback.actions import ModelAction
from placer.feedback.model_store import ModelStore
from placer.online.saved_learning import next_asked, read_asked
from placer.online.shared.connection import Rows, in_transaction, opened, run, shown
from placer.online.shared.making import check_layout
from placer.online.shared.models import SharedModelStore


class SharedLook(Rows):
    """A look at a database; a `Look`."""

    learns = True

    def __init__(self, name: str, connection: Connection[Any], folder: Path) -> None:
        super().__init__(connection)
        self.name = name
        self._folder = folder

    def ask(self, action: ModelAction) -> None:
        """As of `Look`."""

        def write() -> None:
            run(self.connection, "SELECT number FROM head FOR UPDATE")  # two operators get two numbers
            name = next_asked(read_asked(self))
            run(self.connection, "INSERT INTO learnt VALUES (%s, %s)", name, json.dumps(action.as_dict(0)))

        in_transaction(self.connection, write)

    def models(self, predictor: str) -> ModelStore:
        """As of `Look`."""
        return SharedModelStore(self._folder, predictor, lambda *statement: run(self.connection, *statement))


@contextmanager
def looking_at(address: str) -> Iterator[SharedLook]:
    """A look at the state at an address.

    Raises
    ------
    InputError
        When the server cannot be reached, or has no state there.
    """
    with opened(address) as connection, TemporaryDirectory(prefix="placer-models-") as folder:
        check_layout(connection, shown(address))
        yield SharedLook(shown(address), connection, Path(folder))
