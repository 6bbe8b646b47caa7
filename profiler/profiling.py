"""Offline profiling of NFs, as in Tomur's appendix F.2: the benches alone, then each NF alone and under contention.
Co-locations of NFs that decide a placement are measured after that (`deciding`), and cycles per packet on testbeds with
a null NF (`cycles`); the paper has no such steps."""

import contextlib
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from profiler import contention as contention_runs
from profiler.bench_points import accelerator_points, pattern_points
from profiler.cores_and_loads import FurtherCores, choose_counts
from profiler.cycles import measure_part_of_cycles
from profiler.deciding import measure_deciding
from profiler.export import (
    export,
    memory_table,
    nf_profile,
    refuse_taken,
    refuse_unwritable,
    report_runs,
    with_co_locations,
)
from profiler.journal.journal import Journal
from profiler.journal.records import BENCHES_PART, TOGETHER_PART
from profiler.methods import DEFAULT_QUOTA, Method, find_method
from profiler.quota import CORES_QUOTA, SOLO_REPEATS, QuotaShares, divide, divide_cores, refuse_large
from profiler.runs.co_runs import RUNS_PER_CO_LOCATION, draw_co_locations
from profiler.runs.nf_runs import NfRuns, QuotaSpent, solo_points
from profiler.runs.outliers import ConfirmedTestbed
from profiler.sampling import EvenPoints, at, corners, traffic_ranges, traffic_with
from profiler.steps import Done, Notify, Steps
from profiler.testbed import Testbed
from profiler.testbed_stack import TestbedStack
from profiles import InputError, NfDescription, TestbedDescription, TrafficProfile
from profiles.description import NULL_NF
from profiles.faults import suggestion
from profiles.profile import NfProfile

Suggest = Callable[[NfProfile, pd.DataFrame], NDArray[np.float64]]
"""Gets what is measured of an NF so far and candidates (traffic and competitors' counters); returns for each how
uncertain a model is there, larger is less certain. The only way in which a model reaches profiling."""


def profile(
    testbed: Testbed,
    out: Path,
    *,
    nfs: Sequence[str] | None = None,
    method: str = "adaptive",
    quota: int | None = None,
    cores: Sequence[int] = (),
    seed: int = 0,
    progress: Done | None = None,
    notify: Notify = lambda message: None,
    suggest: Suggest | None = None,
) -> Path:
    """Profile NFs on a testbed into the profile directory `out`.

    Every run is kept in a journal next to `out` before the next begins: the same call resumes what was interrupted, and
    measures nothing when nothing is missing. The directory is written when all is measured. NFs profiled into it before
    stay. Doubtful runs are decided by repeats (`outliers`), drift is measured and corrected (`testbed_stack`); the
    journal keeps the raw measurements, the directory the results. `testbed`: where NFs and benches run. All that is
    known of it is its description. `out`: the profile directory. `nfs`: their names; when None, all of the testbed that
    fit its NIC. `method`: the profiling method, which chooses the runs for the memory model: `adaptive`, `active`,
    `random` or `full`. `quota`: runs per NF, everything counted; when None, the method's own, or `CORES_QUOTA` with
    further numbers of cores. `cores`: the numbers of cores to measure NFs on besides their default; with any, they are
    measured at rates, too, where the testbed offers them. Two thirds of the quota are then used as all of it is
    otherwise. `seed`: of every choice, and of the noise of a simulated testbed. `progress`: called after every step.
    `notify`: called with messages: outliers, drift, what is left out, nothing left to do. `suggest`: the model that the
    method `active` queries. Returns `out`. Raises `InputError` when an NF or method is not known, an NF does not fit
    the NIC or no NF can be given such cores, the quota is too small, the seed negative, or `out` holds something else.
    Raises `TestbedError` when the testbed fails; what it measured before is in the journal. Raises `OSError` when the
    journal or the directory cannot be written; what was measured before stays."""
    chosen = find_method(method)
    refuse_large(quota)
    if seed < 0:
        raise InputError.of("--seed", f"{seed} is negative")
    description = testbed.describe()
    refuse_unwritable(description)
    refuse_taken(out, journal_of(out))
    targets = targets_of(description, nfs, notify)
    if quota is None and chosen.quota is not None:
        quota = CORES_QUOTA if cores else chosen.quota
    counts = choose_counts(description, targets, cores, notify) if cores else {}
    # matrices are small: more threads wait for each other, and round differently
    with Journal(journal_of(out)) as journal, threadpool_limits(1):
        journal.claim(testbed, seed)
        known = len(journal)
        stack = TestbedStack(testbed, journal, seed, notify)
        steps = Steps(progress, contention_runs.alone_runs(description) + len(targets) * (quota or 0))
        confirmed = stack.part(BENCHES_PART)
        benches = contention_runs.measure_benches(confirmed, seed, steps.done)
        neighbours = contention_runs.measure_neighbours(confirmed, seed, steps.done)
        shares = {}
        for nf in targets:
            memory = contention_runs.MemoryContention(
                benches.memory, description.nic.cores - nf.cores, np.random.default_rng(seed)
            )
            fixed = len(_bench_points(description, nf, benches, memory))
            shares[nf.name] = divide(nf.name, quota, fixed, further=bool(cores))
        together = sum(share.deciding for share in shares.values())
        journal.plan([*((nf, method, one.own) for nf, one in shares.items()), (TOGETHER_PART, "", together)])
        profiles = []
        for nf in targets:
            profiles.append(
                profile_nf(
                    stack.part(nf.name), nf, benches, chosen, neighbours, shares=shares[nf.name], seed=seed,
                    done=steps.done, notify=notify, suggest=suggest,
                )
            )  # fmt: skip
            journal.finished(nf.name)
        deciding = measure_deciding(
            stack.part(TOGETHER_PART), list(shares), together, seed=seed, done=steps.done, notify=notify
        )
        journal.finished(TOGETHER_PART)
        profiles = with_co_locations(profiles, [*deciding.all(), *journal.kept()])
        if cores:
            further = FurtherCores(stack, journal, benches, neighbours, counts, seed, steps.done, notify)
            core_shares = divide_cores(quota, paced=description.paced)
            profiles = further.measure(profiles, core_shares.cores, core_shares.loads)
        cycles = measure_part_of_cycles(stack, journal, targets, seed=seed, done=steps.done, notify=notify)
        best_efforts = report_runs(journal, notify, outliers=stack.outliers, known=known)
    export(out, description, benches, profiles, best_efforts, cycles)
    return out


