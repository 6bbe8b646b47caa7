"""An oracle that measures the seconds that its queries take."""

from __future__ import annotations

import time
from collections.abc import Sequence

from placer.model.oracle import CoLocation, Oracle
from placer.progress import Advance

BATCH = 256
"""Co-locations of one query where progress is shown."""


class TimedOracle(Oracle):
    """Another oracle, and the seconds that its queries took."""

    def __init__(self, oracle: Oracle, progress: Advance | None = None) -> None:
        super().__init__()
        self.oracle = oracle
        self.progress = progress
        self.seconds = 0.0

    def throughput(self, co_locations: Sequence[CoLocation]) -> list[tuple[float, ...]]:
        began = time.monotonic()
        if self.progress is None or len(co_locations) <= BATCH:
            answers = self.oracle.throughput(co_locations)
        else:
            answers = []
            for first in range(0, len(co_locations), BATCH):
                answers += self.oracle.throughput(co_locations[first : first + BATCH])
                self.progress(len(answers), len(co_locations))
        self.seconds += time.monotonic() - began
        return answers

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        return self.oracle.throughput(co_locations)
