"""What people hand in, as arrays: the columns of a table, the name of an NF."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profiles import InputError
from profiles.profile import COUNTER_COLUMNS, FIRST_RATE, FIRST_SERVICE, TRAFFIC_COLUMNS, rate_column, service_column

Array = NDArray[np.float64]
Model = TypeVar("Model")


def model_of(models: Mapping[str, Model], nf: str) -> Model:
    """The model of that NF.

    Raises
    ------
    InputError
        When there is none.
    """
    if nf not in models:
        raise InputError.of("--nf", f"'{nf}' is not modelled", hint=f"one of {', '.join(models)}")
    return models[nf]


def traffic_of(table: pd.DataFrame) -> Array:
    """The traffic attributes of each row, shape (rows, 3); a missing mtbr means no matches."""
    return np.column_stack(
        [table[name].to_numpy(dtype=np.float64) if name in table else np.zeros(len(table)) for name in TRAFFIC_COLUMNS]
    )


def counters_of(table: pd.DataFrame) -> Array:
    """The seven counters of each row, shape (rows, 7)."""
    return table[COUNTER_COLUMNS].to_numpy(dtype=np.float64)


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
