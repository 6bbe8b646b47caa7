"""Latency models of NFs on SmartNICs and servers, from `latency.csv` of each."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.gpu.prediction import ENOUGH_LATENCIES, LatencyErrors
from predictor.latency import LatencyLaw, NfLatency, irregularity, law_inputs
from predictor.registry import Warn
from predictor.regression.gaussian_process import GaussianProcess
from predictor.regression.significant import PARAMETER_BITS, significant
from profiles.arrays import Floats
from profiles.latency_table import CAPACITY_COLUMN, COMPETITORS_COLUMN, MEAN_COLUMN, P99_COLUMN, RATE_COLUMN
from profiles.profile import NfProfile

MOST_ROWS = 1500  # measurements that are fitted, of whole settings; of more, an even share
SETTING_COLUMNS = ["nf", "flows", "packet_size", "mtbr", COMPETITORS_COLUMN, CAPACITY_COLUMN]
NF_DIFFERENCE, MEASUREMENT_NOISE = 0.3, 0.1
"""By how much NFs are thought to differ before anything is known, and measurements scatter (natural logarithms)."""
SMOOTH_PENALTY = 1e-6
MEAN_OF_P99 = 1.0  # what stands for a mean that was not measured: nothing is known of it but that it is below the p99


def train_latencies(profiles: Mapping[str, NfProfile], warn: Warn) -> dict[str, NfLatency]:
    """The latency model of each NF of which latency was measured; empty if there is too little of all. `profiles`: by
    NF. `warn`: called with what is left out."""
    tables = [nf.latency.assign(nf=name) for name, nf in profiles.items() if len(nf.latency)]
    if not tables:
        return {}
    table = pd.concat(tables, ignore_index=True)
    if len(table) < ENOUGH_LATENCIES:
        warn(
            f"latency: {len(table)} measurements are too few, {ENOUGH_LATENCIES} are needed; no latency can be promised"
        )
        return {}
    table["setting"] = table.groupby(SETTING_COLUMNS, sort=False).ngroup()
    # Every so many-th setting, so that the process does not take hours.
    every = -(-len(table) // MOST_ROWS)
    table = table[table["setting"] % every == 0].reset_index(drop=True) if every > 1 else table
    settings = table["setting"].to_numpy(dtype=np.intp)
    nfs = table["nf"].to_numpy(dtype=str)
    used = (table[RATE_COLUMN] / table[CAPACITY_COLUMN]).to_numpy()
    inputs = law_inputs(used, table["flows"].to_numpy(), table["packet_size"].to_numpy())
    logs = np.log(np.stack([_irregularity(table, column, used) for column in (MEAN_COLUMN, P99_COLUMN)], axis=1))
    alike = dict.fromkeys(nfs.tolist(), np.zeros(2))
    fits = [_fit_process(inputs, logs, nfs, settings, start) for start in (alike, _factors(inputs, logs, nfs))]
    process, factors, errors = min(fits, key=lambda fit: float((fit[2] ** 2).sum()))
    firsts = table.drop_duplicates("setting")
    law = LatencyLaw(
        process,
        np.log(firsts[["flows", "packet_size"]].to_numpy()),
        pd.Series(used).groupby(settings, sort=False).max().to_numpy(),
        float(used.min()),
    )
    shared = LatencyErrors(significant(used, of=1.0), *(significant(errors[:, at], of=1.0) for at in (0, 1)))
    return {
        name: NfLatency(law, (float(np.exp(own[0])), float(np.exp(own[1]))), shared, len(set(settings[nfs == name])))
        for name, own in factors.items()
    }


def _fit_process(
    inputs: Floats, logs: Floats, nfs: NDArray[np.str_], settings: NDArray[np.intp], start: Mapping[str, Floats]
) -> tuple[GaussianProcess, dict[str, Floats], Floats]:
    """The process, the logarithms of NFs above it, and errors at left-out settings; `start` is a guess of the NFs."""
    without = logs - np.stack([start[name] for name in nfs.tolist()])
    process = GaussianProcess.fit(inputs, without, settings)
    left = process.left_out(without, settings)
    more = _shrink_means(nfs, settings, left)
    return (
        process,
        {name: significant(own + more[name], of=1.0) for name, own in start.items()},
        left - np.stack([more[name] for name in nfs.tolist()]),
    )


def _factors(inputs: Floats, logs: Floats, nfs: NDArray[np.str_]) -> dict[str, Floats]:
    """Per NF, about by how much its logarithms are above those of others at such inputs (ridge regression)."""
    used, flows, size = (inputs - inputs.mean(axis=0)).T
    flows = flows / max(float(flows.std()), 1.0)
    smooth = np.stack([np.ones(len(used)), used, used**2, flows, flows**2, flows**3, size, used * flows], axis=1)
    names = sorted(set(nfs.tolist()))
    design = np.hstack([smooth, (nfs[:, None] == np.array(names)[None, :]).astype(np.float64)])
    penalty = np.diag([SMOOTH_PENALTY] * smooth.shape[1] + [(MEASUREMENT_NOISE / NF_DIFFERENCE) ** 2] * len(names))
    found = significant(np.linalg.solve(design.T @ design + penalty, design.T @ logs), PARAMETER_BITS)
    return dict(zip(names, found[smooth.shape[1] :], strict=True))


def _irregularity(table: pd.DataFrame, column: str, used: Floats) -> Floats:
    latency = table[column].fillna(MEAN_OF_P99 * table[P99_COLUMN]).to_numpy()
    return irregularity(latency, table[CAPACITY_COLUMN].to_numpy(), used)


def _shrink_means(nfs: NDArray[np.str_], settings: NDArray[np.intp], left: Floats) -> dict[str, Floats]:
    """Per NF, the mean of what is left over; the fewer its settings, the nearer to nothing. Means of groups, shrunk by
    what their differences exceed chance (empirical Bayes, Morris 1983)."""
    of_settings: dict[str, list[Floats]] = {}
    for setting in np.unique(settings).tolist():
        rows = np.flatnonzero(settings == setting)
        of_settings.setdefault(str(nfs[rows[0]]), []).append(left[rows].mean(axis=0))
    means = {name: np.mean(found, axis=0) for name, found in of_settings.items()}
    within = float(np.mean([(result - means[name]) ** 2 for name, found in of_settings.items() for result in found]))
    by_chance = within * float(np.mean([1.0 / len(found) for found in of_settings.values()]))
    between = max(float(np.mean([mean**2 for mean in means.values()])) - by_chance, 0.0)
    shares = {
        name: between / (between + within / len(found)) if between else 0.0 for name, found in of_settings.items()
    }
    return {name: mean * shares[name] for name, mean in means.items()}