def journal_of(out: Path) -> Path:
    """Where the journal of a profile directory is: next to it, so that the directory holds nothing but the profile.
    Raises `InputError` when nothing can be next to `out`."""
    if out.name in ("", ".."):  # `.` has no name
        out = out.resolve()
    if not out.name:
        raise InputError.of("--out", f"{out} cannot hold a profile: its journal is kept next to it")
    return out.with_name(f"{out.name}.journal.sqlite")


def merge(out: Path, other: Path) -> int:
    """Add the journal of another machine to that of `out`; returns how many runs were new. Raises `InputError` when the
    journals are not of one testbed and seed, or hold different answers to the same request."""
    with Journal(journal_of(out)) as journal:
        return journal.add_journal(other)


def profile_nf(
    testbed: ConfirmedTestbed,
    nf: NfDescription,
    benches: contention_runs.BenchLevels,
    method: Method,
    neighbours: Sequence[contention_runs.Neighbour] = (),
    *,
    shares: QuotaShares,
    seed: int = 0,
    done: Callable[[int], None] = lambda runs: None,
    notify: Notify = lambda message: None,
    suggest: Suggest | None = None,
) -> NfProfile:
    """Everything that is measured of one NF: alone, with each kind of bench and both, and at random with other NFs.
    Raises `TestbedError` when the testbed fails."""
    description = testbed.describe()
    of_nf = [seed, zlib.crc32(nf.name.encode())]
    rng = np.random.default_rng(of_nf)
    memory = contention_runs.MemoryContention(benches.memory, description.nic.cores - nf.cores, rng, neighbours)
    co_locations = draw_co_locations(
        description, nf, shares.random // RUNS_PER_CO_LOCATION, np.random.default_rng([*of_nf, 1])
    )
    for_benches = None if shares.own is None else shares.own - RUNS_PER_CO_LOCATION * len(co_locations)
    runs = NfRuns(testbed, nf, memory, quota=for_benches, seed=seed, done=done, notify=notify)
    if suggest is not None:
        runs.uncertainty = lambda candidates: suggest(nf_profile(description, runs), memory_table(candidates))
    points = _bench_points(description, nf, benches, memory)
    runs.repeat((description.traffic, contention_runs.NO_CONTENTION), SOLO_REPEATS)
    runs.measure(points, confirm=True)
    runs.measure(solo_points(_solo_traffics(description, int(min(runs.left, DEFAULT_QUOTA) * method.alone), rng)))
    with contextlib.suppress(QuotaSpent):
        method.profile(runs, rng)
    runs.replace_outliers()
    runs.measure_co_locations(co_locations)
    return nf_profile(description, runs)


def _bench_points(
    description: TestbedDescription,
    nf: NfDescription,
    benches: contention_runs.BenchLevels,
    memory: contention_runs.MemoryContention,
) -> list[contention_runs.OperatingPoint]:
    """What every method measures: with accelerator benches, and with both kinds."""
    return [*accelerator_points(description, nf, benches), *pattern_points(description, nf, benches, memory)]


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


def targets_of(description: TestbedDescription, names: Sequence[str] | None, notify: Notify) -> list[NfDescription]:
    """The NFs to profile, in the order of the testbed. Raises `InputError` when a name is not known, or no NF fits the
    NIC."""
    known = {nf.name: nf for nf in description.nfs if nf.name != NULL_NF}
    if unknown := [name for name in names or () if name not in known]:
        raise InputError.of(
            "--nf", f"the testbed has no {', '.join(unknown)}", hint=suggestion(unknown[0], known) if known else None
        )
    wanted = [nf for name, nf in known.items() if not names or name in names]
    if not wanted:
        raise InputError.of("--testbed", f"{description.name} has no NFs, so there is nothing to profile")
    cores = description.nic.cores
    too_large = [f"{nf.name} needs {nf.cores} cores, the NIC has {cores}" for nf in wanted if nf.cores > cores]
    if too_large and (names or len(too_large) == len(wanted)):
        raise InputError.of("--nf" if names else "--testbed", "; ".join(too_large))
    for group in too_large:
        notify(f"{group}: left out")
    return [nf for nf in wanted if nf.cores <= cores]
