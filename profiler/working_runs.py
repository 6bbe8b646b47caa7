"""Runs of co-locations on testbeds that refuse some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiler.testbed import Run, RunRefused, Testbed, TestbedChanged, TestbedError
from profiles import CoLocation

MOST_FAILURES = 2
"""Co-locations that may fail one after another before the testbed itself is taken to have failed."""


class WorkingRuns:
    """Runs those of several co-locations that work on a testbed.

    Not every pair of NFs can share a testbed: co-locations that are refused, or fail at every attempt, are found by
    halving and left out.

    Parameters
    ----------
    testbed
        Where they run.
    done
        Called with the number of runs, after each batch.
    """

    def __init__(self, testbed: Testbed, done: Callable[[int], None]) -> None:
        self._testbed = testbed
        self._done = done
        self._failures = 0

    def run(self, co_locations: Sequence[CoLocation], seed: int) -> list[tuple[CoLocation, Run]]:
        """A run of each co-location that works, in order.

        Raises
        ------
        TestbedError
            When several co-locations fail one after another: then the testbed is at fault.
        """
        try:
            runs = list(zip(co_locations, self._testbed.run_many(co_locations, seed=seed), strict=True))
        except TestbedChanged:
            raise
        except TestbedError as error:
            if len(co_locations) > 1:
                half = len(co_locations) // 2
                return [*self.run(co_locations[:half], seed), *self.run(co_locations[half:], seed)]
            self._failures += not isinstance(error, RunRefused)
            if self._failures > MOST_FAILURES:
                raise
            return []
        self._failures = 0
        self._done(len(runs))
        return runs
