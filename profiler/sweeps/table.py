"""`measurements.csv` of a sweep (docs/formats.md): a row per run."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from profiler.sweeps.measuring import MeasuredSweep
from profiler.sweeps.metrics import METRICS, cycles_per_ms
from profiler.sweeps.runs import Point, SweepRun
from profiler.sweeps.spec import RUN_COLUMNS, SweepSpec

EFFORT_COLUMNS = ("standard_error_pct", "disturbed_pct")
"""Only in tables with best-effort runs; empty in the rows of the others."""


def table_of(measured: MeasuredSweep, spec: SweepSpec) -> pd.DataFrame:
    """The runs, by setting of the later keys, then by the first key, then by repeat."""
    cycles = cycles_per_ms(measured.description, measured.description.nf(spec.workload.nf))
    rows = [_row(point, one, spec.measure.metrics, cycles) for point, found in measured.points.items() for one in found]
    columns = [*measured.keys, *RUN_COLUMNS, *spec.measure.metrics, *EFFORT_COLUMNS]
    table = pd.DataFrame(rows, columns=columns)
    table = table.astype(dict.fromkeys(RUN_COLUMNS, int))
    best_effort = any(one.run.best_effort for found in measured.points.values() for one in found)
    return table if best_effort else table.drop(columns=list(EFFORT_COLUMNS))


def _row(point: Point, one: SweepRun, metrics: Sequence[str], cycles: float) -> list[float | None]:
    measurement = one.run.measurements[0]
    effort = one.run.best_effort
    error = effort.standard_error_pct[0] if effort and effort.standard_error_pct else None
    values = [METRICS[name](measurement, cycles) for name in metrics]
    return [*point, one.repeat, one.number, *values, error, effort.disturbed_pct if effort else None]
