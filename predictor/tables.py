"""Columns of profile tables as arrays."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profiles.profile import FIRST_RATE, FIRST_SERVICE, TRAFFIC_COLUMNS, rate_column, service_column

Array = NDArray[np.float64]


def traffic_of(table: pd.DataFrame) -> Array:
    """The traffic attributes of each row, shape (rows, 3); a missing mtbr means no matches."""
    return np.column_stack(
        [table[name].to_numpy(dtype=np.float64) if name in table else np.zeros(len(table)) for name in TRAFFIC_COLUMNS]
    )


def contention_of(table: pd.DataFrame, uses: tuple[str, ...]) -> tuple[Array, Array]:
    """Competitors' service (ms) and rate (kpps) per accelerator, each of shape (rows, accelerators).

    A missing service column means no contention, a missing or empty rate a competitor that saturates.
    """
    service, rate = np.zeros((len(table), len(uses))), np.full((len(table), len(uses)), np.nan)
    for at, accelerator in enumerate(uses):
        first = at == 0
        for target, names in (
            (service, [service_column(accelerator)] + [FIRST_SERVICE] * first),
            (rate, [rate_column(accelerator)] + [FIRST_RATE] * first),
        ):
            found = next((name for name in names if name in table), None)
            if found:
                target[:, at] = table[found].to_numpy(dtype=np.float64)
    return np.nan_to_num(service), rate
