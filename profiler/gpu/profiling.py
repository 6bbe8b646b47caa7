"""Profiling of a GPU server: each NF alone, then sharers of an SM, then co-locations (Grus, sections V-A and VII-B)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator

from profiler.export import refuse_taken
from profiler.gpu.capacity import StageEstimate
from profiler.gpu.measuring import GpuCoLocation, GpuRuns, MeasuredGpuRun
from profiler.gpu.points import first_runs, slower, spread_runs
from profiler.gpu.tables import latency_table, nf_tables
from profiler.gpu.together import pairs, random_co_locations, several_sharers
from profiler.journal import Journal, JournaledTestbed
from profiler.profiling import journal_of
from profiler.purposes import SHARING, TOGETHER
from profiler.quota import refuse_large
from profiler.steps import Done, Notify, Steps
from profiler.testbed import Testbed, TestbedError
from profiles import InputError, NfDescription, TestbedDescription
from profiles.aside import files_aside
from profiles.faults import suggestion
from profiles.gpu_tables import GPU, LATENCY_FILE
from profiles.profile import write_json
from profiles.table import write_table

QUOTA = 160
"""Runs per NF."""
LEAST_QUOTA = 60
FIRST, LEAST_FIRST = 14, 8
"""Settings of the first runs, each run twice; fewer with a small quota."""
FIRST_SHARE = 0.25
"""Of the quota, at most for these runs."""
REPEATS = 2
SHARED, CO_LOCATED = 0.2, 0.25
"""Shares of the quota for sharers of an SM and for co-locations."""
ENOUGH = 6
"""Runs of an NF without which no others can be chosen."""


@dataclass(frozen=True)
class GpuQuota:
    """Runs of each part: of one NF alone, of sharers and of co-locations over all NFs."""

    alone: int
    shared: int
    co_located: int

    @classmethod
    def of(cls, runs: int, nfs: int) -> GpuQuota:
        """Of that many runs per NF."""
        shared, co_located = round(SHARED * runs) * nfs, round(CO_LOCATED * runs) * nfs
        return cls(runs - (shared + co_located) // nfs, shared, co_located)


def profile_gpu(
    testbed: Testbed,
    out: Path,
    *,
    nfs: Sequence[str] | None = None,
    quota: int | None = None,
    seed: int = 0,
    progress: Done | None = None,
    notify: Notify = lambda message: None,
) -> Path:
    """Profile NFs of a GPU server into the profile directory `out`.

    Every run is kept in the journal of `out` before the next begins, so the same call resumes what was interrupted.
    Other files in `out` stay.

    Parameters
    ----------
    testbed
        Where NFs run; its `nic.kind` is `gpu`.
    out
        The profile directory.
    nfs
        Their names; all when None.
    quota
        Runs per NF, everything counted; `QUOTA` when None. Further runs decide repeats that disagree.
    seed
        Of every choice, and of the noise of a simulated testbed.
    progress
        Called after every batch of runs.
    notify
        Called with messages: what is left out, nothing left to do.

    Returns
    -------
    out

    Raises
    ------
    InputError
        When an NF is not known, the quota too small, the seed negative, or `out` holds something else.
    TestbedError
        When the testbed fails or measures no latency; what it measured before is in the journal.
    OSError
        When the journal or the directory cannot be written; what was measured before stays.
    """
    refuse_large(quota)
    if quota is not None and quota < LEAST_QUOTA:
        raise InputError.of("--quota", f"{quota} is too small: a GPU server needs {LEAST_QUOTA} runs per NF")
    if seed < 0:
        raise InputError.of("--seed", f"{seed} is negative")
    description = testbed.describe()
    refuse_taken(out, journal_of(out))
    targets = _targets(description, nfs)
    shares = GpuQuota.of(quota or QUOTA, len(targets))
    with Journal(journal_of(out)) as journal:
        journal.claim(description, seed)
        known = len(journal)
        journal.plan([(nf.name, "", shares.alone) for nf in targets])
        journal.plan([(SHARING, "", shares.shared), (TOGETHER, "", shares.co_located)])
        steps = Steps(progress, len(targets) * shares.alone + shares.shared + shares.co_located)
        alone: dict[str, list[MeasuredGpuRun]] = {}
        for nf in targets:
            runs = GpuRuns(JournaledTestbed(testbed, journal, nf.name), seed, steps.done)
            alone[nf.name] = measure_alone(runs, description, nf.name, shares.alone, seed)
            journal.finished(nf.name)
        times = {nf: StageEstimate.of(measured) for nf, measured in alone.items()}
        runs = GpuRuns(JournaledTestbed(testbed, journal, SHARING), seed, steps.done)
        drawn = pairs(description, times)[: shares.shared]
        rng = np.random.default_rng([seed, 1])
        drawn += several_sharers(description, times, shares.shared - len(drawn), rng)
        # kernels are at their slowest beside sharers that are overloaded
        shared = runs.measure(drawn, 1)
        journal.finished(SHARING)
        runs = GpuRuns(JournaledTestbed(testbed, journal, TOGETHER), seed, steps.done)
        drawn = random_co_locations(description, times, shares.co_located, np.random.default_rng([seed, 2]))
        co_located = _carried(runs, drawn, notify)
        journal.finished(TOGETHER)
        if len(journal) == known:
            notify(f"nothing to measure: {known:,} runs are recorded")
    _write(out, description, targets, alone, shared, co_located)
    return out


def measure_alone(
    runs: GpuRuns, description: TestbedDescription, nf: str, quota: int, seed: int
) -> list[MeasuredGpuRun]:
    """The runs of one NF alone that the server carried, in the order in which they were chosen."""
    rng = np.random.default_rng([seed, zlib.crc32(nf.encode())])
    settings = min(FIRST, max(LEAST_FIRST, int(FIRST_SHARE * quota / REPEATS)))
    first = _first(runs, description, nf, settings)
    count = max(quota - runs.made, 0)
    # a first half over what the first runs lead to expect, the rest over what is known then
    measured = first
    for part in (count // 2, count - count // 2):
        measured = measured + _spread(runs, description, nf, measured, part, rng)
    return measured


def _first(runs: GpuRuns, description: TestbedDescription, nf: str, settings: int) -> list[MeasuredGpuRun]:
    chosen = runs.measure([(load,) for load in first_runs(description, nf, settings)], REPEATS)
    carried = [run for run in chosen if not run.overloaded]
    again = [(slower(load),) for (load,) in [*(run.loads for run in chosen if run.overloaded), *runs.left_out]]
    carried += [run for run in runs.measure(again, REPEATS) if not run.overloaded]
    if len(carried) < ENOUGH:
        raise TestbedError(f"testbed {description.name} carries {nf} at {len(carried)} of {len(chosen)} settings only")
    return carried


def _spread(
    runs: GpuRuns,
    description: TestbedDescription,
    nf: str,
    known: Sequence[MeasuredGpuRun],
    count: int,
    rng: Generator,
) -> list[MeasuredGpuRun]:
    loads = spread_runs(description, nf, StageEstimate.of(known), count, rng)
    return [run for run in runs.measure([(load,) for load in loads], 1) if not run.overloaded]


def _carried(runs: GpuRuns, co_locations: Sequence[GpuCoLocation], notify: Notify) -> list[MeasuredGpuRun]:
    measured = runs.measure(co_locations, 1)
    carried = [run for run in measured if not run.overloaded]
    if left_out := len(co_locations) - len(carried):
        notify(f"{left_out} of {len(co_locations)} co-locations are refused or overload the server; left out")
    return carried


def _write(
    out: Path,
    description: TestbedDescription,
    nfs: Sequence[NfDescription],
    alone: dict[str, list[MeasuredGpuRun]],
    shared: Sequence[MeasuredGpuRun],
    co_located: Sequence[MeasuredGpuRun],
) -> None:
    with files_aside(out) as aside:
        write_json(description.model_dump(mode="json"), aside / "testbed.json")
        for nf in nfs:
            nf_tables(nf, alone[nf.name], shared).write_files(aside / nf.name)
        runs = [run for found in alone.values() for run in found]
        write_table(latency_table([*runs, *co_located]), aside / LATENCY_FILE)


def _targets(description: TestbedDescription, names: Sequence[str] | None) -> list[NfDescription]:
    if description.nic.kind != GPU:
        raise InputError.of("--testbed", f"{description.name} is no GPU server: its nic.kind is {description.nic.kind}")
    known = {nf.name: nf for nf in description.fitting_nfs}
    if unknown := [name for name in names or () if name not in known]:
        hint = suggestion(unknown[0], known) if known else None
        raise InputError.of("--nf", f"the testbed has no {', '.join(unknown)}", hint=hint)
    wanted = [nf for name, nf in known.items() if not names or name in names]
    if not wanted:
        raise InputError.of("--testbed", f"{description.name} has no NFs, so there is nothing to profile")
    return wanted
