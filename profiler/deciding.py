"""Co-locations that decide a placement: NFs at default traffic that keep most of their throughput side by side.

Most NFs run at default traffic, and a placement packs them as long as each keeps its SLA, a share of its solo
throughput. So the co-locations that matter are those in which every NF keeps about three quarters or more, and they are
few: throughput does not rise with one more NF, so a co-location is run only if all its parts kept `KEPT_SHARE`.

1. *Alone*: each NF, repeated until the standard error is `SOLO_ERROR`, since every SLA is relative to it.
2. *Level by level*: all pairs, then each co-location of k + 1 NFs whose parts of k NFs all kept `KEPT_SHARE`, until no
   further one fits the cores. If a level has more than there are runs left, those expected to keep most are run.
3. *Repeats* of co-locations in which the slowest NF keeps `DECIDING_BAND`, with the runs that are left: where a repeat
   reduces most the variance of the mean, weighed by how likely an SLA of every NF allows the co-location."""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from profiler.runs.co_location_runs import CoLocationRuns, without
from profiler.runs.outliers import ConfirmedTestbed
from profiles import CoLocation, TestbedDescription, Workload

KEPT_SHARE = 0.75
DECIDING_BAND = (0.75, 0.97)  # the share that the slowest NF keeps where SLAs are decided
SOLO_ERROR = 0.001  # relative standard error of solo throughput
SOLO_RUNS = (6, 120)  # fewest and most solo runs of an NF
OTHERS_SOLO_RUNS = 3  # solo runs of an NF that is not profiled now, and only runs beside those that are
SOLO_SHARE = 0.25  # of all runs, at most for NFs alone
DECIDING_ROUNDS = 8  # the share of the co-locations that is repeated before it is decided again which are worth most
MOST_REPEATS = 40  # runs of one co-location: by then, errors are smaller than those of solo throughput


def measure_deciding(
    testbed: ConfirmedTestbed,
    targets: Collection[str],
    most: int,
    *,
    seed: int = 0,
    done: Callable[[int], None] = lambda runs: None,
    notify: Callable[[str], None] = lambda message: None,
) -> CoLocationRuns:
    """Run the co-locations at default traffic, with at least one of `targets`, that decide a placement. `testbed`:
    where they run. `targets`: the NFs that are profiled. `most`: the most runs; repeats of doubtful runs are not
    counted. `seed`: of the noise of a simulated testbed. `done`: called with the number of runs, after each batch.
    `notify`: called with a message about what was left out. Raises `TestbedError` when the testbed fails."""
    description = testbed.describe()
    workloads = sorted(Workload(nf.name, description.traffic) for nf in description.fitting_nfs)
    known = next(workload for workload in workloads if workload.nf in targets)
    runs = CoLocationRuns(testbed, known=known, most=most, seed=seed, done=done, crowded=KEPT_SHARE)
    alone: list[CoLocation] = [(workload,) for workload in workloads]
    _measure_alone(
        runs,
        [co_location for co_location in alone if _has(co_location, targets)],
        [co_location for co_location in alone if not _has(co_location, targets)],
    )
    level = [co_location for co_location in alone if runs.count(co_location)]
    refused = len(runs.refused)
    while runs.left > 0 and (level := _next_level(runs, level, workloads, targets, description)):
        runs.measure(level)
        level = [co_location for co_location in level if _keeps(runs, co_location)]
    if len(runs.refused) > refused:
        notify(f"{len(runs.refused) - refused} co-locations at default traffic do not run here; left out")
    _repeat(runs)
    return runs


