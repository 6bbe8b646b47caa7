"""A sizing as a recommendation in one line, a table, JSON and CSV (docs/formats.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from placer.report.text.counts import counted_nics
from placer.report.text.study import UNKNOWN, option_name
from placer.report.text.table import text_table
from placer.studies.sizing import (
    OPTION,
    POINT,
    TODAY,
    Recommendation,
    Sizing,
    best_budgets,
    options_of,
    recommendation_of,
)
from placer.studies.statistics import summarize
from placer.studies.study import UNLIMITED

AXES = {
    "arrivals": "arrivals, times today's",
    "sla": "allowed drop, times today's",
    "flows": "flows, times today's",
    "packet_size": "packet size, times today's",
}


def recommendation_line(recommendation: Recommendation, sizing: Sizing) -> str:
    """What to buy, in one line."""
    more = recommendation.more
    buy = f"Buy {more:,} more NIC{'s' * (more != 1)}" if more else "Buy no NICs"
    need = f"{recommendation.high:,} instead of {recommendation.today:,}"
    if recommendation.low < recommendation.high:
        need += f" ({recommendation.low:,} to {recommendation.high:,} in {sizing.draws} draws)"
    violations = "SLA violations unknown"
    if recommendation.violations_pct is not None:
        violations = f"{recommendation.violations_pct:.1f} % SLA violations, budget {sizing.budget_pct:g} %"
    if recommendation.rejected:
        violations += f"; {recommendation.rejected:,} arrivals rejected"
    warning = "" if recommendation.within_budget else "No option keeps the budget; the closest one: "
    option = fleet_option_name(pd.Series(recommendation.option))
    return f"{warning}{buy} for {sizing.next_year:g} times the arrivals: {need}, placed by {option}; {violations}."


def budget_cost(recommendation: Recommendation, sizing: Sizing) -> Iterator[str]:
    """What the budget costs in NICs next year, against the same strategy by the median prediction."""
    without = recommendation.without_margin
    if without is None:
        return
    more = recommendation.high - without
    costs = f"costs {counted_nics(more)}" if more > 0 else "costs no NIC"
    yield f"The budget of {sizing.budget_pct:g} % {costs} next year: without a margin, {without:,} are needed."


def fleet_option_name(option: pd.Series[Any]) -> str:
    """Strategy, predictor and budget, and the fleet where one is given."""
    return option_name(option) + ("" if option["fleet"] == UNLIMITED else f" on {option['fleet']}")


def as_table(results: pd.DataFrame, sizing: Sizing) -> str:
    """The recommendation, then a row per point and option: every option for next year, elsewhere the best budget."""
    rows = [
        [
            AXES[row["axis"]],
            f"{row['factor']:g}",
            row["option"],
            f"{row['nics']:,}",
            f"{row['nics_low']:,} to {row['nics_high']:,}",
            UNKNOWN if pd.isna(row["violations_mean_pct"]) else f"{row['violations_mean_pct']:.1f}",
            f"{row['rejected_high']:,}",
        ]
        for _, row in points_of(results).iterrows()
    ]
    headings = ["axis", "factor", "option", "NICs", "range of four draws in five", "SLA violations %", "rejected"]
    recommendation = recommendation_of(results, sizing)
    lines = "\n".join([recommendation_line(recommendation, sizing), *budget_cost(recommendation, sizing)])
    return f"{lines}\n\n{text_table(headings, rows, words=3)}"


def as_json(results: pd.DataFrame, sizing: Sizing) -> str:
    """An object with the recommendation, called `answer`, and the curves."""
    recommendation = recommendation_of(results, sizing)
    document = {
        "answer": {
            **_asked(recommendation.option),
            "next_year": sizing.next_year,
            "today_nics": recommendation.today,
            "more_nics": recommendation.more,
            "nics": recommendation.nics,
            "nics_low": recommendation.low,
            "nics_high": recommendation.high,
            "sla_violations_pct": recommendation.violations_pct,
            "rejected": recommendation.rejected,
            "expected_violations_pct": recommendation.expected_violations_pct,
            "nics_without_margin": recommendation.without_margin,
            "budget_pct": sizing.budget_pct,
            "keeps_budget": None
            if recommendation.violations_pct is None
            else recommendation.violations_pct <= sizing.budget_pct,
            "within_budget": recommendation.within_budget,
        },
        "curves": json.loads(summarize(results, (*POINT, *OPTION)).to_json(orient="records", double_precision=6)),
    }
    return json.dumps(document, indent=2) + "\n"


def _asked(option: Mapping[str, Any]) -> dict[str, Any]:
    """The option with the budget that it was asked to keep, and the median of the risks that it chose."""
    named = {key: option[key] for key in ("fleet", "strategy", "predictor")}
    chosen = option["chosen_risk"]
    return {**named, "asked_budget_pct": None if chosen is None else option["budget_pct"], "risk": chosen}


def as_csv(results: pd.DataFrame, sizing: Sizing) -> str:
    """The curves."""
    return summarize(results, (*POINT, *OPTION)).to_csv(index=False, float_format="%.6g", lineterminator="\n")


FORMATS: dict[str, Callable[[pd.DataFrame, Sizing], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


def points_of(results: pd.DataFrame) -> pd.DataFrame:
    """A row per point and option, named in `option`; without today's trace."""
    statistics = summarize(results, (*POINT, *OPTION))
    points = statistics[statistics["axis"] != TODAY]
    return points.assign(option=[fleet_option_name(row) for _, row in points.iterrows()])


def curves_of(results: pd.DataFrame, sizing: Sizing) -> pd.DataFrame:
    """The rows of `points_of` of the options that have curves along every axis."""
    points = points_of(results)
    best = best_budgets(options_of(results, sizing))
    return points[points["option"].isin([fleet_option_name(row) for _, row in best.iterrows()])]
