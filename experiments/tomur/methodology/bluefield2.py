"""Published measurements of FlowMonitor on a BlueField-2, if their folder is present."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.registry import Setting
from experiments.tomur import HARDWARE_CARD
from predictor import Models, train
from profiles import InputError
from profiles.arrays import Floats
from profiles.profile import KPPS_COLUMN, NfProfile, Profile, read_profile
from profiles.table import read_table

MEASURED_NF = "FlowMonitor"
CARD_NAME = "BlueField-2"
MISSING_NOTE = f"{HARDWARE_CARD}: skipped, the measurements are missing (see --measurements)."
CROSS_VALIDATION_FOLDS = 5


@dataclass(frozen=True)
class FlowMonitorRuns:
    """The measured runs of FlowMonitor."""

    profile: Profile  # training runs: co-located with mem-bench, and with regex contention alone
    runs: pd.DataFrame  # validation runs, never trained on: co-located with mem-bench and regex-bench together

    @property
    def memory(self) -> pd.DataFrame:
        """The training runs with mem-bench alone."""
        return self.nf.memory

    @property
    def nf(self) -> NfProfile:
        """FlowMonitor's part of the profile."""
        return self.profile.nfs[MEASURED_NF]

    @cached_property
    def trained(self) -> Models:
        """Models trained on the profile."""
        return train(self.profile)

    def folds(self, held: NDArray[np.bool_], rng: np.random.Generator) -> Iterator[tuple[Models, pd.DataFrame]]:
        """Cross-validation in five folds over the rows of `memory` marked in `held`. Yields the models trained without
        one fold, and the rows of that fold."""
        rows = rng.permutation(np.flatnonzero(held))
        for out in np.array_split(rows, CROSS_VALIDATION_FOLDS):
            kept = self.memory[~self.memory.index.isin(out)].reset_index(drop=True)
            yield train(replace(self.profile, nfs={MEASURED_NF: replace(self.nf, memory=kept)})), self.memory.loc[out]


def measurements(setting: Setting) -> FlowMonitorRuns | None:
    """The measurements; None, after a message, when they are missing. Raises `InputError` when a file of them is
    invalid."""
    if not (setting.measurements / "validation.csv").is_file():
        setting.say(MISSING_NOTE)
        return None
    return _read(setting.measurements)


@cache
def _read(directory: Path) -> FlowMonitorRuns:
    runs, faults = read_table(directory / "validation.csv", [KPPS_COLUMN])
    if faults:
        raise InputError(faults)
    return FlowMonitorRuns(read_profile(directory), runs)


def throughput(table: pd.DataFrame) -> Floats:
    """FlowMonitorRuns throughput (kpps)."""
    rates: Floats = table[KPPS_COLUMN].to_numpy(dtype=np.float64)
    return rates
