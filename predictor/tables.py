"""Columns of tables as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from profiles import Fault, InputError
from profiles.arrays import Floats
from profiles.faults import suggestion
from profiles.profile import COUNTER_COLUMNS, FIRST_RATE, FIRST_SERVICE, TRAFFIC_COLUMNS, rate_column, service_column

if TYPE_CHECKING:
    import pandas as pd

Model = TypeVar("Model")


def model_of(models: Mapping[str, Model], nf: str) -> Model:
    """The model of that NF. Raises `InputError` when there is none."""
    if nf not in models:
        raise InputError.of("--nf", f"'{nf}' is not modelled", hint=suggestion(nf, models))
    return models[nf]


def traffic_of(table: pd.DataFrame) -> Floats:
    """The traffic attributes of each row, shape (rows, 3); without a column mtbr there are no matches."""
    return np.column_stack(
        [table[name].to_numpy(dtype=np.float64) if name in table else np.zeros(len(table)) for name in TRAFFIC_COLUMNS]
    )


def counters_of(table: pd.DataFrame) -> Floats:
    """The seven counters of each row, shape (rows, 7)."""
    return table[COUNTER_COLUMNS].to_numpy(dtype=np.float64)


def contention_of(table: pd.DataFrame, uses: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Competitors' service time (ms) and rate (kpps) per accelerator, each of shape (rows, accelerators). A missing
    service column means no contention, a missing or empty rate a competitor that saturates."""
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


def refuse_unreadable(table: pd.DataFrame, uses: tuple[str, ...]) -> None:
    """Refuse rows for which no model can predict, all at once. Raises `InputError` for each missing column, and each
    value that is negative or not a number."""
    import pandas as pd

    needed = [*TRAFFIC_COLUMNS[:2], *COUNTER_COLUMNS]
    faults = [Fault("contention", None, name, "is missing") for name in needed if name not in table]
    services = [FIRST_SERVICE, *map(service_column, uses)]
    rates = [FIRST_RATE, *map(rate_column, uses)]
    for name in [*needed, TRAFFIC_COLUMNS[2], *services, *rates]:
        if name not in table:
            continue
        values = pd.to_numeric(table[name], errors="coerce").to_numpy(dtype=np.float64)
        # an empty rate means a competitor that saturates, an empty service time none at all
        wrong = (values < 0) | np.isinf(values) if name in (*services, *rates) else ~((values >= 0) & (values < np.inf))
        faults += [
            Fault("contention", int(row) + 2, name, f"{table[name].iloc[row]} is not a number of at least 0")
            for row in np.flatnonzero(wrong)
        ]
    if faults:
        raise InputError(faults)
