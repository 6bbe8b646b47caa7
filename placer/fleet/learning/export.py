"""A profile of production: one that was measured on a testbed, with what production measured as runs beside NFs.

Where an NF drifted, what the testbed measured of it before is brought up to date by the factor that was found.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from placer.fleet.learning.corrections import MeasuredEntry
from predictor import Models
from profiles import Workload
from profiles.aside import directory_aside
from profiles.profile import (
    COUNTER_COLUMNS,
    FIRST_RATE,
    FIRST_SERVICE,
    KPPS_COLUMN,
    NF_COLUMN,
    RUN_COLUMN,
    TRAFFIC_COLUMNS,
    rate_column,
    service_column,
)
from profiles.table import write_table

CO_RUNS = "co-runs.csv"

SATURATED_SHARE = 0.98  # the share of an accelerator's time from which competitors are taken to saturate it

DriftOf = Callable[[str, bool], float]
"""By NF, and whether it is alone on a NIC: how many times the throughput it has that the profile has."""


def export_profile(base: Path, out: Path, entries: Iterable[MeasuredEntry], models: Models, drift: DriftOf) -> int:
    """Write the profile in `base`, with what was measured, as `out`; returns how many runs were added.

    `entries`: of one NIC model. `models`: of that NIC model: what is known of the competitors' contention. `drift`: how
    NFs changed since `base` was measured.
    """
    tables = co_runs_of(entries, models)
    with directory_aside(out) as aside:
        shutil.copytree(base, aside, dirs_exist_ok=True)
        for path in sorted(aside.glob("*/*.csv")):
            _bring_up_to_date(path, drift)
        for nf, table in tables.items():
            path = aside / nf / CO_RUNS
            before = pd.read_csv(path) if path.exists() else None
            path.parent.mkdir(exist_ok=True)
            write_table(table if before is None else pd.concat([before, table], ignore_index=True), path)
    return sum(map(len, tables.values()))


def co_runs_of(entries: Iterable[MeasuredEntry], models: Models) -> dict[str, pd.DataFrame]:
    """Per NF, a row for each co-location that it was measured in: traffic, contention, throughput.

    Rows are of saturated NFs on their default cores, so what was measured beside other loads is left out.
    """
    plain = [entry for entry in entries if all(one.is_plain for one in (entry.workload, *entry.competitors))]
    known = [(entry, kpps) for entry in plain if entry.workload.nf in models.nfs and (kpps := entry.kpps) is not None]
    workloads = sorted({each for one, _ in known for each in (one.workload, *one.competitors)})
    contention = _Contention(workloads, models)
    rows: dict[str, list[dict[str, float]]] = defaultdict(list)
    for one, kpps in known:
        if contention.is_known(one.competitors):
            row = {**one.workload.traffic.as_dict(), **contention.of(one.competitors), KPPS_COLUMN: kpps}
            rows[one.workload.nf].append(row)
    return {nf: _table(found, models.models[nf].accelerators) for nf, found in sorted(rows.items())}


class _Contention:
    """Sums over competitors."""

    def __init__(self, workloads: list[Workload], models: Models) -> None:
        self._number = {workload: at for at, workload in enumerate(workloads)}
        self._behaviour = models.solo_behaviour(workloads)

    def is_known(self, competitors: Iterable[Workload]) -> bool:
        """Whether the contention of all of them was measured."""
        return not np.isnan(self._behaviour.counters[[self._number[competitor] for competitor in competitors]]).any()

    def of(self, competitors: Iterable[Workload]) -> dict[str, float]:
        """Counters, and per accelerator the time of a turn and the rate: NaN where competitors saturate it."""
        rows, behaviour = [self._number[competitor] for competitor in competitors], self._behaviour
        found = dict(zip(COUNTER_COLUMNS, behaviour.counters[rows].sum(axis=0).tolist(), strict=True))
        turn = behaviour.turn_ms[rows].sum(axis=0)
        busy = (behaviour.service_ms[rows] * behaviour.kpps[rows, None]).sum(axis=0)
        for name, turn_ms, share in zip(behaviour.accelerators, turn.tolist(), busy.tolist(), strict=True):
            found[service_column(name)] = turn_ms
            found[rate_column(name)] = share / turn_ms if turn_ms > 0 and share < SATURATED_SHARE else float("nan")
        return found


def _table(rows: list[dict[str, float]], accelerators: Iterable[str]) -> pd.DataFrame:
    columns = [column for name in accelerators for column in (service_column(name), rate_column(name))]
    table = pd.DataFrame(rows)[[*TRAFFIC_COLUMNS, *COUNTER_COLUMNS, *columns, KPPS_COLUMN]]
    return table.rename(columns=dict(zip(columns[:2], (FIRST_SERVICE, FIRST_RATE), strict=False)))


def _bring_up_to_date(path: Path, drift: DriftOf) -> None:
    """Multiply the throughputs of a table by what the NFs changed since."""
    nf = path.parent.name
    names = pd.read_csv(path, nrows=0).columns
    if KPPS_COLUMN not in names or (NF_COLUMN not in names and drift(nf, True) == drift(nf, False) == 1.0):
        return
    table = pd.read_csv(path)
    factor = _factors(table, nf, drift)
    if (factor != 1.0).any():
        table[KPPS_COLUMN] *= factor
        write_table(table, path)


def _factors(table: pd.DataFrame, nf: str, drift: DriftOf) -> pd.Series[float]:
    if NF_COLUMN in table:
        together = table.groupby(RUN_COLUMN)[NF_COLUMN].transform("size")
        found = [drift(str(name), size == 1) for name, size in zip(table[NF_COLUMN], together, strict=True)]
    else:
        counters = [name for name in COUNTER_COLUMNS if name in table]
        is_alone = table[counters].eq(0).all(axis=1) if counters else pd.Series(False, index=table.index)
        found = [drift(nf, bool(alone)) for alone in is_alone]
    return pd.Series(found, index=table.index, dtype=float)
