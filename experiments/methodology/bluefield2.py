"""FlowMonitor measured on a BlueField-2: published measurements that lie beside the project, where they do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.registry import Setting
from predictor import Models, train
from profiles import InputError
from profiles.profile import THROUGHPUT, NfProfile, Profile, read_profile
from profiles.table import read_table

Array = NDArray[np.float64]

NF = "FlowMonitor"
TESTBED = "BlueField-2"
SKIPPED = "BlueField-2: SKIPPED, the measurements are not there (see --measurements)."
FOLDS = 5


@dataclass(frozen=True)
class Measured:
    """What was measured of FlowMonitor.

    Parameters
    ----------
    profile
        Beside mem-bench, and its regex work alone.
    runs
        Beside mem-bench and regex-bench together; nothing is trained on them.
    """

    profile: Profile
    runs: pd.DataFrame

    @property
    def memory(self) -> pd.DataFrame:
        """The runs beside mem-bench alone."""
        return self.nf.memory

    @property
    def nf(self) -> NfProfile:
        """FlowMonitor's part of the profile."""
        return self.profile.nfs[NF]

    @cached_property
    def trained(self) -> Models:
        """Models of all but `runs`."""
        return train(self.profile)

    def folds(self, held: NDArray[np.bool_], rng: np.random.Generator) -> Iterator[tuple[Models, pd.DataFrame]]:
        """Models of all but a fifth of the `held` rows of `memory`, and those rows; five times."""
        rows = rng.permutation(np.flatnonzero(held))
        for out in np.array_split(rows, FOLDS):
            kept = self.memory[~self.memory.index.isin(out)].reset_index(drop=True)
            yield train(replace(self.profile, nfs={NF: replace(self.nf, memory=kept)})), self.memory.loc[out]


def measurements(setting: Setting) -> Measured | None:
    """The measurements; None, which is said, where they are not.

    Raises
    ------
    InputError
        When there are some, and something is wrong with them.
    """
    if not (setting.measurements / "validation.csv").is_file():
        setting.say(SKIPPED)
        return None
    return _read(setting.measurements)


@cache
def _read(directory: Path) -> Measured:
    runs, faults = read_table(directory / "validation.csv", [THROUGHPUT])
    if faults:
        raise InputError(faults)
    return Measured(read_profile(directory), runs)


def throughput(table: pd.DataFrame) -> Array:
    """Measured throughput (kpps)."""
    rates: Array = table[THROUGHPUT].to_numpy(dtype=np.float64)
    return rates
