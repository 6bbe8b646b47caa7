"""The statistics of a study as a table for people, and as JSON and CSV for programs (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from placer.model.catalogue import DEFAULT_BUDGET_PCT
from placer.report.text.table import text_table
from placer.report.wastage import MARK
from placer.studies.statistics import BY, MIDDLE

UNKNOWN = "unknown"

NOTE = f"{MARK} not comparable with the optimum: more than {DEFAULT_BUDGET_PCT:g} % SLA violations."
INTERVALS = "Medians over the draws, means of SLA violations; in parentheses the range of at least four draws in five."


def as_table(statistics: pd.DataFrame) -> str:
    """A row per strategy; columns in which all rows are alike are left out."""
    columns = [name for name in BY if name in ("strategy", "predictor") or statistics[name].nunique(dropna=False) > 1]
    headings = [*columns, "draws", "NICs", "wastage %", "SLA violations %", "rejected"]
    figures = ("nics", "wastage_pct", "violations_pct", "rejected")
    rows = [
        [
            *(_label(row[name]) for name in columns),
            str(row["draws"]),
            *(_figure(row, figure, marked and figure == "wastage_pct") for figure in figures),
        ]
        for (_, row), marked in zip(statistics.iterrows(), over_budget(statistics), strict=True)
    ]
    notes = [NOTE] if over_budget(statistics).any() else []
    notes += [INTERVALS] if (statistics["draws"] > 1).any() else []
    return text_table(headings, rows, words=len(columns)) + "".join(f"\n{note}" for note in notes) + "\n" * bool(notes)


def as_json(statistics: pd.DataFrame) -> str:
    """A list of objects, one per row."""
    return statistics.to_json(orient="records", indent=2, double_precision=6) + "\n"


def as_csv(statistics: pd.DataFrame) -> str:
    """The rows as they are."""
    return statistics.to_csv(index=False, float_format="%.6g", lineterminator="\n")


FORMATS: dict[str, Callable[[pd.DataFrame], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


def option_name(row: pd.Series[Any]) -> str:
    """A strategy with its predictor and risk."""
    words = [str(row["strategy"])]
    if not pd.isna(row["predictor"]):
        words.append(str(row["predictor"]))
    return ", ".join(words) + ("" if pd.isna(row["risk"]) else f" at risk {row['risk']:g}")


def interval_text(row: pd.Series[Any], figure: str) -> str:
    """The range of at least four draws in five."""
    digits = 1 if figure.endswith("pct") else 0
    low, high = (f"{row[f'{figure}{end}']:,.{digits}f}" for end in ("_low", "_high"))
    return low if low == high else f"{low} to {high}"


def over_budget(statistics: pd.DataFrame) -> pd.Series[bool]:
    """Per row, whether the mean of SLA violations is above the budget."""
    return statistics["violations_mean_pct"] > DEFAULT_BUDGET_PCT


def truth_sentence(results: pd.DataFrame) -> str:
    """Where the ground truth of a study comes from; `results` as of `execute`."""
    truths = sorted(set(results["truth"]))
    if truths == ["simulated"]:
        return "Throughput is measured on the simulated card, not on hardware."
    if truths == ["predicted"]:
        return "There is no ground truth: SLA violations are unknown."
    return f"Throughput is measured by: {', '.join(truths)}."


def _label(value: Any) -> str:
    return "-" if pd.isna(value) else f"{value:g}" if isinstance(value, float) else str(value)


def _figure(row: pd.Series[Any], figure: str, marked: bool) -> str:
    if pd.isna(row[MIDDLE[figure]]):
        return UNKNOWN
    middle = f"{row[MIDDLE[figure]]:,.{1 if figure.endswith('pct') else 0}f}"
    interval = interval_text(row, figure)
    text = middle if interval == middle else f"{middle} ({interval})"
    return f"{text} {MARK}" if marked else text
