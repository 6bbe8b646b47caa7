"""Runs of co-locations: counted, and confirmed where they are doubtful."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from profiler.runs.co_location_runs import CoLocationRuns
from profiler.runs.outliers import ConfirmedTestbed
from profiles import CoLocation, Workload
from tests.profiler.crowd_testbed import CrowdTestbed, crowd_description

HEAVY, LIGHT, MIDDLE = (Workload(name, crowd_description().traffic) for name in ("heavy", "light", "middle"))
PARTS: list[list[CoLocation]] = [[(LIGHT,), (MIDDLE,)], [(LIGHT, LIGHT), (LIGHT, MIDDLE), (MIDDLE, MIDDLE)]]


def runs_on(testbed: CrowdTestbed, most: int = 1000) -> tuple[CoLocationRuns, ConfirmedTestbed]:
    """No runs yet."""
    confirmed = ConfirmedTestbed(testbed, testbed)
    return CoLocationRuns(confirmed, known=LIGHT, most=most, seed=0, done=lambda _: None, crowded=0.75), confirmed


def off(nfs: tuple[str, ...], by: float, run: int = 0) -> Callable[[tuple[str, ...], int], float]:
    """One run of these NFs is wrong."""
    return lambda found, number: by if (found, number) == (nfs, run) else 1.0


def test_what_keeps_its_throughput_is_expected_from_the_parts() -> None:
    """Two light NFs slow a third one down by what each does."""
    runs, _ = runs_on(CrowdTestbed(noise=0.0))
    for level in PARTS:
        runs.measure(level)
    assert runs.expected((LIGHT, LIGHT, MIDDLE)) == pytest.approx(
        {LIGHT: 1000 / 1.12 / 1.02, MIDDLE: 1000 / 1.02 / 1.02}
    )
    assert runs.slowest((LIGHT, MIDDLE)) == pytest.approx(1 / 1.12)
    assert runs.slowest((LIGHT, HEAVY)) is None


@pytest.mark.parametrize(
    ("co_location", "by"),
    [
        ((LIGHT, MIDDLE), 1.3),  # faster than alone
        ((LIGHT, MIDDLE), 0.75),  # would exclude all co-locations with this pair
        ((LIGHT, LIGHT, MIDDLE), 1.3),  # faster than in a part
        ((LIGHT, LIGHT, MIDDLE), 0.8),  # slower than the parts lead to expect
    ],
)
def test_a_first_run_that_is_absurd_is_replaced_by_its_repeat(co_location: CoLocation, by: float) -> None:
    """The two repeats do not count, one of them is kept in place of the run."""
    testbed = CrowdTestbed(factor=off(tuple(one.nf for one in co_location), by))
    runs, confirmed = runs_on(testbed)
    for level in [*PARTS, *([[co_location]] if len(co_location) > 2 else [])]:
        runs.measure(level)
    assert 1000 - runs.left == len({*PARTS[0], *PARTS[1], co_location})
    assert confirmed.outliers == 1
    assert runs.count(co_location) == 1
    truth = [1.14 if one.nf == "light" else 1.04 for one in co_location] if len(co_location) > 2 else [1.12, 1.02]
    assert runs.throughputs(co_location)[0] == pytest.approx(1000 / np.array(truth), rel=0.01)


def test_a_first_run_that_its_repeat_confirms_stays() -> None:
    """A pair that loses much does so again: one repeat, none counted, none kept."""
    testbed = CrowdTestbed()
    runs, confirmed = runs_on(testbed)
    runs.measure([(HEAVY,), (LIGHT,)])
    runs.measure([(HEAVY, HEAVY)])
    assert runs.count((HEAVY, HEAVY)) == 1 and confirmed.outliers == 0
    assert testbed.requests.count((HEAVY, HEAVY)) == 2


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_a_repeat_that_disagrees_is_decided_by_another(wrong: int) -> None:
    """Whichever run of an NF alone is wrong, the kept ones agree, and as many are kept as were counted."""
    runs, confirmed = runs_on(CrowdTestbed(factor=off(("light",), 0.7, wrong)))
    for _ in range(5):
        runs.measure([(LIGHT,)])
    assert runs.count((LIGHT,)) == 5 and runs.left == 995
    assert abs(runs.throughputs((LIGHT,)) / 1000 - 1).max() < 0.05
    assert confirmed.outliers == 1


def test_no_more_runs_than_allowed_are_made() -> None:
    """The first ones of a request are run."""
    testbed = CrowdTestbed()
    runs, _ = runs_on(testbed, most=3)
    runs.measure([*PARTS[0], *PARTS[1]])
    assert testbed.requests == [*PARTS[0], PARTS[1][0]] and runs.left == 0


def test_every_run_has_noise_of_its_own() -> None:
    """Each repeat has another seed."""
    runs, _ = runs_on(CrowdTestbed())
    for _ in range(4):
        runs.measure([(LIGHT, MIDDLE)])
    assert len(set(runs.throughputs((LIGHT, MIDDLE))[:, 0])) == 4
