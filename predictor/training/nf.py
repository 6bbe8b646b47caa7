"""Training of one NF: queues and service times, solo throughput, memory model, and the execution pattern they fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from predictor.contention.accelerators import ServiceTime
from predictor.contention.composition import PATTERNS, PIPELINE, Pattern
from predictor.contention.memory import MemoryModel
from predictor.contention.nf_model import Execution, NfModel, kpps_without_contention, memory_runs
from predictor.contention.solo import SoloModel
from predictor.training.measurements import NfMeasurements, Runs
from predictor.training.queues import fit_uses

Array = NDArray[np.float64]

ROUNDS = 3
SOLO_ROWS = 3
BOUND = 0.97
"""Share of what an accelerator allows, below which it does not bind."""
MOSTLY_CORES = 0.6
"""Share of time on matches, above which the cores' share is too uncertain to learn from."""
AMBIGUOUS = 1.5
"""Times the misfit of the pattern that fits best, up to which another may be the true one."""
STRAY = 0.25
"""The most that one run counts when patterns are compared."""


def plausible_models(
    measured: NfMeasurements, benches: Mapping[str, ServiceTime], *, most_accesses: float, seed: int
) -> list[NfModel]:
    """A model per execution pattern that the measurements allow, the best fit first.

    Where an accelerator binds whatever the memory does, benches cannot distinguish a pipeline with slow requests from
    run to completion with quick ones. Real co-locations can: the two slow other NFs differently.

    Parameters
    ----------
    measured
        The measurements of the NF.
    benches
        Per accelerator, the service time of its bench.
    most_accesses
        Cache accesses per second that the other NFs of a NIC can exert on it.
    seed
        Seeds the boosting.
    """
    detect = measured.described and bool(measured.accelerators)
    models = [
        _fit(measured, pattern, benches, infer_queues=detect, most_accesses=most_accesses, seed=seed)
        for pattern in (PATTERNS if detect else (PIPELINE,))
    ]
    if not detect:
        return models
    misfits = [_pattern_error(measured, model) for model in models]
    evidence = {str(model.execution.pattern): round(misfit, 3) for model, misfit in zip(models, misfits, strict=True)}
    ranked = sorted(zip(misfits, models, strict=True), key=lambda one: one[0])
    return [replace(model, evidence=evidence) for misfit, model in ranked if misfit <= AMBIGUOUS * ranked[0][0]]


def _fit(
    measured: NfMeasurements,
    pattern: Pattern,
    benches: Mapping[str, ServiceTime],
    *,
    infer_queues: bool,
    most_accesses: float,
    seed: int,
) -> NfModel:
    """The NF under one pattern: queues and solo throughput in turn, since each depends on the other, then memory."""
    execution = Execution(pattern)
    solo = _fit_solo(measured, execution)
    if measured.accelerators:
        runs, base = measured.queues, None
        if not solo:
            memory = _fit_memory(measured, execution, None, most_accesses, seed)
            base = kpps_without_contention(memory, runs.traffic * [1.0, 1.0, 0.0])
        for _ in range(ROUNDS):
            uses = fit_uses(measured, pattern, base, benches, infer_queues=infer_queues)
            execution = Execution(pattern, uses)
            solo = _fit_solo(measured, execution)
            base = solo.kpps(runs.traffic) if solo else base
    memory = _fit_memory(measured, execution, solo, most_accesses, seed)
    return NfModel(measured.name, measured.cores, execution, solo, memory, measured.ranges)


def _fit_solo(measured: NfMeasurements, execution: Execution) -> SoloModel | None:
    """From the runs without competitors that no accelerator bound, without the time that matches took."""
    if len(measured.solo) < SOLO_ROWS:
        return None
    base, free = _cores_only(measured, execution, measured.alone)
    return SoloModel.fit(
        attributes=(0, 1) if measured.accelerators else (0, 1, 2),
        traffic=measured.alone.traffic[free],
        throughput=base[free],
        counters_at=measured.solo.traffic,
        counters=measured.solo.counters,
    )


def _fit_memory(
    measured: NfMeasurements, execution: Execution, solo: SoloModel | None, most_accesses: float, seed: int
) -> MemoryModel:
    """From the runs next to mem-bench, and the solo runs as runs next to nothing."""
    runs = measured.memory
    if solo:
        _, free = _cores_only(measured, execution, measured.solo)
        without_competitors = measured.solo[free & measured.new_solo]
        runs = Runs.joined([runs, replace(without_competitors, counters=0.0 * without_competitors.counters)])
    logarithm = np.log(_cores_only(measured, execution, runs)[0])
    if solo:
        logarithm = logarithm - np.log(solo.kpps(runs.traffic))
    inputs = memory_runs(runs.counters, runs.traffic, solo, with_matches=not execution.uses)
    return MemoryModel.fit(inputs, logarithm, most_accesses=most_accesses, seed=seed)


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


def _pattern_error(measured: NfMeasurements, model: NfModel) -> float:
    """Mean absolute percentage error next to accelerator benches, with and without memory contention."""
    queues, pattern = measured.queues, measured.pattern
    base = model.base_kpps(queues.traffic)
    predicted = [model.execution.throughput(base, queues.traffic, queues.service_ms, queues.rate_kpps)]
    if len(pattern):
        predicted.append(model.throughput(pattern.counters, pattern.traffic, pattern.service_ms, pattern.rate_kpps))
    throughput = np.concatenate([queues.throughput, pattern.throughput])
    errors = np.abs(np.concatenate(predicted) / throughput - 1)
    return float(100 * np.mean(np.minimum(errors, STRAY)))
