"""Medians, means and ranges over the draws of a study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

LOW_QUANTILE, HIGH_QUANTILE = 0.1, 0.9
"""Quantiles between which at least four draws in five lie."""

GROUP_COLUMNS = ("trace", "fleet", "strategy", "predictor", "budget_pct", "risk")
"""Columns that identify the rows of a study; what differs within a group are its draws."""

SPARE_COLUMN = "spare_nics"
"""NICs for failures, which results have where those were asked for; none where a fleet has not enough of them."""

COUNT_COLUMNS = ("nics", "rejected")
FIGURE_COLUMNS = ("nics", "wastage_pct", "violations_pct", "rejected", "cost")

MIDDLE_COLUMNS = {figure: figure for figure in FIGURE_COLUMNS} | {"violations_pct": "violations_mean_pct"}
"""Column of the middle of a figure: its median, but the mean of SLA violations, because a median hides rare ones."""


def summarize(results: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """A row per group with the number of `draws` and median, low and high of every figure.

    Low and high are values of draws, not interpolated: of five draws the smallest and the largest, because only three
    lie between the second and the fourth. Rows are sorted: numbers ascend, texts keep the order of the results.

    Parameters
    ----------
    results
        Rows of `execute`.
    by
        Columns that identify a group.

    Returns
    -------
    table
        Columns `by`, of which `risk` holds only given ones, `draws`, and `FIGURE`, `FIGURE_low`, `FIGURE_high` of
        `FIGURE_COLUMNS`; at most a tenth of the draws is below low, and a tenth above high. The median of counts is
        the upper one, so that it is enough for half of the draws. `violations_mean_pct` and `expected_violations_pct`
        are means over the draws, `chosen_risk` is the median of the risks that were used, and `keeps_budget` whether
        the mean of SLA violations is at most `budget_pct`; None where either is unknown. `truth` is the ground truth,
        where results have it. Where results have spare NICs, `spare_nics` is the largest number of them, and
        `lacks_spare` whether the fleet had not enough of them in a draw."""
    # a copy with the columns of budgets, which results of earlier versions lack; `used_risk` is chosen or given
    missing = {name: np.nan for name in ("budget_pct", "risk", "expected_violations_pct") if name not in results}
    copy = results.assign(**missing)
    results = copy.assign(used_risk=copy["risk"].astype(float), budget_pct=copy["budget_pct"].astype(float))
    results["risk"] = results["used_risk"].where(results["budget_pct"].isna())
    groups = results.groupby(list(by), sort=False, dropna=False)
    table = groups.size().rename("draws").to_frame()
    for figure in FIGURE_COLUMNS:
        of = groups[figure]
        table[figure] = of.quantile(0.5, interpolation="higher") if figure in COUNT_COLUMNS else of.median()
        table[f"{figure}_low"] = of.quantile(LOW_QUANTILE, interpolation="lower")
        table[f"{figure}_high"] = of.quantile(HIGH_QUANTILE, interpolation="higher")
    table["violations_mean_pct"] = groups["violations_pct"].mean()
    table["expected_violations_pct"] = groups["expected_violations_pct"].mean()
    table["chosen_risk"] = groups["used_risk"].median()
    budget, violations = groups["budget_pct"].max(), table["violations_mean_pct"]
    kept = (violations <= budget).astype(object)
    table["keeps_budget"] = kept.where(budget.notna() & violations.notna(), None)
    if SPARE_COLUMN in results:
        table[SPARE_COLUMN] = groups[SPARE_COLUMN].max()
        table["lacks_spare"] = groups[SPARE_COLUMN].count() < table["draws"]
    if "truth" in results:
        table["truth"] = groups["truth"].agg(lambda truths: ", ".join(dict.fromkeys(truths)))
    return table.reset_index().sort_values(list(by), key=_sort_key, kind="stable", ignore_index=True)


def _sort_key(values: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers as they are, texts by where they first appear."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(values):
        return values
    return pd.Series(pd.factorize(values, use_na_sentinel=True)[0], index=values.index)
