"""`NF/latency.csv` of a profile (docs/formats/profile.md): latency of an NF at offered rates, alone and beside others.
Users may write it from their own measurements."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from profiles.faults import Fault
from profiles.table import read_table
from profiles.traffic import ATTRIBUTES

if TYPE_CHECKING:
    import pandas as pd

LATENCY_FILE = "latency"
COMPETITORS_COLUMN = "competitors"
CAPACITY_COLUMN, RATE_COLUMN = "capacity_kpps", "rate_kpps"
MEAN_COLUMN, P50_COLUMN, P99_COLUMN, MAX_COLUMN = "mean_us", "p50_us", "p99_us", "max_us"
REPEATS_COLUMN, SPREAD_COLUMN = "repeats", "spread_us"
"""How often a row was measured, and by how much the p99s differ (largest less smallest)."""
LATENCY_COLUMNS = [
    *ATTRIBUTES, COMPETITORS_COLUMN, CAPACITY_COLUMN, RATE_COLUMN, MEAN_COLUMN, P50_COLUMN, P99_COLUMN, MAX_COLUMN,
    REPEATS_COLUMN, SPREAD_COLUMN,
]  # fmt: skip


def competitors_text(nfs: Iterable[str]) -> str:
    """The names of competitors as a cell has them, `Dedup;NAT;NAT`; empty for an NF alone."""
    return ";".join(sorted(nfs))


def no_latencies() -> pd.DataFrame:
    """The table of an NF whose latency was not measured."""
    import pandas as pd

    return pd.DataFrame(
        {name: pd.Series(dtype=object if name == COMPETITORS_COLUMN else np.float64) for name in LATENCY_COLUMNS}
    )


def read_latencies(path: Path) -> tuple[pd.DataFrame, list[Fault]]:
    """The table in `path` and what is wrong with it; empty where there is no such file. Without a column of competitors
    the NF was alone; a latency besides the p99 that is missing was not measured."""
    if not path.exists():
        return no_latencies(), []
    required = ["flows", "packet_size", CAPACITY_COLUMN, RATE_COLUMN, P99_COLUMN]
    unknown = dict.fromkeys((MEAN_COLUMN, P50_COLUMN, MAX_COLUMN, SPREAD_COLUMN), np.nan)
    positive = ["flows", "packet_size", CAPACITY_COLUMN, RATE_COLUMN, P99_COLUMN]
    table, faults = read_table(
        path, required, {"mtbr": 0.0, REPEATS_COLUMN: 1.0, **unknown}, text=[COMPETITORS_COLUMN], positive=positive
    )
    if faults:
        return table, faults
    if COMPETITORS_COLUMN not in table:
        table[COMPETITORS_COLUMN] = ""
    lines = np.array(table.attrs["lines"])
    beyond = lines[(table[RATE_COLUMN] >= table[CAPACITY_COLUMN]).to_numpy()]
    faults += [
        Fault(
            str(path),
            int(line),
            RATE_COLUMN,
            f"is not below {CAPACITY_COLUMN}",
            "an NF that is overloaded has no latency to learn",
        )
        for line in beyond
    ]
    odd = lines[(table[MEAN_COLUMN] > table[P99_COLUMN]).to_numpy()]
    return table, faults + [Fault(str(path), int(line), MEAN_COLUMN, f"is above {P99_COLUMN}") for line in odd]
