"""Medians and spread over the draws of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

LOW, HIGH = 0.1, 0.9
"""Four draws of five lie between these quantiles."""

FIGURES = ("nics", "wastage_pct", "violations_pct", "rejected", "cost")


def spread_of(results: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """A row per group: `draws`, then of every figure median, low and high. Numbers rise, words come as they appear.

    Parameters
    ----------
    results
        Rows of `conduct`.
    by
        Columns that tell groups apart.

    Returns
    -------
    table
        Columns `by`, `draws`, and `FIGURE`, `FIGURE_low`, `FIGURE_high` of `FIGURES`; low and high are the 10th and
        the 90th percentile. `violations_pct` is the mean over the draws in `violations_mean_pct`, too: SLAs that break
        are of all instances.
    """
    groups = results.groupby(list(by), sort=False, dropna=False)
    table = groups.size().rename("draws").to_frame()
    for figure in FIGURES:
        of = groups[figure]
        table[figure] = of.median()
        table[f"{figure}_low"] = of.quantile(LOW)
        table[f"{figure}_high"] = of.quantile(HIGH)
    table["violations_mean_pct"] = groups["violations_pct"].mean()
    return table.reset_index().sort_values(list(by), key=_place_of, kind="stable", ignore_index=True)


def _place_of(values: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers as they are, words by where they first appear."""
    if pd.api.types.is_numeric_dtype(values):
        return values
    return pd.Series(pd.factorize(values, use_na_sentinel=True)[0], index=values.index)
