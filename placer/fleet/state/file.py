"""A state file as SQLite opens it: locked by who writes it, or looked at beside that."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from placer.fleet.state.saved_fleet import check_tables
from profiles import InputError

BACKUP_SECONDS = 60.0  # how long an event waits for a backup that reads the file
DISK_FAILURES = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM")  # errors that are not the fault of the file


def lock_file(path: Path) -> int:
    """A descriptor that holds the lock of the file until it is closed.

    Raises InputError when another process holds it.
    """
    lock = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise InputError.of(str(path), "is in use by another process", hint="one service decides on a fleet") from None
    return lock


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """A connection to an existing file; text that is not UTF-8 is read as unprintable."""
    file = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=BACKUP_SECONDS,
        check_same_thread=False,
    )  # fmt: skip
    file.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    return file


@contextmanager
def reading(state: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a state that another process may be using.

    Raises InputError when there is no such state, or it is damaged.
    """
    if not state.is_file():
        raise InputError.of("--state", f"{state} does not exist")
    with refusing(state), closing(connect(state)) as file:
        check_tables(file, str(state))
        yield file


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Refuse a file that cannot be opened or that SQLite cannot read; a full disk stays a failure."""
    try:
        yield
    except UnicodeDecodeError as error:  # the message of SQLite quotes damaged text
        message = error.object.decode(errors="replace")
        raise InputError.of(str(path), f"is not the state of a fleet: {message}") from error
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "").startswith(DISK_FAILURES):
            raise
        raise InputError.of(str(path), f"is not the state of a fleet: {error}") from error
    except OSError as error:
        raise InputError.of(str(path), f"cannot be opened: {error.strerror}") from error
