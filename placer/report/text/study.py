"""Tells the spread of a study: to people as a table, to programs as JSON and CSV (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from placer.report.text.table import text_table
from placer.studies.statistics import MIDDLE, range_of

BY = ("trace", "fleet", "strategy", "predictor", "risk")


def as_json(spread: pd.DataFrame) -> str:
    """A list of objects, one per row."""
    return spread.to_json(orient="records", indent=2, double_precision=6) + "\n"


def as_csv(spread: pd.DataFrame) -> str:
    """The rows as they are."""
    return spread.to_csv(index=False, float_format="%.6g", lineterminator="\n")


def as_table(spread: pd.DataFrame) -> str:
    """The middle, and in parentheses where four draws of five lie or more; what tells nothing apart is left out."""
    apart = [name for name in BY if name in ("strategy", "predictor") or spread[name].nunique(dropna=False) > 1]
    headings = [*apart, "draws", "NICs", "wastage %", "SLAs broken %", "rejected"]
    figures = ("nics", "wastage_pct", "violations_pct", "rejected")
    rows = [
        [*(_label(row[name]) for name in apart), str(row["draws"]), *(_spread(row, figure) for figure in figures)]
        for _, row in spread.iterrows()
    ]
    return text_table(headings, rows, words=len(apart))


FORMATS: dict[str, Callable[[pd.DataFrame], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


def _label(value: Any) -> str:
    return "-" if pd.isna(value) else f"{value:g}" if isinstance(value, float) else str(value)


def _spread(row: pd.Series[Any], figure: str) -> str:
    if pd.isna(row[MIDDLE[figure]]):
        return "unknown"
    told = f"{row[MIDDLE[figure]]:,.{1 if figure.endswith('pct') else 0}f}"
    between = range_of(row, figure)
    return told if between == told else f"{told} ({between})"
