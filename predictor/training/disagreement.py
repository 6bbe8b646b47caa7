"""Where a memory model is least certain: the disagreement of several, each trained on another half of the runs."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.contention.memory import MemoryModel, MemoryRuns
from profiles import ATTRIBUTES, COUNTERS
from profiles.profile import KPPS_COLUMN, NfProfile

ENSEMBLE_MEMBERS = 4


def disagreement(seed: int = 0) -> Callable[[NfProfile, pd.DataFrame], NDArray[np.float64]]:
    """A callback for the profiling method `active`. For candidates with traffic and competitors' counters, it returns
    the standard deviation of the logarithm of throughput among models of halves of an NF's runs under memory contention
    (Tomur, section 4.1.2)."""

    def uncertainty(nf: NfProfile, candidates: pd.DataFrame) -> NDArray[np.float64]:
        rng = np.random.default_rng([seed, len(nf.memory)])
        measured, possible = _runs(nf.memory), _runs(candidates)
        logarithm = np.log(nf.memory[KPPS_COLUMN].to_numpy(dtype=np.float64))
        predicted = []
        for member in range(ENSEMBLE_MEMBERS):
            half = rng.random(len(logarithm)) < 0.5
            predicted.append(MemoryModel.fit(measured[half], logarithm[half], seed=member)(possible))
        spread: NDArray[np.float64] = np.std(predicted, axis=0)
        return spread

    return uncertainty


def _runs(table: pd.DataFrame) -> MemoryRuns:
    counters, traffic = (table[list(names)].to_numpy(dtype=np.float64) for names in (COUNTERS, ATTRIBUTES))
    return MemoryRuns(counters, traffic, np.zeros(len(table)))
