"""One process at a time: a lock that the system releases when the process that holds it ends in any way."""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from profiles import InputError


@dataclass
class HeldLock:
    """A lock that is held; `release` may be called twice."""

    path: Path
    handle: int | None

    def release(self) -> None:
        """Release the lock and remove its file."""
        if self.handle is not None:
            self.path.unlink(missing_ok=True)
            os.close(self.handle)
        self.handle = None


def hold(journal: Path) -> HeldLock:
    """Hold the lock of a journal, which other processes may go on reading.

    Raises
    ------
    InputError
        When another process holds it.
    """
    path = journal.with_name(f"{journal.name}.lock")
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            if not isinstance(error, BlockingIOError):
                raise
            raise InputError.of(
                str(journal), "journal is in use", hint="another process may be profiling into the same --out"
            ) from None
        # the previous holder may have removed the file between opening and locking
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return HeldLock(path, handle)
        os.close(handle)
