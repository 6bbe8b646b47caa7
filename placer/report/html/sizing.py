"""The page of a sizing: the recommendation, the options, and a curve with its range along every axis."""

from __future__ import annotations

import pandas as pd

from placer.report.html import Figure, Page, Section, Tile, charts
from placer.report.text.sizing import AXES, budget_cost, curves_of, fleet_option_name, recommendation_line
from placer.report.text.study import UNKNOWN, truth_sentence
from placer.studies.sizing import Sizing, options_of, recommendation_of


def page_of_sizing(results: pd.DataFrame, sizing: Sizing) -> Page:
    """The page of a sizing; `results` as of `size`."""
    recommendation, curves = recommendation_of(results, sizing), curves_of(results, sizing)
    violations = UNKNOWN if recommendation.violations_pct is None else f"{recommendation.violations_pct:.1f} %"
    return Page(
        title=f"NICs to buy: {sizing.arrivals}",
        summary=(
            recommendation_line(recommendation, sizing),
            *budget_cost(recommendation, sizing),
            f"Next year's arrivals are drawn from today's, {sizing.draws} times. "
            "Ranges hold at least four draws in five; the recommended number is enough for at least nine in ten.",
            truth_sentence(results),
        ),
        tiles=(
            Tile(f"{recommendation.more:,}", "NICs to buy"),
            Tile(f"{recommendation.today:,}", "NICs today"),
            Tile(f"{recommendation.low:,}–{recommendation.high:,}", "NICs next year"),
            Tile(violations, "SLA violations next year"),
        ),
        sections=(
            options_section(options_of(results, sizing), sizing),
            *(axis_section(str(axis), rows) for axis, rows in curves.groupby("axis", sort=False)),
        ),
    )


def options_section(options: pd.DataFrame, sizing: Sizing) -> Section:
    """Every option next year, as of `options_of`, the cheapest first."""
    table = options.sort_values("cost_high")
    shown = pd.DataFrame(
        {
            "option": [fleet_option_name(row) for _, row in table.iterrows()],
            "NICs today": table["today"],
            "NICs next year": table["nics"],
            "from": table["nics_low"],
            "to": table["nics_high"],
            "cost": table["cost_high"],
            "SLA violations, %": table["violations_mean_pct"],
            "expected, %": table["expected_violations_pct"],
            "within budget": table["within_budget"].map({True: "yes", False: "no"}),
        }
    )
    if (table["cost_high"] == table["nics_high"]).all():
        shown = shown.drop(columns="cost")
    text = f"At {sizing.next_year:g} times the arrivals. The budget is {sizing.budget_pct:g} % SLA violations."
    return Section("budget", "Options and the budget", text, table=shown, expanded=True)


def axis_section(axis: str, rows: pd.DataFrame) -> Section:
    """NICs along one axis; `rows` of `curves_of`."""
    title = AXES[axis]
    table = rows.rename(columns={"nics": "middle", "nics_low": "low", "nics_high": "high"})
    table = table[["option", "factor", "low", "middle", "high", "violations_mean_pct"]]
    caption = "The median of the draws; the band holds at least four in five."
    figures = (Figure(f"nics-by-{axis}", caption, charts.bands(table, "factor", title, "NICs")),) if len(table) else ()
    headings = {"middle": "NICs", "low": "from", "high": "to", "violations_mean_pct": "SLA violations, %"}
    return Section(
        f"by-{axis}", f"NICs by {title.split(',')[0]}", f"Along: {title}.", figures, table.rename(columns=headings)
    )
