"""Training of one NF: queues and service times, solo throughput, memory model, and the execution pattern they fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictor.accelerators import ServiceTime
from predictor.composition import PATTERNS, PIPELINE, Pattern
from predictor.memory import MemoryModel
from predictor.nf_model import Execution, NfModel
from predictor.queues import QueueRuns, fit_uses
from predictor.solo import SoloModel
from predictor.tables import contention_of, traffic_of
from profiles import ATTRIBUTES, InputError, TestbedDescription
from profiles.profile import (
    COUNTER_COLUMNS,
    FIRST_RATE,
    FIRST_SERVICE,
    THROUGHPUT,
    NfProfile,
    service_column,
)

Array = NDArray[np.float64]
ROUNDS = 2
MEMORY_ROWS = 10
SOLO_ROWS = 3
BOUND = 0.97


def train_nf(
    nf: NfProfile, benches: dict[str, ServiceTime], *, cores: int | None, seed: int, warn: Callable[[str], None]
) -> NfModel:
    """What the measurements tell of one NF.

    Parameters
    ----------
    nf
        The measurements.
    benches
        Per accelerator, the service time of its bench.
    cores
        Dedicated cores, if known.
    seed
        Seeds the boosting.
    warn
        Told what had to be assumed.

    Raises
    ------
    InputError
        When there are too few measurements.
    """
    _enough(nf)
    if nf.description is None:
        assumed = "one queue per accelerator, pipeline" if nf.uses else "no accelerators"
        warn(f"{nf.name}: no nf.json, so {assumed} is assumed")
    detect = nf.description is not None and bool(nf.uses)
    fits = [_fit(nf, pattern, benches, detect, seed) for pattern in (PATTERNS if detect else (PIPELINE,))]
    chosen = min(fits, key=lambda fit: fit.error)
    return NfModel(
        nf.name,
        cores,
        chosen.execution,
        chosen.solo,
        chosen.memory,
        _measured(nf),
        {fit.execution.pattern: round(fit.error, 3) for fit in fits} if detect else {},
    )


@dataclass(frozen=True)
class _Fit:
    execution: Execution
    solo: SoloModel | None
    memory: MemoryModel
    error: float


def _fit(nf: NfProfile, pattern: Pattern, benches: dict[str, ServiceTime], infer_queues: bool, seed: int) -> _Fit:
    execution, solo, memory = (
        Execution(pattern),
        None,
        _fit_memory(nf, Execution(pattern), None, seed) if nf.uses else None,
    )
    for _ in range(ROUNDS if nf.uses else 1):
        solo = _fit_solo(nf, execution)
        if nf.uses:
            runs = _queue_runs(nf)
            base = solo.kpps(runs.traffic) if solo else np.exp(memory(np.zeros((len(runs.traffic), 7)), runs.traffic))  # type: ignore[misc]
            execution = Execution(pattern, fit_uses(pattern, nf.uses, runs, base, benches, infer_queues=infer_queues))
    solo = _fit_solo(nf, execution)
    memory = _fit_memory(nf, execution, solo, seed)
    fitted = _Fit(execution, solo, memory, 0.0)
    return _Fit(execution, solo, memory, _error(nf, fitted))


def _fit_solo(nf: NfProfile, execution: Execution) -> SoloModel | None:
    """From the solo runs that no accelerator bound, freed of the time that matches took."""
    if len(nf.solo) < SOLO_ROWS:
        return None
    traffic, throughput = traffic_of(nf.solo), nf.solo[THROUGHPUT].to_numpy()
    base, free = _cores_alone(execution, nf.uses, traffic, throughput)
    attributes = (0, 1) if nf.uses else (0, 1, 2)
    return SoloModel.fit(attributes, traffic[free], base[free], traffic, nf.solo[COUNTER_COLUMNS].to_numpy())


def _cores_alone(
    execution: Execution, uses: tuple[str, ...], traffic: Array, throughput: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """What the cores would reach with the least accelerator work, and for which runs it can be told."""
    if not uses:
        return throughput, np.ones(len(traffic), dtype=bool)
    if not execution.uses:
        return throughput, traffic[:, 2] == traffic[:, 2].min()
    if execution.pattern == PIPELINE:
        allowed = 1.0 / np.maximum(execution.service_ms(traffic).max(axis=1), 1e-12)
        free = throughput < BOUND * allowed
        return throughput, free if free.any() else traffic[:, 2] == traffic[:, 2].min()
    return 1.0 / np.maximum(1.0 / throughput - execution.match_ms(traffic), 1e-9), np.ones(len(traffic), dtype=bool)


def _fit_memory(nf: NfProfile, execution: Execution, solo: SoloModel | None, seed: int) -> MemoryModel:
    """From the runs beside mem-bench, and the solo runs as runs beside nothing."""
    tables = [nf.memory] + ([nf.solo.assign(**dict.fromkeys(COUNTER_COLUMNS, 0.0))] if solo else [])
    runs = pd.concat(tables, ignore_index=True)
    traffic, counters = traffic_of(runs), runs[COUNTER_COLUMNS].to_numpy()
    base, free = _cores_alone(execution, nf.uses, traffic, runs[THROUGHPUT].to_numpy())
    free |= np.arange(len(runs)) < len(nf.memory)
    traffic, counters, logarithm = traffic[free], counters[free], np.log(base[free])
    if solo:
        logarithm = logarithm - np.log(solo.kpps(traffic))
    if nf.uses:
        traffic = traffic * [1.0, 1.0, 0.0]
    return MemoryModel.fit(counters, traffic, logarithm, seed)


def _queue_runs(nf: NfProfile) -> QueueRuns:
    """The runs beside accelerator benches, and the solo runs."""
    parts = []
    for at, accelerator in enumerate(nf.uses):
        table = nf.accelerators[accelerator]
        parts.append((table, at))
    if len(nf.solo):
        parts.append((nf.solo, -1))
    traffic = np.concatenate([traffic_of(table) for table, _ in parts])
    throughput = np.concatenate([table[THROUGHPUT].to_numpy() for table, _ in parts])
    service = np.zeros((len(traffic), len(nf.uses)))
    rate = np.full((len(traffic), len(nf.uses)), np.nan)
    start = 0
    for table, at in parts:
        rows = slice(start, start + len(table))
        if at >= 0:
            service[rows, at] = table[FIRST_SERVICE]
            rate[rows, at] = table[FIRST_RATE]
        start += len(table)
    return QueueRuns(traffic, service, rate, throughput)


def _error(nf: NfProfile, fit: _Fit) -> float:
    """Mean absolute percentage error on runs beside several benches, else on those beside accelerator benches."""
    if not nf.uses:
        return 0.0
    if len(nf.pattern):
        traffic, throughput = traffic_of(nf.pattern), nf.pattern[THROUGHPUT].to_numpy()
        service, rate = contention_of(nf.pattern, nf.uses)
        counters = nf.pattern[COUNTER_COLUMNS].to_numpy()
    else:
        runs = _queue_runs(nf)
        traffic, throughput, service, rate = runs.traffic, runs.throughput, runs.service_ms, runs.rate_kpps
        counters = np.zeros((len(traffic), 7))
    model = NfModel(nf.name, None, fit.execution, fit.solo, fit.memory, {})
    base = model.base_kpps(traffic)
    share = model.memory_share(counters, traffic, base) if len(nf.pattern) else 1.0
    predicted = fit.execution.throughput(base * share, traffic, service, rate)
    return float(100 * np.mean(np.abs(predicted / throughput - 1)))


def _measured(nf: NfProfile) -> dict[str, tuple[float, float]]:
    rows = np.concatenate(
        [traffic_of(table) for table in (nf.solo, nf.memory, *nf.accelerators.values()) if len(table)]
    )
    return {name: (float(rows[:, at].min()), float(rows[:, at].max())) for at, name in enumerate(ATTRIBUTES)}


def _enough(nf: NfProfile) -> None:
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


def bench_services(benches: pd.DataFrame, testbed: TestbedDescription | None) -> dict[str, ServiceTime]:
    """Per accelerator, the service time of its bench over match rate and packet size, where benches were measured."""
    services: dict[str, ServiceTime] = {}
    accelerators = testbed.nic.accelerators if testbed else ()
    for accelerator in accelerators:
        column = service_column(accelerator)
        if column not in benches:
            continue
        rows = benches[benches[column] > 0]
        if len(rows) < 1:
            continue
        terms = ["constant"] + [name for name in ("mtbr", "packet_size") if name in rows and rows[name].nunique() > 1]
        design = np.column_stack([np.ones(len(rows)), *(rows[name].fillna(0.0) for name in terms[1:])])
        solution = np.linalg.lstsq(design, rows[column].to_numpy(dtype=np.float64), rcond=None)[0]
        services[accelerator] = ServiceTime(tuple(zip(terms, map(float, solution), strict=True)))
    return services
