"""Co-locations that do not run on a testbed are left out; a testbed that ended is not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from profiler.runs.outliers import WorkingRuns
from profiler.testbed import Run, Testbed, TestbedChanged, TestbedError
from profiles import CoLocation, Load, Workload
from tests.profiler.crowd_testbed import CrowdTestbed, crowd_description, names

HEAVY, LIGHT, MIDDLE = (Workload(name, crowd_description().traffic) for name in ("heavy", "light", "middle"))
ALL: list[CoLocation] = [(HEAVY, LIGHT), (HEAVY, MIDDLE), (LIGHT, LIGHT), (LIGHT, MIDDLE)]


class Failing(CrowdTestbed):
    """It fails with `error` whenever these NFs run together."""

    victims: tuple[str, ...] = ()
    error: type[TestbedError] = TestbedError

    def run(self, loads: Sequence[Load], *, noise: bool = True, seed: int | None = None) -> Run:
        if names(loads) == self.victims:
            raise self.error("testbed reports a throughput of 0 kpps")
        return super().run(loads, noise=noise, seed=seed)


def working(testbed: Testbed) -> list[CoLocation]:
    """The co-locations that work."""
    return [one for one, _ in WorkingRuns(testbed, LIGHT, lambda _: None).run(ALL, 0)]


@pytest.mark.parametrize("victim", ALL)
def test_what_always_fails_is_left_out(victim: CoLocation) -> None:
    """Also the last one; what is known to run is run to see whether the testbed still works."""
    testbed = Failing()
    testbed.victims = names(victim)
    assert working(testbed) == [one for one in ALL if one != victim]
    assert testbed.requests.count((LIGHT,)) == 1


def test_what_is_refused_is_left_out() -> None:
    """A testbed that answers works, so nothing else is run."""
    testbed = CrowdTestbed(refuses=lambda nfs: "heavy" in nfs)
    assert working(testbed) == ALL[2:]
    assert (LIGHT,) not in testbed.requests


@pytest.mark.parametrize("runs", range(len(ALL)))
def test_a_testbed_that_ends_is_an_error(runs: int) -> None:
    """Also before the last co-location, where only one fails."""
    with pytest.raises(TestbedError, match="crowd is broken"):
        working(CrowdTestbed(fails_after=runs))


def test_a_testbed_that_changed_is_an_error() -> None:
    """Halving would run the others on another testbed, or on one that drifted too far."""
    testbed = Failing()
    testbed.victims, testbed.error = names(ALL[0]), TestbedChanged
    with pytest.raises(TestbedChanged):
        working(testbed)
