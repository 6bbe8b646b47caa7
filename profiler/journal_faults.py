"""What goes wrong with a journal, as the user reads it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from profiles import InputError

NOT_A_JOURNAL = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}
PRIMARY_CODE = 0xFF


class JournalError(OSError):
    """A journal that cannot be opened, read or written now: no permission, a full disk, a broken device.

    The runs that it holds stay.
    """


@contextmanager
def journal_faults(path: Path, option: str | None = None) -> Iterator[None]:
    """Turn SQLite's errors about the journal `path` into InputError (it is no journal) or JournalError.

    `option` is the command-line option that named the journal, if one did.
    """
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & PRIMARY_CODE not in NOT_A_JOURNAL:
            raise JournalError(f"journal {path}: {error}") from None
        what = f"is not a journal: {error}"
        raise InputError.of(option or str(path), f"{path} {what}" if option else what) from None
