"""Progress of a profiling, and its messages."""

from collections.abc import Callable

Done = Callable[[int, int], None]  # called with the number of runs made, and how many there will be
Notify = Callable[[str], None]  # called with a message for the user


class Steps:
    """Adds up runs for the progress callback. `progress`: called with the number of runs made, and how many there will
    be. `planned`: how many there will be."""

    def __init__(self, progress: Done | None, planned: int) -> None:
        self._progress = progress
        self._planned = planned
        self._runs = 0

    def done(self, runs: int) -> None:
        """Count runs that were made."""
        self._runs += runs
        if self._progress:
            self._progress(self._runs, max(self._runs, self._planned))