def _measure_alone(runs: CoLocationRuns, targets: Sequence[CoLocation], others: Sequence[CoLocation]) -> None:
    """Each target until its solo throughput is known well enough, or the share of runs for it is spent; others a few
    times."""
    keep = runs.left - max(int(SOLO_SHARE * runs.left), len(targets))
    fewest, largest = SOLO_RUNS
    wanted = list(targets)
    while wanted and runs.left - len(wanted) >= max(keep, 0):
        runs.measure(wanted)
        wanted = [co_location for co_location in wanted if co_location not in runs.refused]
        if any(runs.count(co_location) < fewest for co_location in wanted):
            continue
        noise = {co_location: _noise(runs, co_location) for co_location in wanted}
        # the noise of few runs is itself uncertain: an NF is taken to have the usual noise at least
        usual = float(np.median(list(noise.values()))) if noise else 0.0
        wanted = [
            co_location
            for co_location in wanted
            if runs.count(co_location) < largest
            and max(noise[co_location], usual) / runs.count(co_location) ** 0.5 > SOLO_ERROR
        ]
    for _ in range(OTHERS_SOLO_RUNS):
        runs.measure(others)


def _noise(runs: CoLocationRuns, alone: CoLocation) -> float:
    kpps = runs.throughputs(alone)[:, 0]
    return float(kpps.std(ddof=1) / kpps.mean())


def _next_level(
    runs: CoLocationRuns,
    level: Sequence[CoLocation],
    workloads: Sequence[Workload],
    targets: Collection[str],
    description: TestbedDescription,
) -> list[CoLocation]:
    """Each co-location with one NF more than those of `level`, all of whose parts are in it; most promising first.
    Parts without a target are not run, and exclude nothing."""
    kept = set(level)
    cores = {nf.name: nf.cores for nf in description.nfs}

    def wanted(co_location: CoLocation) -> bool:
        if sum(cores[workload.nf] for workload in co_location) > description.nic.cores:
            return False
        parts = {without(co_location, (at,)) for at in range(len(co_location))}
        return _has(co_location, targets) and all(part in kept or not _has(part, targets) for part in parts)

    larger = {tuple(sorted((*co_location, other))) for co_location in level for other in workloads}
    return sorted(filter(wanted, larger), key=lambda one: (-_expect_slowest(runs, one), one))


def _has(co_location: CoLocation, targets: Collection[str]) -> bool:
    return any(workload.nf in targets for workload in co_location)


def _keeps(runs: CoLocationRuns, co_location: CoLocation) -> bool:
    slowest = runs.slowest(co_location)
    return slowest is not None and slowest >= KEPT_SHARE


def _expect_slowest(runs: CoLocationRuns, co_location: CoLocation) -> float:
    """The share of its solo throughput that the slowest NF is expected to keep, by the parts; 1 without any."""
    solo = {workload: runs.throughputs((workload,)).mean() for workload in co_location if runs.count((workload,))}
    shares = [float(kpps / solo[one]) for one, kpps in runs.expected(co_location).items() if one in solo]
    return min(shares, default=1.0)


def _repeat(runs: CoLocationRuns) -> None:
    """Spend what is left on the co-locations in which SLAs are decided, each time where a run is worth most. A run more
    reduces the variance of a mean of n by 1 / (n (n + 1)). The same runs follow from Neyman's allocation: as many as
    the square root of the weight."""
    low, high = DECIDING_BAND
    measured = {group: runs.slowest(group) for group in dict.fromkeys(one for one, _ in runs.all()) if len(group) > 1}
    weights = {one: _chance(runs, one) for one, share in measured.items() if share is not None and low <= share <= high}
    while runs.left > 0:
        worth = {
            one: weight / (runs.count(one) * (runs.count(one) + 1))
            for one, weight in weights.items()
            if one not in runs.refused and runs.count(one) < MOST_REPEATS
        }
        if not worth:
            return
        runs.measure(sorted(worth, key=lambda one: (-worth[one], one))[: max(len(worth) // DECIDING_ROUNDS, 1)])


def _chance(runs: CoLocationRuns, co_location: CoLocation) -> float:
    """The probability that SLAs drawn evenly up to a drop of 1 - `KEPT_SHARE` allow the co-location."""
    kept = runs.throughputs(co_location).mean(axis=0)
    solo = [runs.throughputs((workload,)).mean() for workload in co_location]
    return float(np.prod(np.clip((kept / solo - KEPT_SHARE) / (1.0 - KEPT_SHARE), 0.0, 1.0)))
