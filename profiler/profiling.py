"""Offline profiling of NFs, as in Tomur's appendix F.2: the benches alone, then each NF alone and in their company."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from profiler.accelerators import accelerator_co_locations, pattern_co_locations
from profiler.co_runs import SHARE, TIMES, draw_co_locations
from profiler.contention import ALONE, BenchLevels, alone_runs, measure_benches
from profiler.drift import Reference, SteadyTestbed
from profiler.export import export, memory_table, nf_profile, refuse_taken, refuse_unwritable
from profiler.journal import AGAIN, BENCHES, REFERENCE, Journal, JournaledTestbed
from profiler.memory_contention import MemoryContention, Neighbour, measure_neighbours
from profiler.methods import QUOTA, Method, find_method
from profiler.nf_runs import CoLocation, NfRuns, QuotaSpent, alone
from profiler.outliers import ConfirmedTestbed
from profiler.sampling import EvenPoints, at, corners, traffic_ranges, traffic_with
from profiler.testbed import Testbed
from profiles import InputError, NfDescription, TestbedDescription, TrafficProfile
from profiles.profile import NfProfile

SOLO_REPEATS = 3
LEAST = 20
"""Fewest runs left for a method to choose."""

DEFAULT_QUOTA = QUOTA

Suggest = Callable[[NfProfile, pd.DataFrame], NDArray[np.float64]]
"""Told what is measured of an NF so far and candidates (traffic and competitors' counters), tells of each how uncertain
a model is there: larger is less certain. The only way in which a model reaches profiling."""

Progress = Callable[[int, int], None]
"""Told how many runs are done, and how many there will be."""


def profile(
    testbed: Testbed,
    out: Path,
    *,
    nfs: Sequence[str] | None = None,
    method: str = "adaptive",
    quota: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    say: Callable[[str], None] = lambda _: None,
    suggest: Suggest | None = None,
) -> Path:
    """Profile NFs on a testbed into the profile directory `out`.

    Every run is kept in a journal beside `out` before the next begins: the same call resumes what was interrupted, and
    measures nothing when nothing is missing. The directory appears when all is measured, never in part. NFs profiled
    into it before stay. Doubtful runs are settled by repeats (`outliers`), drift is watched and corrected (`drift`);
    the journal keeps what was measured, the directory tells what it came to.

    Parameters
    ----------
    testbed
        Where NFs and benches run. What it has, it describes; nothing else is assumed of it.
    out
        The profile directory.
    nfs
        Their names; all that the testbed hosts when None.
    method
        Which runs teach the memory model: `adaptive`, `active`, `random` or `full`.
    quota
        Runs per NF, everything counted; the method's own when None.
    seed
        Of every choice, and of the noise of a simulated testbed.
    progress
        Told of every step.
    say
        Told what was found: outliers, drift, nothing left to do.
    suggest
        The model that the method `active` asks.

    Returns
    -------
    out

    Raises
    ------
    InputError
        When an NF or method is not known, the quota too small, the seed negative, or `out` taken by something else.
    TestbedError
        When the testbed fails; what it measured before is in the journal.
    """
    chosen = find_method(method)
    if seed < 0:
        raise InputError.of("--seed", f"{seed} is negative")
    description = testbed.describe()
    refuse_unwritable(description)
    refuse_taken(out, journal_of(out))
    targets = _targets(description, nfs)
    # matrices are small: more threads wait for each other, and round differently
    with Journal(journal_of(out)) as journal, threadpool_limits(1):
        journal.claim(description, seed)
        known = len(journal)
        journal.plan([nf.name for nf in targets], method, quota or chosen.quota)
        lab = _Lab(testbed, journal, seed, say)
        steps = _Steps(progress, alone_runs(description) + len(targets) * (quota or chosen.quota or 0))
        confirmed = lab.part(BENCHES)
        benches = measure_benches(confirmed, seed, steps.done)
        neighbours = measure_neighbours(confirmed, seed, steps.done)
        for nf in targets:
            beside = MemoryContention(benches.memory, description.nic.cores - nf.cores, np.random.default_rng(seed))
            _refuse_small(nf, quota or chosen.quota, len(_bench_co_locations(description, nf, benches, beside)))
        profiles = []
        for nf in targets:
            profiles.append(
                profile_nf(
                    lab.part(nf.name),
                    nf,
                    benches,
                    chosen,
                    neighbours,
                    quota=quota,
                    seed=seed,
                    done=steps.done,
                    say=say,
                    suggest=suggest,
                )
            )
            journal.finished(nf.name)
        if lab.outliers:
            say(f"{lab.outliers} runs did not come out again as they were first: replaced by runs that did")
        if len(journal) == known:
            say(f"nothing to measure: {known:,} runs are recorded")
    export(out, description, benches, profiles)
    return out


def journal_of(out: Path) -> Path:
    """Where the journal of a profile directory is: beside it, so that the directory holds nothing but the profile."""
    return out.with_name(f"{out.name}.journal.sqlite")


def merge(out: Path, other: Path) -> int:
    """Add the journal of another machine to that of `out`; returns how many runs were new.

    Raises
    ------
    InputError
        When the journals are not of one testbed and seed, or hold different answers to the same request.
    """
    with Journal(journal_of(out)) as journal:
        return journal.take_over(other)


def profile_nf(
    testbed: ConfirmedTestbed,
    nf: NfDescription,
    benches: BenchLevels,
    method: Method,
    neighbours: Sequence[Neighbour] = (),
    *,
    quota: int | None = None,
    seed: int = 0,
    done: Callable[[int], None] = lambda runs: None,
    say: Callable[[str], None] = lambda _: None,
    suggest: Suggest | None = None,
) -> NfProfile:
    """Everything that is measured of one NF: alone, beside each kind of bench and both, and beside NFs.

    Raises
    ------
    InputError
        When the quota is too small.
    TestbedError
        When the testbed fails.
    """
    description = testbed.describe()
    of_nf = [seed, zlib.crc32(nf.name.encode())]
    rng = np.random.default_rng(of_nf)
    memory = MemoryContention(benches.memory, description.nic.cores - nf.cores, rng, neighbours)
    quota = quota or method.quota
    pairs = _for_co_locations(quota or QUOTA) // TIMES
    real = draw_co_locations(description, nf, pairs, np.random.default_rng([*of_nf, 1]))
    beside_benches = None if quota is None else quota - TIMES * len(real)
    runs = NfRuns(testbed, nf, memory, quota=beside_benches, seed=seed, done=done, say=say)
    if suggest is not None:
        runs.uncertainty = lambda candidates: suggest(nf_profile(description, runs), memory_table(candidates))
    co_locations = _bench_co_locations(description, nf, benches, memory)
    _refuse_small(nf, quota, len(co_locations))
    runs.repeat((description.traffic, ALONE), SOLO_REPEATS)
    runs.measure(co_locations, sure=True)
    runs.measure(alone(_solo_traffics(description, int(min(runs.left, QUOTA) * method.alone), rng)))
    with contextlib.suppress(QuotaSpent):
        method.profile(runs, rng)
    runs.settle()
    runs.measure_co_locations(real)
    return nf_profile(description, runs)


def _bench_co_locations(
    description: TestbedDescription, nf: NfDescription, benches: BenchLevels, memory: MemoryContention
) -> list[CoLocation]:
    """What every method measures: beside accelerator benches, and beside both kinds."""
    return [
        *accelerator_co_locations(description, nf, benches),
        *pattern_co_locations(description, nf, benches, memory),
    ]


def _solo_traffics(description: TestbedDescription, count: int, rng: np.random.Generator) -> list[TrafficProfile]:
    """Each attribute from end to end with the others at default, then all of them evenly together."""
    ranges = traffic_ranges(description)
    names = tuple(ranges)
    ends = [{name: end} for name in names for end in (0.0, 1.0)] + corners(names)
    between = EvenPoints(len(names), rng).take(max(count - len(ends), 0)).tolist()
    spots = [*ends, *(dict(zip(names, point, strict=True)) for point in between)]
    return [
        traffic_with(description.traffic, {name: at(ranges[name], position) for name, position in spot.items()})
        for spot in spots[:count]
    ]


def _targets(description: TestbedDescription, names: Sequence[str] | None) -> list[NfDescription]:
    """The NFs to profile, in the order of the testbed."""
    known = {nf.name: nf for nf in description.nfs}
    wanted = names or list(known)
    if unknown := [name for name in wanted if name not in known]:
        raise InputError.of(
            "--nf", f"the testbed has no {', '.join(unknown)}", hint=f"it has {', '.join(known) or 'no NFs'}"
        )
    return [nf for name, nf in known.items() if name in wanted]


def _refuse_small(nf: NfDescription, quota: int | None, fixed: int) -> None:
    """InputError when the quota leaves a method too little beside the `fixed` runs; a share of it is for companies."""
    needed = fixed + SOLO_REPEATS + LEAST
    if quota is not None and quota - _for_co_locations(quota) < needed:
        least = next(enough for enough in count(needed) if enough - _for_co_locations(enough) >= needed)
        raise InputError.of("--quota", f"{quota} runs are too few for {nf.name}", hint=f"it needs at least {least}")


def _for_co_locations(quota: int) -> int:
    return int(quota * SHARE) // TIMES * TIMES


class _Lab:
    """The testbed as a profiling uses it: journaled, without drift, and confirmed where it matters."""

    def __init__(self, testbed: Testbed, journal: Journal, seed: int, say: Callable[[str], None]) -> None:
        self._testbed = testbed
        self._journal = journal
        self._seed = seed
        self._say = say
        self._first: Reference | None = None
        self._confirmed: list[ConfirmedTestbed] = []

    def part(self, purpose: str) -> ConfirmedTestbed:
        """The testbed for the benches, which come first, or for one NF."""
        readings = self._filed(REFERENCE)
        reference = Reference(readings, self._seed, self._say, since=self._first, part=purpose)
        self._first = self._first or reference
        self._confirmed.append(
            ConfirmedTestbed(
                SteadyTestbed(self._filed(purpose), reference), SteadyTestbed(self._filed(AGAIN), reference)
            )
        )
        return self._confirmed[-1]

    @property
    def outliers(self) -> int:
        """Runs that were not confirmed."""
        return sum(testbed.outliers for testbed in self._confirmed)

    def _filed(self, purpose: str) -> Testbed:
        return JournaledTestbed(self._testbed, self._journal, purpose)


class _Steps:
    """Adds up runs for the progress callback."""

    def __init__(self, progress: Progress | None, planned: int) -> None:
        self._progress = progress
        self._planned = planned
        self._runs = 0

    def done(self, runs: int) -> None:
        self._runs += runs
        if self._progress:
            self._progress(self._runs, max(self._runs, self._planned))
