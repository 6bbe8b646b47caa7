"""Tells what to buy: a line, a table, JSON and CSV (docs/formats.md)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd

from placer.report.html.study import curve_of
from placer.report.text.table import text_table
from placer.studies.sizing import OPTION, POINT, TODAY, Answer, Sizing, answer_of, best_risks, options_of
from placer.studies.statistics import spread_of
from placer.studies.study import UNLIMITED

AXES = {
    "arrivals": "arrivals, times today's",
    "sla": "allowed drop, times today's",
    "flows": "flows, times today's",
    "packet_size": "packet size, times today's",
}


def line_of(answer: Answer, sizing: Sizing) -> str:
    """The answer in one line."""
    buy = f"Buy {answer.more:,} more NICs" if answer.more else "Buy no NICs"
    need = f"{answer.high:,} instead of {answer.today:,}"
    if answer.low < answer.high:
        need += f" ({answer.low:,} to {answer.high:,}, drawn {sizing.draws} times)"
    if answer.broken_pct is None:
        broken = "whether SLAs break is unknown"
    else:
        broken = f"{answer.broken_pct:.1f} % of SLAs break, {sizing.budget_pct:g} % may"
    if answer.rejected:
        broken += f"; {answer.rejected:,} instances find no place"
    warning = "" if answer.within_budget else "No option keeps to the budget; the least bad: "
    return (
        f"{warning}{buy} for {sizing.next_year:g} times the arrivals: {need}, "
        f"placed by {named(pd.Series(answer.option))}; {broken}."
    )


def named(option: pd.Series[Any]) -> str:
    """An option in words; the fleet where there is one."""
    return curve_of(option) + ("" if option["fleet"] == UNLIMITED else f" on {option['fleet']}")


def as_table(results: pd.DataFrame, sizing: Sizing) -> str:
    """The line, then a row per point and option; next year every option, elsewhere at the risk that is best then."""
    curves = points_of(results)
    rows = [
        [
            AXES[row["axis"]],
            f"{row['factor']:g}",
            row["curve"],
            f"{row['nics']:,}",
            f"{row['nics_low']:,} to {row['nics_high']:,}",
            "unknown" if pd.isna(row["violations_mean_pct"]) else f"{row['violations_mean_pct']:.1f}",
            f"{row['rejected_high']:,}",
        ]
        for _, row in curves.iterrows()
    ]
    headings = ["along", "factor", "option", "NICs", "four draws of five", "SLAs broken %", "rejected"]
    return line_of(answer_of(results, sizing), sizing) + "\n\n" + text_table(headings, rows, words=3)


def as_json(results: pd.DataFrame, sizing: Sizing) -> str:
    """An object with the answer and the curves."""
    answer = answer_of(results, sizing)
    told = {
        "answer": {
            **answer.option,
            "next_year": sizing.next_year,
            "today_nics": answer.today,
            "more_nics": answer.more,
            "nics": answer.nics,
            "nics_low": answer.low,
            "nics_high": answer.high,
            "sla_violations_pct": answer.broken_pct,
            "rejected": answer.rejected,
            "budget_pct": sizing.budget_pct,
            "within_budget": answer.within_budget,
        },
        "curves": json.loads(spread_of(results, (*POINT, *OPTION)).to_json(orient="records", double_precision=6)),
    }
    return json.dumps(told, indent=2) + "\n"


def as_csv(results: pd.DataFrame, sizing: Sizing) -> str:
    """The curves."""
    return spread_of(results, (*POINT, *OPTION)).to_csv(index=False, float_format="%.6g", lineterminator="\n")


FORMATS: dict[str, Callable[[pd.DataFrame, Sizing], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


def points_of(results: pd.DataFrame) -> pd.DataFrame:
    """A row per point and option, whose words are in `curve`; today is no point."""
    spread = spread_of(results, (*POINT, *OPTION))
    points = spread[spread["axis"] != TODAY]
    return points.assign(curve=points.apply(named, axis=1))


def curves_of(results: pd.DataFrame, sizing: Sizing) -> pd.DataFrame:
    """Of `points_of` those of the options that are drawn along every axis."""
    points = points_of(results)
    return points[points["curve"].isin(best_risks(options_of(results, sizing)).apply(named, axis=1))]
