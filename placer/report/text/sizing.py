"""A sizing as a recommendation in one line, a table, JSON and CSV (docs/formats/sizing.md)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from placer.evaluate.wastage import MARK
from placer.report.text.study import UNKNOWN_TEXT, option_name, truth_sentence
from placer.report.text.table import count_nics, count_noun, text_table
from placer.studies.sizing import (
    OPTION_COLUMNS,
    POINT_COLUMNS,
    TODAY_AXIS,
    Recommendation,
    Sizing,
    best_budgets,
    options_of,
    recommendation_of,
)
from placer.studies.statistics import SPARE_COLUMN, summarize
from placer.studies.study import UNLIMITED_FLEET

WITHOUT_MARGIN = "without a safety margin"  # what plans by the median prediction are called

AXIS_TEXTS = {
    "arrivals": "arrivals, times today's",
    "load": "offered load, times today's",
    "sla": "allowed drop, times today's",
    "flows": "flows, times today's",
    "packet_size": "packet size, times today's",
}


def recommendation_line(recommendation: Recommendation, sizing: Sizing) -> str:
    """What to buy, in one line."""
    more = recommendation.more
    buy = f"Buy {more:,} more NIC{'s' * (more != 1)}" if more else "Buy no NICs"
    need = f"{recommendation.high:,} instead of {recommendation.today:,}"
    if recommendation.to_buy is not None:
        need = f"{recommendation.high:,} are used at most, {recommendation.today:,} today"
    if recommendation.low < recommendation.high:
        need += f" ({recommendation.low:,} to {recommendation.high:,} in {sizing.draws} draws)"
    violations = "SLA violations unknown"
    if recommendation.violations_pct is not None:
        violations = f"{recommendation.violations_pct:.1f} % SLA violations, budget {sizing.budget_pct:g} %"
    if recommendation.rejected:
        violations += f"; {count_noun(recommendation.rejected, 'arrival')} rejected"
    warning = _warning(recommendation, sizing)
    option = fleet_option_name(pd.Series(recommendation.option))
    grown = f"{sizing.next_year:g} times the {sizing.growth_of}"
    return f"{warning}{buy} for {grown}: {need}, placed by {option}; {violations}."


def _warning(recommendation: Recommendation, sizing: Sizing) -> str:
    """Why there is no option to recommend without a reservation."""
    if recommendation.within_budget:
        return ""
    if sizing.failures and recommendation.spare is None:
        return f"No option has the spare NICs with which {sizing.failures} may fail; the closest one: "
    violations = recommendation.known_violations_pct
    if violations is None:
        return "No option is known to keep the budget: "
    if violations <= sizing.budget_pct:
        return "No option places every arrival within the budget; the one that rejects fewest: "
    return "No option keeps the budget; the closest one: "


def further_lines(recommendation: Recommendation, sizing: Sizing) -> Iterator[str]:
    """How sure the number is, and what the budget costs in NICs next year, against placement without a margin."""
    draws, high = sizing.draws, recommendation.high
    enough = "all" if draws <= 10 else "at least nine in ten"
    of = f"{enough} of {count_noun(draws, 'trace')} drawn from today's arrivals"
    are, median = "is" if high == 1 else "are", recommendation.nics
    yield f"{count_nics(high)} {are} enough for {of}; {median:,} for half of them."
    if recommendation.spare is not None:
        number = f"{recommendation.spare:,} {'is' if recommendation.spare == 1 else 'are'}"
        yield f"Of these, at most {number} spare: {sizing.failures} may fail."
    without = recommendation.without_margin
    if without is not None:
        more = high - without
        takes = f"takes {count_noun(more, 'extra NIC')}" if more > 0 else "takes no extra NIC"
        yield f"Keeping violations below {sizing.budget_pct:g} % {takes} next year: {without:,} {WITHOUT_MARGIN}."


def fleet_option_name(option: pd.Series[Any]) -> str:
    """Strategy, predictor and budget, or that it has no margin, and the fleet where one is given."""
    name = option_name(option)
    if not pd.isna(option["risk"]):  # only plans by the median prediction have a given risk
        name = f"{option['strategy']}, {option['predictor']} {WITHOUT_MARGIN}"
    return name + ("" if option["fleet"] == UNLIMITED_FLEET else f" on {option['fleet']}")


def as_table(results: pd.DataFrame, sizing: Sizing) -> str:
    """The recommendation, then a row per point and option: every option for next year, elsewhere the best budget."""
    points, recommendation = points_of(results), recommendation_of(results, sizing)
    rows = [
        [
            AXIS_TEXTS[row["axis"]],
            f"{row['factor']:g}",
            row["option"],
            f"{row['nics_high']:,}",
            f"{row['nics']:,}",
            f"{row['nics_low']:,} to {row['nics_high']:,}",
            _violations(row, sizing),
            f"{row['rejected_high']:,}",
        ]
        for _, row in points.iterrows()
    ]
    headings = ["axis", "factor", "option", "NICs needed", "median", "range of four draws in five", "SLA violations %",
                "rejected"]  # fmt: skip
    lines = [recommendation_line(recommendation, sizing), *further_lines(recommendation, sizing)]
    notes = [
        *([f"{MARK} more than the budget of {sizing.budget_pct:g} %."] if any(MARK in row[6] for row in rows) else []),
        *([f"{WITHOUT_MARGIN}: by the median prediction; it shows what the budget costs, and is no option."]
          if points["risk"].notna().any() else []),
        truth_sentence(results),
    ]  # fmt: skip
    return "\n".join([*lines, "", text_table(headings, rows, words=3), *notes]) + "\n"


def _violations(row: pd.Series[Any], sizing: Sizing) -> str:
    """The mean, marked where it is above the budget."""
    mean = row["violations_mean_pct"]
    if pd.isna(mean):
        return UNKNOWN_TEXT
    return f"{mean:.1f} {MARK if mean > sizing.budget_pct else ' '}"


def as_json(results: pd.DataFrame, sizing: Sizing) -> str:
    """An object with the recommendation, called `answer`, and the curves."""
    recommendation = recommendation_of(results, sizing)
    document = {
        "answer": {
            **_ask(recommendation.option),
            **({"growth_of": sizing.growth_of} if sizing.growth_of != Sizing.growth_of else {}),
            "next_year": sizing.next_year,
            "today_nics": recommendation.today,
            "more_nics": recommendation.more,
            **({} if recommendation.to_buy is None else {"to_buy": recommendation.to_buy}),
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
            **({SPARE_COLUMN: recommendation.spare} if sizing.failures else {}),
        },
        "curves": json.loads(
            summarize(results, (*POINT_COLUMNS, *OPTION_COLUMNS)).to_json(orient="records", double_precision=6)
        ),
    }
    return json.dumps(document, indent=2) + "\n"


def _ask(option: Mapping[str, Any]) -> dict[str, Any]:
    """The option with the budget that it was asked to keep, and the median of the risks that it chose."""
    named = {key: option[key] for key in ("fleet", "strategy", "predictor")}
    chosen = option["chosen_risk"]
    return {**named, "asked_budget_pct": None if chosen is None else option["budget_pct"], "risk": chosen}


def as_csv(results: pd.DataFrame, sizing: Sizing) -> str:
    """The curves."""
    return summarize(results, (*POINT_COLUMNS, *OPTION_COLUMNS)).to_csv(
        index=False, float_format="%.6g", lineterminator="\n"
    )


SIZING_FORMATS: dict[str, Callable[[pd.DataFrame, Sizing], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


def points_of(results: pd.DataFrame) -> pd.DataFrame:
    """A row per point and option, named in `option`; without today's trace."""
    statistics = summarize(results, (*POINT_COLUMNS, *OPTION_COLUMNS))
    points = statistics[statistics["axis"] != TODAY_AXIS]
    return points.assign(option=[fleet_option_name(row) for _, row in points.iterrows()])


def curves_of(results: pd.DataFrame, sizing: Sizing) -> pd.DataFrame:
    """The rows of `points_of` of the options that have curves along every axis."""
    points = points_of(results)
    best = best_budgets(options_of(results, sizing))
    return points[points["option"].isin([fleet_option_name(row) for _, row in best.iterrows()])]
