"""The cores of an NF, without accelerators: fits of its solo and its memory model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predictor.contention.composition import PIPELINE, Pattern
from predictor.contention.execution import Execution
from predictor.contention.memory import MemoryModel, MemoryRuns
from predictor.contention.solo import SoloModel
from predictor.training.measurements import NfMeasurements, Runs

Array = NDArray[np.float64]

SOLO_ROWS = 3
BOUND = 0.97
"""Share of what an accelerator allows, below which it does not bind."""
MOSTLY_CORES = 0.6
"""Share of time on matches, above which the cores' share is too uncertain to learn from."""


def fit_solo(measured: NfMeasurements, execution: Execution) -> SoloModel | None:
    """From the runs without competitors that no accelerator bound, without the time that matches took.

    None when the profile holds too few solo runs.
    """
    if len(measured.solo) < SOLO_ROWS:
        return None
    traffic, throughput = cores_alone(measured, execution)
    return SoloModel.fit(
        attributes=(0, 1) if measured.accelerators else (0, 1, 2),
        traffic=traffic,
        throughput=throughput,
        counters_at=measured.solo.traffic,
        counters=measured.solo.counters,
    )


def cores_alone(measured: NfMeasurements, execution: Execution) -> tuple[Array, Array]:
    """What a solo model learns throughput from: traffic, shape (N, 3), and kpps of the cores, shape (N,)."""
    throughput, free = _cores_only(measured, execution, measured.alone)
    return measured.alone.traffic[free], throughput[free]


def base_without_solo_runs(
    measured: NfMeasurements, pattern: Pattern, *, most_accesses: float, seed: int
) -> Array | None:
    """Throughput (kpps) of the cores at the traffic of `measured.queues` where the profile holds too few solo runs.

    It is taken from a memory model with the least accelerator work; None where there are enough solo runs.
    """
    if len(measured.solo) >= SOLO_ROWS or not measured.accelerators:
        return None
    memory = fit_memory(measured, Execution(pattern), None, most_accesses=most_accesses, seed=seed)
    return memory.kpps(measured.queues.traffic * [1.0, 1.0, 0.0])


def fit_memory(
    measured: NfMeasurements, execution: Execution, solo: SoloModel | None, *, most_accesses: float, seed: int
) -> MemoryModel:
    """From the runs under memory contention, and with `solo` from the solo runs as runs without contention."""
    throughput, free = _cores_only(measured, execution, measured.memory)
    usable = ~measured.from_solo | (free if solo else False)
    runs, logarithm = measured.memory[usable], np.log(throughput[usable])
    own_wss = np.zeros(len(runs))
    if solo:
        logarithm = logarithm - np.log(solo.kpps(runs.traffic))
        own_wss = solo.working_set(runs.traffic)
    # where an NF uses accelerators, matches affect these and not its cores
    traffic = runs.traffic * [1.0, 1.0, 0.0 if execution.uses else 1.0]
    return MemoryModel.fit(
        MemoryRuns(runs.counters, traffic, own_wss), logarithm, most_accesses=most_accesses, seed=seed
    )


def _cores_only(measured: NfMeasurements, execution: Execution, runs: Runs) -> tuple[Array, NDArray[np.bool_]]:
    """What the cores would reach with the least accelerator work, and the runs from which this is known."""
    if not measured.accelerators or not len(runs):
        return runs.throughput, np.ones(len(runs), dtype=bool)
    fewest = runs.traffic[:, 2] == runs.traffic[:, 2].min()
    if not execution.uses:
        return runs.throughput, fewest
    if execution.pattern == PIPELINE:
        free = runs.throughput * execution.service_ms(runs.traffic).max(axis=1) < BOUND
        return runs.throughput, free if free.any() else fewest
    matching = execution.match_ms(runs.traffic) * runs.throughput
    free = matching < MOSTLY_CORES
    return runs.throughput / np.maximum(1.0 - matching, 1.0 - BOUND), free if free.any() else fewest
