"""How the drops on single resources add up: by the NF's execution pattern (Tomur, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pattern = Literal["pipeline", "run-to-completion"]
PIPELINE: Pattern = "pipeline"
RUN_TO_COMPLETION: Pattern = "run-to-completion"
PATTERNS: tuple[Pattern, ...] = (PIPELINE, RUN_TO_COMPLETION)

Composition = Callable[[Array, Array], Array]
"""A function of solo throughput, any shape, and the drop on each resource alone, one more axis, to throughput."""


def pipeline(solo: Array, drops: Array) -> Array:
    """The slowest stage decides: T = T_solo - max(dT_k) (Tomur, equations 3 and 7)."""
    throughput: Array = solo - drops.max(axis=-1, initial=0.0)
    return throughput


def run_to_completion(solo: Array, drops: Array) -> Array:
    """Every added wait counts: T = 1 / (sum_k 1/(T_solo - dT_k) - (r-1)/T_solo) (Tomur, equations 4 and 7)."""
    times = 1.0 / (solo[..., None] - drops)
    throughput: Array = 1.0 / (times.sum(axis=-1) - (drops.shape[-1] - 1) / solo)
    return throughput


def summed(solo: Array, drops: Array) -> Array:
    """Strawman: every resource's loss is added (Tomur, section 2.2)."""
    throughput: Array = np.maximum(solo - drops.sum(axis=-1), 0.0)
    return throughput


COMPOSITIONS: dict[str, Composition] = {
    PIPELINE: pipeline,
    RUN_TO_COMPLETION: run_to_completion,
    "sum": summed,
    "min": pipeline,
}
"""By name. The strawman `min`, the lowest of the single-resource predictions, equals the composition of a pipeline."""


def drops_on_accelerators(pattern: Pattern, rate: Array, service_ms: Array, limited: Array) -> Array:
    """The drop that contention for each accelerator alone causes to an NF that runs at `rate` without it.

    A pipeline drops to the accelerator's limit. In run to completion every packet waits in the accelerator's queues,
    by the time that the limit implies beyond the service time.

    Parameters
    ----------
    pattern
        The execution pattern.
    rate
        Throughput (kpps) without that contention.
    service_ms, limited
        Service time, and throughput if only that accelerator limited it (inf where it is not used); as `rate`, with
        one more axis for the accelerators.
    """
    rate = rate[..., None]
    if pattern == PIPELINE:
        return np.maximum(rate - limited, 0.0)
    waits = np.where(np.isinf(limited), 0.0, np.maximum(1.0 / limited - service_ms, 0.0))
    drops: Array = rate - 1.0 / (1.0 / rate + waits)
    return drops
