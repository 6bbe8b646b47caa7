"""Profiling of chains: the cycles of their NFs, each NF alone, then the chains; `chains.csv` and `cycles.json`."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from profiler.chains.plan import CHAIN_REPEATS, ChainRequest, MeasuredChain, measure_points, place_chains, point_runs
from profiler.cycles import cycle_runs, measure_part_of_cycles, offers_null
from profiler.export import refuse_taken, report_runs, write_best_efforts
from profiler.journal.journal import Journal
from profiler.journal.records import BENCHES_PART, CHAINS_PART
from profiler.profiling import journal_of
from profiler.runs.co_runs import SoloRepeats
from profiler.runs.outliers import known_workload
from profiler.steps import Done, Notify, Steps
from profiler.testbed import RunRefused, Testbed
from profiler.testbed_stack import TestbedStack
from profiles import ChainLoad, InputError, TestbedDescription
from profiles.aside import files_aside
from profiles.chain_table import CHAINS_FILE, read_chains, with_rows
from profiles.cycles import CYCLES_FILE, MeasuredCycles, write_cycles
from profiles.description import NULL_NF
from profiles.profile import write_json
from profiles.table import write_table

MOST_REPEATS = 1000


def profile_chains(
    testbed: Testbed,
    out: Path,
    request: ChainRequest,
    *,
    repeats: int = CHAIN_REPEATS,
    seed: int = 0,
    progress: Done | None = None,
    notify: Notify = lambda message: None,
) -> Path:
    """Profile chains of NFs on a testbed into the profile directory `out`.

    Every run is kept in the journal of `out` before the next begins, so the same call resumes what was interrupted.
    Chains and cycles that were measured into `out` before stay, and so do all other files. `testbed`: where the chains
    run. `out`: the profile directory. `request`: which chains. `repeats`: runs of each chain at each traffic and
    offered load. `seed`: of every choice, and of the noise of a simulated testbed. `progress`: called after every batch
    of runs. `notify`: called with messages: outliers, drift, what is left out, nothing left to do. Returns `out`.
    Raises `InputError` when the request cannot be carried out, the testbed runs no chains, or `out` holds something
    else. Raises `TestbedError` when the testbed fails; what it measured before is in the journal. Raises `OSError` when
    the journal or the directory cannot be written; what was measured before stays."""
    if seed < 0:
        raise InputError.of("--seed", f"{seed} is negative")
    if not 1 <= repeats <= MOST_REPEATS:
        raise InputError.of("--repeats", f"{repeats} is not between 1 and {MOST_REPEATS:,}")
    description = testbed.describe()
    refuse_taken(out, journal_of(out))
    chains = place_chains(request, description, seed)
    if not description.chains:
        _refuse_without_chains(testbed, chains[0].stages[0].nf)
    nfs = [
        nf for nf in description.fitting_nfs if any(nf.name == stage.nf for chain in chains for stage in chain.stages)
    ]
    if not offers_null(description):
        notify(f"{description.name} has no NF named {NULL_NF}: cycles per packet are not measured")
    with Journal(journal_of(out)) as journal:
        journal.claim(testbed, seed)
        known = len(journal)
        stack = TestbedStack(testbed, journal, seed, notify)
        stack.part(BENCHES_PART)  # drift counts from there
        steps = Steps(progress, cycle_runs(description, nfs) + point_runs(chains, repeats))
        cycles = measure_part_of_cycles(stack, journal, nfs, seed=seed, done=steps.done, notify=notify)
        journal.plan([(CHAINS_PART, "", point_runs(chains, repeats))])
        runs = SoloRepeats(stack.part(CHAINS_PART), known_workload(description), seed, steps.done)
        measured = measure_points(runs, chains, description, repeats=repeats, seed=seed)
        journal.finished(CHAINS_PART)
        if runs.refused:
            notify(f"{_count_text(runs)} do not run here; left out")
        best_efforts = report_runs(journal, notify, outliers=stack.outliers, known=known)
    write_chains(out, description, measured, cycles, best_efforts)
    return out


def write_chains(
    out: Path,
    description: TestbedDescription,
    measured: Sequence[MeasuredChain],
    cycles: MeasuredCycles | None,
    best_efforts: pd.DataFrame,
) -> None:
    """Write `chains.csv`, `cycles.json` and `best-effort.csv`; rows and NFs of other chains stay."""
    former = read_chains(out / CHAINS_FILE) if (out / CHAINS_FILE).exists() else None
    with files_aside(out) as aside:
        write_best_efforts(best_efforts, aside)
        write_json(description.model_dump(mode="json"), aside / "testbed.json")
        write_table(with_rows(former, (row for chain in measured for row in chain.rows())), aside / CHAINS_FILE)
        if cycles:
            write_cycles(cycles, description, aside / CYCLES_FILE, out / CYCLES_FILE)


def _refuse_without_chains(testbed: Testbed, nf: str) -> None:
    """InputError, with the testbed's reason, when it refuses even one NF as a chain."""
    description = testbed.describe()
    try:
        testbed.run([ChainLoad.of([nf], [[0]], description.traffic)])
    except RunRefused as error:
        hint = 'a testbed that runs chains describes `"chains": true` and knows workloads of kind "chain"'
        raise InputError.of("--testbed", f"{description.name} does not run chains: {error}", hint=hint) from None


def _count_text(runs: SoloRepeats) -> str:
    chains = dict.fromkeys((load.label, load.cores) for load in runs.refused if isinstance(load, ChainLoad))
    names = ", ".join(dict.fromkeys(label for label, _ in chains))
    return f"{len(chains)} placements of {names}"
