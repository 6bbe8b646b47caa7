"""Further runs of co-locations on an existing profile, chosen in rounds by somebody who plans with the profile so far.
The runs are in the journal of the profile, and a killed call is resumed by the same call: the choices are repeated, and
what is in the journal is not run again. The directory changes when all is measured. A profiling that is continued
later, with more NFs or a larger quota, keeps these runs."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from profiler.export import (
    best_effort_table,
    next_run,
    read_recorded_runs,
    report_runs,
    round_kpps,
    with_co_locations,
    write_co_locations,
)
from profiler.journal.journal import Journal, RecordedRun
from profiler.journal.records import BENCHES_PART, FURTHER_PART, further
from profiler.profiling import journal_of
from profiler.runs.co_location_runs import FIRST_SEED, CoLocationRuns
from profiler.steps import Done, Notify
from profiler.testbed import Testbed
from profiler.testbed_stack import TestbedStack
from profiles import CoLocation, InputError, TestbedDescription, Workload
from profiles.profile import RUN_COLUMN, NfProfile, Profile, read_profile

FURTHER_ROUNDS = 5
FEWEST_RUNS = 2 * FURTHER_ROUNDS  # fewest further runs: planning takes longer than they do
LARGEST_COUNT = 10_000_000
SEEDS_EACH = 1000  # runs of one co-location with noise of their own, for each time that further runs are made

Choose = Callable[[Profile, int, Set[CoLocation]], Sequence[CoLocation]]
"""Gets the profile so far, the runs of the next round and the co-locations that do not run on the testbed; returns the
co-locations to run, sorted, one several times for repeats. None ends the rounds."""


def profile_further(
    testbed: Testbed,
    out: Path,
    choose: Choose,
    *,
    key: str,
    most: int,
    seed: int = 0,
    progress: Done | None = None,
    notify: Notify = lambda message: None,
) -> Profile:
    """Add up to `most` runs of co-locations to the profile directory `out`; returns the profile with them.

    `testbed`: the testbed of the profile. `out`: the profile directory; its journal is made where there is none.
    `choose`: chooses the runs of each round. It must choose the same for the same profile. `key`: what they are chosen
    for. A call with the key of an unfinished one resumes it. `most`: the most runs, over all NFs; repeats of doubtful
    runs are not counted. `seed`: of the noise of a simulated testbed. `progress`: called after every batch of runs.
    `notify`: called with messages: outliers, drift, what is left out. Raises `InputError` when `out` is no profile of
    this testbed, or `most` is too small or too large. Raises `TestbedError` when the testbed fails; what it measured
    before is in the journal. Raises `OSError` when the journal or the directory cannot be written."""
    refuse_quota(most)
    profile, description = _without_lines(read_profile(out)), testbed.describe()
    _refuse_other_testbed(profile, description, out)
    with Journal(journal_of(out)) as journal, threadpool_limits(1):
        journal.claim(testbed, seed)
        former = journal.kept()
        recorded = [run for nf in profile.nfs.values() for run in read_recorded_runs(nf)]
        if all_of_it := _unwritten(profile, recorded, former):  # a kill came between the last run and the directory
            notify(f"{out}: runs that were measured before are written; nothing was run")
            return _write(out, profile, all_of_it, best_effort_table(journal.best_efforts()))
        part, number = _begin(journal, key, most)
        stack = TestbedStack(testbed, journal, seed, notify)
        stack.part(BENCHES_PART)  # drift counts from there
        runs = CoLocationRuns(
            stack.part(part), known=_find_workload(profile, description), most=most, seed=seed,
            done=_Counted(progress, most).done, first=FIRST_SEED + SEEDS_EACH * number,
        )  # fmt: skip
        runs.remember(recorded)
        _measure(profile, runs, choose, most)
        if runs.refused:
            notify(f"{len(runs.refused)} co-locations do not run here; left out")
        measured = [(co_location, round_kpps(kpps)) for co_location, kpps in runs.all()]
        journal.finished(part, measured)
        best_efforts = report_runs(journal, notify, outliers=stack.outliers)
    return _write(out, profile, measured, best_efforts)


def with_runs(profile: Profile, runs: Iterable[RecordedRun]) -> Profile:
    """The profile with further runs of co-locations; equal runs are repeats."""
    former = list(profile.nfs.values())
    blank = [replace(nf, co_locations=nf.co_locations[:0], loads=nf.loads[:0]) for nf in former]
    nfs = [_append_rows(nf, one.co_locations) for nf, one in zip(former, with_co_locations(blank, runs), strict=True)]
    return replace(profile, nfs={nf.name: nf for nf in nfs})


def _append_rows(nf: NfProfile, new: pd.DataFrame) -> NfProfile:
    """The NF with further rows of co-locations, whose runs are numbered on."""
    if not len(new):
        return nf
    numbered = new.assign(**{RUN_COLUMN: (next_run(nf) + new[RUN_COLUMN].astype(int)).astype(str)})
    return replace(nf, co_locations=pd.concat([nf.co_locations, numbered], ignore_index=True))


def refuse_quota(most: int) -> None:
    """InputError when there are too few runs for the rounds, or more than a testbed makes in years."""
    if most < FEWEST_RUNS:
        raise InputError.of(
            "--quota", f"{most} runs are too few", hint=f"{FURTHER_ROUNDS} rounds need at least {FEWEST_RUNS}"
        )
    if most > LARGEST_COUNT:
        raise InputError.of("--quota", f"{most:,} runs are more than {LARGEST_COUNT:,}")


def _measure(profile: Profile, runs: CoLocationRuns, choose: Choose, most: int) -> None:
    """The rounds: in each, what is chosen by the profile so far."""
    for number in range(FURTHER_ROUNDS):
        end = most - most * (number + 1) // FURTHER_ROUNDS
        so_far = with_runs(profile, ((one, round_kpps(kpps)) for one, kpps in runs.all()))
        wanted = Counter(choose(so_far, runs.left - end, frozenset(runs.refused)))
        if not wanted:
            return
        while wanted and runs.left > end:
            runs.measure(list(wanted)[: runs.left - end])
            wanted = +Counter({one: times - 1 for one, times in wanted.items()})


def _begin(journal: Journal, key: str, most: int) -> tuple[str, int]:
    """The part of the journal for these runs, with its number: an unfinished one of the same key, or else a new one."""
    parts = {part: row for part, row in journal.parts().items() if part.startswith(FURTHER_PART)}
    unfinished = [part for part, (method, quota, done) in parts.items() if (method, quota, done) == (key, most, False)]
    number = 1 + (list(parts).index(unfinished[0]) if unfinished else len(parts))
    journal.plan([(further(number), key, most)])
    return further(number), number


def _unwritten(profile: Profile, recorded: Sequence[RecordedRun], kept: Sequence[RecordedRun]) -> list[RecordedRun]:
    """The runs that the journal keeps, if the directory lacks any."""
    there = set(recorded)
    return [run for run in kept if run not in there and any(workload.nf in profile.nfs for workload in run[0])]


def _write(out: Path, profile: Profile, runs: Sequence[RecordedRun], best_efforts: pd.DataFrame) -> Profile:
    written = with_runs(profile, runs)
    write_co_locations(out, [nf for name, nf in written.nfs.items() if nf is not profile.nfs[name]], best_efforts)
    return written


def _without_lines(profile: Profile) -> Profile:
    """The profile without the lines of each table of co-locations, which pandas copies with every part of it."""
    nfs = {}
    for name, nf in profile.nfs.items():
        nfs[name] = replace(nf, co_locations=nf.co_locations.copy())
        nfs[name].co_locations.attrs.clear()
    return replace(profile, nfs=nfs)


def _find_workload(profile: Profile, description: TestbedDescription) -> Workload:
    """An NF that ran on the testbed before."""
    return next(Workload(nf.name, description.traffic) for nf in description.fitting_nfs if nf.name in profile.nfs)


def _refuse_other_testbed(profile: Profile, description: TestbedDescription, out: Path) -> None:
    if profile.testbed != description:
        known = profile.testbed.name if profile.testbed else "a testbed that is not described"
        raise InputError.of("--testbed", f"is {description.name}, {out} is a profile of {known}")
    if not any(nf.name in profile.nfs for nf in description.fitting_nfs):
        raise InputError.of("--out", f"{out} has no NF of the testbed")


class _Counted:
    """Adds up runs for the progress callback."""

    def __init__(self, progress: Done | None, most: int) -> None:
        self._progress = progress
        self._most = most
        self._runs = 0

    def done(self, runs: int) -> None:
        self._runs += runs
        if self._progress:
            self._progress(self._runs, max(self._runs, self._most))
