"""One process at a time: a lock that the system lets go of when its holder ends, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from profiles import InputError


@dataclass
class Held:
    """A lock that is held; `release` may be called twice."""

    path: Path
    handle: int | None

    def release(self) -> None:
        """Let go, and take the lock file away."""
        if self.handle is not None:
            self.path.unlink(missing_ok=True)
            os.close(self.handle)
        self.handle = None


def hold(journal: Path) -> Held:
    """Hold the lock beside a journal, which others may go on reading.

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
        except OSError:
            os.close(handle)
            raise InputError.of(
                str(journal), "journal is not free", hint="another profiling may be running into the same --out"
            ) from None
        # the holder before may have taken the file away between opening and locking
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return Held(path, handle)
        os.close(handle)
