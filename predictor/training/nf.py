"""Training of one NF: queues and service times, solo throughput, memory model, and the execution pattern they fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.contention.accelerators import ServiceTime
from predictor.contention.composition import PATTERNS, PIPELINE, Pattern
from predictor.contention.memory import MemoryModel
from predictor.contention.nf_model import Execution, NfModel
from predictor.contention.solo import SoloModel
from predictor.tables import contention_of, counters_of, traffic_of
from predictor.training.queues import QueueRuns, fit_uses
from profiles import ATTRIBUTES, COUNTERS, InputError
from profiles.profile import COUNTER_COLUMNS, FIRST_RATE, FIRST_SERVICE, THROUGHPUT, TRAFFIC_COLUMNS, NfProfile

Array = NDArray[np.float64]

ROUNDS = 3
MEMORY_ROWS = 10
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
    nf: NfProfile,
    benches: Mapping[str, ServiceTime],
    *,
    cores: int | None,
    most_accesses: float,
    seed: int,
    warn: Callable[[str], None],
) -> list[NfModel]:
    """What the measurements may tell of one NF: a model per execution pattern, those that fit, the best first.

    Where an accelerator binds whatever the memory does, benches do not tell a pipeline with slow requests from run to
    completion with quick ones; what either does to other NFs is not the same.

    Parameters
    ----------
    nf
        The measurements.
    benches
        Per accelerator, the service time of its bench.
    cores
        Dedicated cores, if known.
    most_accesses
        Cache accesses per second that the other NFs of a NIC can exert on it.
    seed
        Seeds the boosting.
    warn
        Told what had to be assumed.

    Raises
    ------
    InputError
        When there are too few measurements.
    """
    _refuse_few(nf)
    if nf.description is None:
        assumed = "one queue per accelerator and a pipeline are" if nf.uses else "no accelerator is"
        warn(f"{nf.name}: no nf.json, {assumed} assumed")
    detect = nf.description is not None and bool(nf.uses)
    models = [
        _fit(nf, pattern, benches, infer_queues=detect, cores=cores, most_accesses=most_accesses, seed=seed)
        for pattern in (PATTERNS if detect else (PIPELINE,))
    ]
    if not detect:
        return models
    misfits = [_pattern_error(nf, model) for model in models]
    evidence = {str(model.execution.pattern): round(misfit, 3) for model, misfit in zip(models, misfits, strict=True)}
    told = sorted(zip(misfits, models, strict=True), key=lambda one: one[0])
    return [replace(model, evidence=evidence) for misfit, model in told if misfit <= AMBIGUOUS * told[0][0]]


def _fit(
    nf: NfProfile,
    pattern: Pattern,
    benches: Mapping[str, ServiceTime],
    *,
    infer_queues: bool,
    cores: int | None,
    most_accesses: float,
    seed: int,
) -> NfModel:
    """The NF under one pattern: queues and solo throughput in turn, as each frees the other, then the memory model."""
    execution = Execution(pattern)
    solo = _fit_solo(nf, execution)
    memory = _fit_memory(nf, execution, None, most_accesses, seed) if nf.uses and not solo else None
    if nf.uses:
        runs, base = _queue_runs(nf), None
        if memory:
            unbound = NfModel(nf.name, cores, execution, None, memory, {})
            base = unbound.base_kpps(runs.traffic * [1.0, 1.0, 0.0])
        for _ in range(ROUNDS):
            uses = fit_uses(pattern, nf.uses, runs, base, benches, infer_queues=infer_queues)
            execution = Execution(pattern, uses)
            solo = _fit_solo(nf, execution)
            base = solo.kpps(runs.traffic) if solo else base
    memory = _fit_memory(nf, execution, solo, most_accesses, seed)
    return NfModel(nf.name, cores, execution, solo, memory, _measured(nf))


def _fit_solo(nf: NfProfile, execution: Execution) -> SoloModel | None:
    """From the runs without competitors that no accelerator bound, freed of the time that matches took."""
    if len(nf.solo) < SOLO_ROWS:
        return None
    alone = pd.concat([nf.solo, nf.memory[(nf.memory[COUNTER_COLUMNS] == 0).all(axis=1)]])
    alone = alone[[*TRAFFIC_COLUMNS, THROUGHPUT]].drop_duplicates()
    base, free = _cores_alone(nf, execution, alone)
    return SoloModel.fit(
        attributes=(0, 1) if nf.uses else (0, 1, 2),
        traffic=traffic_of(alone)[free],
        throughput=base[free],
        counters_at=traffic_of(nf.solo),
        counters=counters_of(nf.solo),
    )


def _fit_memory(
    nf: NfProfile, execution: Execution, solo: SoloModel | None, most_accesses: float, seed: int
) -> MemoryModel:
    """From the runs beside mem-bench, and the solo runs as runs beside nothing."""
    alone = nf.solo.assign(**dict.fromkeys(COUNTERS, 0.0)) if solo else nf.solo[:0]
    _, free = _cores_alone(nf, execution, alone)
    # a run in both files is one run: told twice, it would pass for a setting without noise
    table = pd.concat([nf.memory, alone[free]])[[*TRAFFIC_COLUMNS, *COUNTER_COLUMNS, THROUGHPUT]].drop_duplicates()
    traffic = traffic_of(table)
    logarithm = np.log(_cores_alone(nf, execution, table)[0])
    if solo:
        logarithm = logarithm - np.log(solo.kpps(traffic))
    # only how runs are laid out for the memory model is taken from this
    layout = NfModel(nf.name, None, execution, solo, None, {})  # type: ignore[arg-type]
    runs = layout.memory_runs(counters_of(table), traffic)
    return MemoryModel.fit(runs, logarithm, most_accesses=most_accesses, seed=seed)


def _cores_alone(nf: NfProfile, execution: Execution, table: pd.DataFrame) -> tuple[Array, NDArray[np.bool_]]:
    """What the cores would reach with the least accelerator work, and for which runs it can be told."""
    traffic, throughput = traffic_of(table), table[THROUGHPUT].to_numpy(dtype=np.float64)
    always = np.ones(len(table), dtype=bool)
    if not nf.uses or not len(table):
        return throughput, always
    fewest = traffic[:, 2] == traffic[:, 2].min()
    if not execution.uses:
        return throughput, fewest
    if execution.pattern == PIPELINE:
        free = throughput * execution.service_ms(traffic).max(axis=1) < BOUND
        return throughput, free if free.any() else fewest
    matching = execution.match_ms(traffic) * throughput
    free = matching < MOSTLY_CORES
    return throughput / np.maximum(1.0 - matching, 1.0 - BOUND), free if free.any() else fewest


def _queue_runs(nf: NfProfile) -> QueueRuns:
    """The runs beside accelerator benches, and the solo runs."""
    tables = [nf.accelerators[name] for name in nf.uses] + [nf.solo]
    traffic = np.concatenate([traffic_of(table) for table in tables])
    throughput = np.concatenate([table[THROUGHPUT].to_numpy(dtype=np.float64) for table in tables])
    service, rate = np.zeros((len(traffic), len(nf.uses))), np.full((len(traffic), len(nf.uses)), np.nan)
    start = 0
    for at, table in enumerate(tables[:-1]):
        service[start : start + len(table), at] = table[FIRST_SERVICE]
        rate[start : start + len(table), at] = table[FIRST_RATE]
        start += len(table)
    maybe_bare = (service == 0).all(axis=1) & (len(nf.solo) == 0)
    return QueueRuns(traffic, service, rate, throughput, maybe_bare)


def _pattern_error(nf: NfProfile, model: NfModel) -> float:
    """Mean absolute percentage error beside accelerator benches, with and without memory contention."""
    runs = _queue_runs(nf)
    base = model.base_kpps(runs.traffic)
    predicted = [model.execution.throughput(base, runs.traffic, runs.service_ms, runs.rate_kpps)]
    measured = [runs.throughput]
    if len(nf.pattern):
        contention = contention_of(nf.pattern, nf.uses)
        predicted.append(model.beside(counters_of(nf.pattern), traffic_of(nf.pattern), *contention))
        measured.append(nf.pattern[THROUGHPUT].to_numpy(dtype=np.float64))
    errors = np.abs(np.concatenate(predicted) / np.concatenate(measured) - 1)
    return float(100 * np.mean(np.minimum(errors, STRAY)))


def _measured(nf: NfProfile) -> dict[str, tuple[float, float]]:
    rows = np.concatenate(
        [traffic_of(table) for table in (nf.solo, nf.memory, *nf.accelerators.values()) if len(table)]
    )
    return {name: (float(rows[:, at].min()), float(rows[:, at].max())) for at, name in enumerate(ATTRIBUTES)}


def _refuse_few(nf: NfProfile) -> None:
    if len(nf.memory) < MEMORY_ROWS:
        raise InputError.of(
            f"{nf.name}/memory.csv",
            f"{len(nf.memory)} runs, at least {MEMORY_ROWS} are needed",
            hint="profile again with a larger --quota",
        )
    for accelerator in nf.uses:
        if not len(nf.accelerators.get(accelerator, ())):
            raise InputError.of(
                f"{nf.name}/{accelerator}.csv",
                "no runs, at least 1 is needed, and 2 beside the bench to tell the number of queues",
                hint=f"profile {nf.name} beside the bench of {accelerator}",
            )
