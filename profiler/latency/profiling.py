"""Profiling of latency: `latency.csv` of each NF (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from profiler.export import refuse_taken
from profiler.journal import Journal
from profiler.latency.measuring import TIMES, LatencyAtRate, LatencyRuns, setting_runs
from profiler.latency.settings import draw_settings, offers_rates
from profiler.profiling import journal_of, targets_of
from profiler.purposes import BENCHES, LATENCY
from profiler.steps import Done, Notify, Steps
from profiler.testbed import Testbed
from profiler.testbed_stack import TestbedStack
from profiles import InputError, NfDescription, TestbedDescription, Workload
from profiles.aside import files_aside
from profiles.latency_table import LATENCY as FILE
from profiles.latency_table import LATENCY_COLUMNS
from profiles.profile import write_json
from profiles.table import write_table

MOST_TIMES = 1000


def profile_latency(
    testbed: Testbed,
    out: Path,
    *,
    nfs: Sequence[str] | None = None,
    times: int = TIMES,
    seed: int = 0,
    progress: Done | None = None,
    notify: Notify = lambda message: None,
) -> Path:
    """Measure the latency of NFs at offered rates, alone and beside others, into the profile directory `out`.

    Every run is kept in the journal of `out` before the next begins, so the same call resumes what was interrupted.
    All other files of `out` stay.

    Parameters
    ----------
    testbed
        Where the NFs run; it offers packets at rates, to NFs or at least to chains.
    out
        The profile directory.
    nfs
        Their names; when None, all of the testbed that fit its NIC.
    times
        Runs at each rate.
    seed
        Of every choice, and of the noise of a simulated testbed.
    progress
        Called after every batch of runs.
    notify
        Called with messages: drift, what is left out, nothing left to do.

    Returns
    -------
    out

    Raises
    ------
    InputError
        When the testbed offers no rates, an NF is not known, or `out` holds something else.
    TestbedError
        When the testbed fails or measures no latency; what it measured before is in the journal.
    OSError
        When the journal or the directory cannot be written; what was measured before stays.
    """
    if seed < 0:
        raise InputError.of("--seed", f"{seed} is negative")
    if not 1 <= times <= MOST_TIMES:
        raise InputError.of("--repeats", f"{times} is not between 1 and {MOST_TIMES:,}")
    description = testbed.describe()
    if not offers_rates(description):
        hint = 'a testbed that does describes `"paced": true`, or at least `"chains": true`'
        raise InputError.of("--latency", f"{description.name} offers packets at no given rate", hint=hint)
    refuse_taken(out, journal_of(out))
    targets = _targets(description, nfs, notify)
    settings = {nf.name: draw_settings(description, nf, seed) for nf in targets}
    runs = sum(map(len, settings.values())) * setting_runs(times)
    with Journal(journal_of(out)) as journal:
        journal.claim(description, seed)
        known = len(journal)
        stack = TestbedStack(testbed, journal, seed, notify)
        stack.part(BENCHES)  # drift counts from there
        journal.plan([(LATENCY, "", runs)])
        steps = Steps(progress, runs)
        measuring = LatencyRuns(stack.part(LATENCY), _known(description), seed, steps.done)
        measured = {nf: measuring.measure(drawn, times) for nf, drawn in settings.items()}
        journal.finished(LATENCY)
        if measuring.refused:
            names = ", ".join(dict.fromkeys(one.workload.nf for one in measuring.refused))
            notify(f"{len(measuring.refused)} co-locations of {names} do not run here; left out")
        if measuring.overloaded:
            notify(f"{measuring.overloaded} offered rates were not carried; left out")
        if len(journal) == known:
            notify(f"nothing to measure: {known:,} runs are recorded")
    write_latencies(out, description, measured)
    return out


def write_latencies(out: Path, description: TestbedDescription, measured: dict[str, list[LatencyAtRate]]) -> None:
    """Write `testbed.json`, and `latency.csv` of each NF of which anything was measured; all other files stay."""
    with files_aside(out) as aside:
        write_json(description.model_dump(mode="json"), aside / "testbed.json")
        for nf, found in measured.items():
            if found:
                rows = pd.DataFrame([one.row() for one in found], columns=LATENCY_COLUMNS)
                write_table(rows, aside / nf / f"{FILE}.csv")


def _targets(description: TestbedDescription, names: Sequence[str] | None, notify: Notify) -> list[NfDescription]:
    targets = targets_of(description, names, notify)
    if description.paced:
        return targets
    several = [nf.name for nf in targets if nf.cores > 1]
    if several:
        notify(
            f"{', '.join(several)}: left out; {description.name} offers rates to chains, and these need several cores"
        )
    return [nf for nf in targets if nf.name not in several]


def _known(description: TestbedDescription) -> Workload:
    return Workload(description.fitting_nfs[0].name, description.traffic)
