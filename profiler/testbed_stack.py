"""How a profiling uses its testbed: journaled, corrected for drift, and confirmed by repeats."""

from __future__ import annotations

from collections.abc import Callable

from profiler.drift import DriftReference, SteadyTestbed
from profiler.journal import Journal, JournaledTestbed
from profiler.outliers import ConfirmedTestbed
from profiler.purposes import REFERENCE, REPEATS, of_co_locations
from profiler.testbed import Testbed


class TestbedStack:
    """One testbed, wrapped anew for each part of a profiling.

    Parameters
    ----------
    testbed
        Where everything runs.
    journal
        Where its runs are kept.
    seed
        Of the reference runs.
    notify
        Called with messages about drift.
    """

    __test__ = False

    def __init__(self, testbed: Testbed, journal: Journal, seed: int, notify: Callable[[str], None]) -> None:
        self._testbed = testbed
        self._journal = journal
        self._seed = seed
        self._notify = notify
        self._first: DriftReference | None = None
        self._confirmed: list[ConfirmedTestbed] = []

    def part(self, purpose: str) -> ConfirmedTestbed:
        """The testbed for the benches, which come first, for one NF, or for co-locations of several."""
        prefix = purpose if of_co_locations(purpose) else ""
        readings = self._journaled(prefix + REFERENCE)
        reference = DriftReference(readings, self._seed, self._notify, since=self._first, part=purpose)
        self._first = self._first or reference
        first = SteadyTestbed(self._journaled(purpose), reference)
        repeats = SteadyTestbed(self._journaled(prefix + REPEATS), reference)
        self._confirmed.append(ConfirmedTestbed(first, repeats))
        return self._confirmed[-1]

    @property
    def outliers(self) -> int:
        """Runs that were not confirmed."""
        return sum(testbed.outliers for testbed in self._confirmed)

    def _journaled(self, purpose: str) -> Testbed:
        return JournaledTestbed(self._testbed, self._journal, purpose)
