"""Asking an oracle, timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from placer.oracle import Company, Oracle

Progress = Callable[[int, int], None]
"""Told how much is done, of how much."""

BATCH = 256
"""Companies asked at once when somebody watches the progress."""


class TimedOracle(Oracle):
    """An oracle, and the seconds spent asking it."""

    def __init__(self, oracle: Oracle, progress: Progress | None = None) -> None:
        super().__init__()
        self.oracle = oracle
        self.progress = progress
        self.seconds = 0.0

    def throughput(self, companies: Sequence[Company]) -> list[tuple[float, ...]]:
        began = time.monotonic()
        if self.progress is None or len(companies) <= BATCH:
            answers = self.oracle.throughput(companies)
        else:
            answers = []
            for first in range(0, len(companies), BATCH):
                answers += self.oracle.throughput(companies[first : first + BATCH])
                self.progress(len(answers), len(companies))
        self.seconds += time.monotonic() - began
        return answers

    def _ask(self, companies: Sequence[Company]) -> Sequence[Sequence[float]]:
        return self.oracle.throughput(companies)
