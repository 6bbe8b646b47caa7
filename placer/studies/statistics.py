"""Medians and spread over the draws of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

LOW, HIGH = 0.1, 0.9
"""At least four draws of five lie between these quantiles."""

COUNTS = ("nics", "rejected")
FIGURES = ("nics", "wastage_pct", "violations_pct", "rejected", "cost")

MIDDLE = {figure: figure for figure in FIGURES} | {"violations_pct": "violations_mean_pct"}
"""What stands for a figure: its median; of broken SLAs the mean, for a median hides what is rare."""


def spread_of(results: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """A row per group: `draws`, then of every figure median, low and high. Numbers rise, words come as they appear.

    Low and high are draws, not values between two of them: of five draws the lowest and the highest, for between the
    second and the fourth lie but three.

    Parameters
    ----------
    results
        Rows of `conduct`.
    by
        Columns that tell groups apart.

    Returns
    -------
    table
        Columns `by`, `draws`, and `FIGURE`, `FIGURE_low`, `FIGURE_high` of `FIGURES`; a tenth of the draws at most is
        below low, and a tenth above high. Of counts the median is the upper one: as many as half of the draws do with.
        `violations_pct` is the mean over the draws in `violations_mean_pct`, too: SLAs that break are of all instances.
    """
    groups = results.groupby(list(by), sort=False, dropna=False)
    table = groups.size().rename("draws").to_frame()
    for figure in FIGURES:
        of = groups[figure]
        table[figure] = of.quantile(0.5, interpolation="higher") if figure in COUNTS else of.median()
        table[f"{figure}_low"] = of.quantile(LOW, interpolation="lower")
        table[f"{figure}_high"] = of.quantile(HIGH, interpolation="higher")
    table["violations_mean_pct"] = groups["violations_pct"].mean()
    return table.reset_index().sort_values(list(by), key=_place_of, kind="stable", ignore_index=True)


def range_of(row: pd.Series[Any], figure: str) -> str:
    """Where at least four draws of five lie, in words."""
    digits = 1 if figure.endswith("pct") else 0
    low, high = (f"{row[f'{figure}{end}']:,.{digits}f}" for end in ("_low", "_high"))
    return low if low == high else f"{low} to {high}"


def _place_of(values: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers as they are, words by where they first appear."""
    if pd.api.types.is_numeric_dtype(values):
        return values
    return pd.Series(pd.factorize(values, use_na_sentinel=True)[0], index=values.index)
