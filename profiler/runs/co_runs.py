"""Co-locations of NFs at random traffic: what benches cannot represent, and how large prediction errors are.

The models learn from benches, and benches only resemble NFs. A few runs of co-located NFs let training correct the
difference, and measure the error of predictions where they will be used. One run measures every NF in it, so few
suffice. Tomur does without them: appendix F uses benches only.

Each co-location is run twice: the difference gives the noise of a measurement, and reveals an outlier."""

from collections.abc import Callable, Sequence
from statistics import median
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from profiler.runs.outliers import REPEAT_SEEDS, ConfirmedTestbed, WorkingRuns
from profiler.sampling import at, traffic_ranges, traffic_with, whole
from profiler.testbed import Measurement, Run, difference_by_error
from profiles import CoLocation, Load, NfDescription, TestbedDescription, TrafficProfile, Workload

RUNS_PER_CO_LOCATION = 2
AGREEING_DIFFERENCE = 0.1  # relative difference of two runs of a co-location from which a third is made


def draw_co_locations(
    description: TestbedDescription, nf: NfDescription, count: int, rng: Generator
) -> list[CoLocation]:
    """`count` co-locations of `nf`, which comes first, with a random number of random NFs that fit. Traffic differs for
    each NF: half of the co-locations are even in the logarithm of the flows, half in their number, because either may
    be what users have. Those at default traffic are chosen by `deciding`."""
    fitting = [partner for partner in description.fitting_nfs if partner.cores + nf.cores <= description.nic.cores]
    if not fitting:
        return []
    return [_co_location(description, nf, fitting, index % 2 == 0, rng) for index in range(count)]


def _co_location(
    description: TestbedDescription,
    nf: NfDescription,
    partners: Sequence[NfDescription],
    by_magnitude: bool,
    rng: Generator,
) -> CoLocation:
    free = description.nic.cores - nf.cores
    most = free // min(partner.cores for partner in partners)
    members = [nf]
    for _ in range(int(rng.integers(1, most + 1))):
        one = partners[int(rng.integers(len(partners)))]
        if one.cores <= free:
            members.append(one)
            free -= one.cores
    return tuple(Workload(member.name, random_traffic(description, by_magnitude, rng)) for member in members)


def random_traffic(description: TestbedDescription, by_magnitude: bool, rng: Generator) -> TrafficProfile:
    """Random traffic, even in the logarithm of attributes with wide ranges, or in their values."""
    ranges = traffic_ranges(description)
    values = {}
    for name, position in zip(ranges, rng.random(len(ranges)).tolist(), strict=True):
        bounds = ranges[name]
        values[name] = (
            at(bounds, position) if by_magnitude else whole(bounds, float(np.interp(position, (0, 1), bounds)))
        )
    return traffic_with(description.traffic, values)


def agree(one: Run, other: Run) -> bool:
    """Whether two runs of a co-location agree on every NF."""
    return disagreement(one, other) <= AGREEING_DIFFERENCE


def disagreement(one: Run, other: Run) -> float:
    """The largest relative difference between two runs of a co-location."""
    pairs = zip(one.measurements, other.measurements, strict=True)
    return max(abs(a.throughput_kpps - b.throughput_kpps) / max(a.throughput_kpps, b.throughput_kpps) for a, b in pairs)


# Runs of one workload alone, several times; where the repeats disagree, a further run decides.


RUN_SEEDS = 1_000_003
FIRST_SEED = 50_000  # Co-locations of NFs have the seeds before

_Load = TypeVar("_Load", bound=Load)


class SoloRepeats:
    """Runs each load alone on a testbed, several times. `testbed`: where they run. `known`: what is sure to run there:
    it is run after a failure, so that a broken testbed is noticed. `seed`: of the noise of a simulated testbed; each
    repeat has its own. `done`: called with the number of runs, after each batch."""

    def __init__(self, testbed: ConfirmedTestbed, known: Workload, seed: int, done: Callable[[int], None]) -> None:
        self._testbed = testbed
        self._working = WorkingRuns(testbed.first, known, done)
        self._seed = seed
        self.refused: list[Load] = []  # loads that do not run on the testbed

    def measure(self, loads: Sequence[_Load], repeats: int, first: int = 0) -> dict[_Load, list[Measurement]]:
        """The measurements of each load that runs, in order of the repeats. Repeats that differ by more than 10 % are
        decided by a further run: it replaces the one that is farthest from the median of all. `first`: the number of
        the first repeat; repeats of equal numbers have equal noise on a simulated testbed. Raises `TestbedError` when
        the testbed fails."""
        measured: dict[_Load, list[Run]] = {load: [] for load in loads}
        for repeat in range(first, first + repeats):
            left = [(load,) for load in measured]
            for (load,), run in self._working.run(left, self._repeat_seed(repeat)):
                measured[load].append(run)
            gone = [load for load, found in measured.items() if len(found) <= repeat - first]
            self.refused += gone
            for load in gone:
                del measured[load]
        doubted = [(load,) for load, found in measured.items() if not _agree(found)]
        seed = self._repeat_seed(first) + REPEAT_SEEDS
        for (load,), run in zip(doubted, self._testbed.repeats.run_many(doubted, seed=seed), strict=True):
            self._replace_farthest(measured[load], run)
        return {load: [run.measurements[0] for run in found] for load, found in measured.items()}

    def _replace_farthest(self, found: list[Run], further: Run) -> None:
        middle = median(map(_kpps, [*found, further]))
        farthest = max(range(len(found)), key=lambda at: abs(_kpps(found[at]) - middle))
        if abs(_kpps(further) - middle) < abs(_kpps(found[farthest]) - middle):
            found[farthest] = further
            self._testbed.outliers += 1

    def _repeat_seed(self, repeat: int) -> int:
        return self._seed + RUN_SEEDS * (FIRST_SEED + repeat)


def _agree(found: Sequence[Run]) -> bool:
    """Whether the least and the most throughput differ by little, or by what the errors of best-effort runs explain."""
    least, most = min(found, key=_kpps), max(found, key=_kpps)
    return 1 - _kpps(least) / _kpps(most) <= max(
        AGREEING_DIFFERENCE, difference_by_error(least.best_effort, most.best_effort)
    )


def _kpps(run: Run) -> float:
    return run.measurements[0].throughput_kpps
