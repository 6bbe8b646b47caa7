"""How much memory contention co-located NFs exert: the range on which memory models must be most accurate."""

from __future__ import annotations

import numpy as np

from predictor.contention.memory import access_rate
from predictor.training.measurements import Measurements

CO_LOCATIONS = 4000
LIKELY = 0.995


def most_accesses(measured: Measurements, nf: str, seed: int) -> float:
    """Cache accesses per second that all but the rarest co-locations of profiled NFs exert on `nf`.

    Co-locations are drawn evenly from the NFs and their measured solo runs, as many as the NIC's cores admit. Infinite
    when the profile does not describe the NIC, or holds no solo runs.
    """
    solo = {name: access_rate(one.solo.counters) for name, one in measured.nfs.items() if len(one.solo)}
    if measured.nic_cores is None or not solo:
        return float("inf")
    cores = measured.described_cores
    slots = (measured.nic_cores - cores.get(nf, 1)) // min(cores.get(name, 1) for name in solo)
    rng = np.random.default_rng(seed)
    names = list(solo)
    exerted = np.zeros(CO_LOCATIONS)
    for _ in range(slots):
        drawn = rng.integers(len(names), size=CO_LOCATIONS)
        for at, name in enumerate(names):
            rows = drawn == at
            exerted[rows] += rng.choice(solo[name], size=int(rows.sum()))
    return float(np.quantile(exerted, LIKELY))
