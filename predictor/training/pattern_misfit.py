"""How well each execution pattern fits the runs of an NF next to benches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from predictor.contention.nf_model import NfModel
from predictor.training.measurements import NfMeasurements

LARGEST_ERROR = 0.25
"""Larger relative errors of a run count as this, so that outliers do not decide."""


def misfits_next_to_benches(measured: NfMeasurements, models: Sequence[NfModel]) -> list[float]:
    """Mean absolute percentage error of each model next to accelerator benches, with and without memory contention."""
    queues, pattern = measured.queues, measured.pattern
    throughput = np.concatenate([queues.throughput, pattern.throughput])
    misfits = []
    for model in models:
        base = model.base_kpps(queues.traffic)
        predicted = [model.execution.throughput(base, queues.traffic, queues.service_ms, queues.rate_kpps)]
        if len(pattern):
            predicted.append(model.throughput(pattern.counters, pattern.traffic, pattern.service_ms, pattern.rate_kpps))
        errors = np.abs(np.concatenate(predicted) / throughput - 1)
        misfits.append(float(100 * np.mean(np.minimum(errors, LARGEST_ERROR))))
    return misfits
