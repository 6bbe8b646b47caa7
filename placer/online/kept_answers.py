"""Answers that are kept by idempotency key, so that a request that is sent again gets the same answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

KEPT = 1_000_000
"""Answers that are kept, the newest; some GB of disk at most, and days of requests."""

TABLE = """
CREATE TABLE IF NOT EXISTS answers (
    number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, digest BLOB NOT NULL, status INTEGER NOT NULL,
    answer TEXT NOT NULL
)
"""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The HTTP status and the body of an answer, and the digest of the request.

    Parameters
    ----------
    version
        The number of the event, which the body ends with; None where it has none, or `answer` has it already.
    """

    digest: bytes
    status: int
    answer: str
    version: int | None = None

    @property
    def text(self) -> str:
        """The body."""
        return self.answer if self.version is None else f'{self.answer[:-1]}, "version": {self.version}}}'


class KeptAnswers:
    """Answers in a state file.

    Parameters
    ----------
    file
        The state.
    begin
        Begins a transaction, unless one has begun.
    """

    def __init__(self, file: sqlite3.Connection, begin: Callable[[], None]) -> None:
        self._file = file
        self._begin = begin
        file.execute(TABLE)

    def find(self, key: str) -> KeptAnswer | None:
        """The answer to the request with this key; None for a new key."""
        row = self._file.execute("SELECT digest, status, answer FROM answers WHERE name = ?", (key,)).fetchone()
        return None if row is None else KeptAnswer(*row)

    def keep(self, key: str, answer: KeptAnswer) -> None:
        """Keep an answer, with the event that is recorded in the same transaction; the oldest one is given up."""
        self._begin()
        added = self._file.execute(
            "INSERT INTO answers (name, digest, status, answer) VALUES (?, ?, ?, ?)",
            (key, answer.digest, answer.status, answer.text),
        )
        if added.lastrowid is not None and added.lastrowid > KEPT:
            self._file.execute("DELETE FROM answers WHERE number <= ?", (added.lastrowid - KEPT,))
