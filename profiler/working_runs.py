"""Runs of co-locations on testbeds that refuse some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from profiler.testbed import Run, RunRefused, Testbed, TestbedChanged, TestbedError
from profiles import Load, Workload

PROBE_SEEDS = 9_000_011
MOST_FAILURES = 2
"""Co-locations that may fail one after another before the testbed itself is taken to have failed."""

_CoLocation = TypeVar("_CoLocation", bound=tuple[Load, ...])


class WorkingRuns:
    """Runs those of several co-locations that work on a testbed.

    Not every pair of NFs can share a testbed: co-locations that are refused, or fail at every attempt, are found by
    halving and left out. After a failure, `known` is run, so that a testbed that ended is not taken for one on which
    the last co-locations do not work.

    Parameters
    ----------
    testbed
        Where they run.
    known
        What ran there before.
    done
        Called with the number of runs, after each batch.
    """

    def __init__(self, testbed: Testbed, known: Workload, done: Callable[[int], None]) -> None:
        self._testbed = testbed
        self._known = known
        self._done = done
        self._failures = self._probes = 0

    def run(self, co_locations: Sequence[_CoLocation], seed: int) -> list[tuple[_CoLocation, Run]]:
        """A run of each co-location that works, in order.

        Raises
        ------
        TestbedError
            When several co-locations fail one after another, or what ran before: then the testbed is at fault.
        """
        try:
            runs = list(zip(co_locations, self._testbed.run_many(co_locations, seed=seed), strict=True))
        except TestbedChanged:
            raise
        except TestbedError as error:
            if len(co_locations) > 1:
                half = len(co_locations) // 2
                return [*self.run(co_locations[:half], seed), *self.run(co_locations[half:], seed)]
            if not isinstance(error, RunRefused):
                self._failures += 1
                if self._failures > MOST_FAILURES:
                    raise
                self._probes += 1
                self._testbed.run([self._known], seed=seed + PROBE_SEEDS * self._probes)
            return []
        self._failures = 0
        self._done(len(runs))
        return runs
