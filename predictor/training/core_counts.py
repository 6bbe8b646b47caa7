"""Training of an NF on further numbers of cores, from few runs alone and beside benches."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import least_squares

from predictor.contention.core_counts import CoreScale
from predictor.contention.nf_model import NfModel
from predictor.regression.significant import significant
from predictor.training.measurements import Runs
from profiles.arrays import Floats

RUN_ERROR = 0.01
"""Standard deviation of the logarithm of a run around the model, by which runs weigh against what is assumed."""
SPEED_PRIOR = (0.3, 0.05, 0.05, 0.05)
"""How far the speed may differ from one that grows with the cores, and change with the traffic."""
EXPOSURE_PRIOR = 0.5
LEAST_SPREAD, UNKNOWN_SPREAD = 0.005, 0.05
"""Of throughput alone: the least that is taken for possible, and that of a number of cores that was run at most twice."""
SETTLED_BITS = 20


def fit_core_scale(model: NfModel, cores: int, solo: Runs, contended: Runs) -> CoreScale:
    """What changes where the NF has that many cores.

    Parameters
    ----------
    model
        Of the NF on its default number of cores.
    cores
        The other number.
    solo
        Runs alone on that number.
    contended
        Runs next to benches on that number.
    """
    assert model.cores is not None
    expected = np.array([math.log(cores / model.cores), 0.0, 0.0, 0.0])

    def logarithms(runs: Runs, speed: Floats, exposure: float) -> Floats:
        return np.log(runs.throughput / throughput_on(model, CoreScale(cores, speed, exposure, 0.0), runs))

    def errors(parameters: Floats) -> Floats:
        speed, exposure = parameters[:4], float(parameters[4])
        measured = [logarithms(runs, speed, exposure) for runs in (solo, contended) if len(runs)]
        assumed = [(speed - expected) / SPEED_PRIOR, [(exposure - 1.0) / EXPOSURE_PRIOR]]
        return np.concatenate([*(part / RUN_ERROR for part in measured), *assumed])

    start = np.array([*expected, 1.0])
    found = significant(least_squares(errors, start, loss="soft_l1").x, SETTLED_BITS, of=1.0)
    speed, exposure = found[:4], max(float(found[4]), 0.0)
    left = logarithms(solo, speed, exposure)
    freedom = max(len(left) - 2, 1)
    spread = math.sqrt(float((left**2).sum()) / freedom) if len(left) > 2 else UNKNOWN_SPREAD
    return CoreScale(cores, speed, exposure, max(float(significant(np.array([spread]))[0]), LEAST_SPREAD))


def throughput_on(model: NfModel, scale: CoreScale, runs: Runs) -> Floats:
    """What the model predicts of these runs on that number of cores (kpps), shape (N,)."""
    base = model.base_kpps(runs.traffic) * scale.factor(runs.traffic)
    shares = model.memory_share(model.memory_runs(runs.counters, runs.traffic), model.base_kpps(runs.traffic))
    base = base * shares**scale.exposure
    return model.execution.throughput(base, runs.traffic, runs.service_ms, runs.rate_kpps)
