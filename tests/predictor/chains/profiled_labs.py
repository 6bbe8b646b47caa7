"""Labs with fitted profiles, which several tests use."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from predictor.chains.profiled_nf import ProfiledNf
from tests.predictor.chains.labs import NFS, Lab

Profiles = dict[str, ProfiledNf]


@cache
def profiles_of(lab: Lab) -> Profiles:
    """The profile of each NF, with the regressor `smooth`: comparing all takes seconds."""
    profiles = {}
    for nf in NFS:
        table, names = lab.profile(nf, cpus=7), ("cpu", *lab.workload_names)
        at, measured = table[list(names)].to_numpy(np.float64), table[lab.measure].to_numpy()
        profiles[nf] = ProfiledNf.fit(nf, names, at, measured, regressor="smooth")
    return profiles


def columns(lab: Lab, table: pd.DataFrame) -> dict[str, np.ndarray]:
    """The configurations and workloads of a table of chain runs."""
    return {name: table[name].to_numpy(np.float64) for name in [*(f"{nf}.cpu" for nf in NFS), *lab.workload_names]}
