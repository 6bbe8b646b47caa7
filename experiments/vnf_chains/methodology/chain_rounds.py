"""Chosen chains, measured in rounds: every chain once per round, in an order that is drawn. What changes on a machine
within minutes so is in the repeats of all chains alike. Nothing is corrected for drift."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pandas as pd

from profiler.chains.plan import MeasuredChain
from profiler.chains.profiling import write_chains
from profiler.export import refuse_taken, report_runs
from profiler.journal.journal import Journal, JournaledTestbed
from profiler.journal.records import CHAINS_PART, REPEATS_PART
from profiler.profiling import journal_of
from profiler.runs.co_runs import SoloRepeats
from profiler.runs.outliers import ConfirmedTestbed, known_workload
from profiler.steps import Notify
from profiler.testbed import Testbed
from profiles import ChainLoad
from profiles.chain_table import CHAINS_FILE, read_chains


class ChainRounds:
    """Measures chains on one testbed into one folder; every run is kept in its journal before the next begins.

    Use it as a context manager. `testbed`: where the chains run. `out`: the profile directory. `seed`: of the order of
    the runs, and of the noise of a simulated testbed. `notify`: called with messages: outliers, what does not run.
    Raises `InputError` when `out` holds something else, or runs of another testbed or seed."""

    def __init__(self, testbed: Testbed, out: Path, *, seed: int = 0, notify: Notify = lambda message: None) -> None:
        self.description = testbed.describe()
        self._out, self._seed, self._notify = out, seed, notify
        refuse_taken(out, journal_of(out))
        self._journal = Journal(journal_of(out))
        try:
            self._journal.claim(testbed, seed)
        except BaseException:
            self._journal.close()
            raise
        self._testbed = ConfirmedTestbed(
            JournaledTestbed(testbed, self._journal, CHAINS_PART),
            JournaledTestbed(testbed, self._journal, CHAINS_PART + REPEATS_PART),
        )
        self._measured: dict[ChainLoad, MeasuredChain] = {}

    def measure(self, loads: Sequence[ChainLoad], rounds: int) -> dict[ChainLoad, MeasuredChain]:
        """Each chain that runs here, with its repeats; what was measured before is not run again. Raises `TestbedError`
        when the testbed fails; what it measured before is in the journal."""
        order = np.random.default_rng([self._seed, len(loads)]).permutation(len(loads))
        drawn = [loads[at] for at in order]
        runs = SoloRepeats(self._testbed, known_workload(self.description), self._seed, lambda count: None)
        before = self._testbed.outliers
        found = runs.measure(drawn, rounds)
        if runs.refused:
            refused = dict.fromkeys(load.label for load in runs.refused if isinstance(load, ChainLoad))
            self._notify(f"{', '.join(refused)} do not run here; left out")
        if self._testbed.outliers > before:
            self._notify(f"{self._testbed.outliers - before} runs were outliers: a further run replaces each")
        measured = {load: MeasuredChain(load, found[load]) for load in loads if load in found}
        self._measured |= measured
        return measured

    def write(self) -> pd.DataFrame:
        """Write `chains.csv`, `testbed.json` and `best-effort.csv`; the table of chains, a row per run. Rows of other
        chains that were measured into the folder before stay."""
        best_efforts = report_runs(self._journal, self._notify)
        write_chains(self._out, self.description, list(self._measured.values()), None, best_efforts)
        return read_chains(self._out / CHAINS_FILE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.close()
