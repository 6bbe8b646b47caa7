"""The page of a sizing: what to buy, the options, and a curve with its band along every axis."""

from __future__ import annotations

import pandas as pd

from placer.report.html import Figure, Page, Section, Tile, charts
from placer.report.html.study import judged_by
from placer.report.text.sizing import AXES, curves_of, line_of, named
from placer.studies.sizing import Sizing, answer_of, options_of


def page_of_sizing(results: pd.DataFrame, sizing: Sizing) -> Page:
    """What to buy, and the curves that speak for it."""
    answer, curves = answer_of(results, sizing), curves_of(results, sizing)
    broken = "unknown" if answer.broken_pct is None else f"{answer.broken_pct:.1f} %"
    return Page(
        title=f"NICs to buy: {sizing.arrivals}",
        summary=(
            line_of(answer, sizing),
            f"Next year's arrivals are drawn from today's, {sizing.draws} times. "
            "Bands hold at least four draws of five; what to buy is enough for at least nine of ten.",
            judged_by(results),
        ),
        tiles=(
            Tile(f"{answer.more:,}", "NICs to buy"),
            Tile(f"{answer.today:,}", "NICs today"),
            Tile(f"{answer.low:,}–{answer.high:,}", "NICs next year"),
            Tile(broken, "of SLAs broken next year"),
        ),
        sections=(_budget(results, sizing), *(_axis(axis, rows) for axis, rows in curves.groupby("axis", sort=False))),
    )


def _budget(results: pd.DataFrame, sizing: Sizing) -> Section:
    table = options_of(results, sizing).sort_values("cost_high")
    shown = pd.DataFrame(
        {
            "option": table.apply(named, axis=1),
            "NICs today": table["today"],
            "NICs next year": table["nics"],
            "from": table["nics_low"],
            "to": table["nics_high"],
            "cost": table["cost_high"],
            "SLAs broken, %": table["violations_mean_pct"],
            "within budget": table["within_budget"].map({True: "yes", False: "no"}),
        }
    )
    if (table["cost_high"] == table["nics_high"]).all():
        shown = shown.drop(columns="cost")
    told = f"At {sizing.next_year:g} times the arrivals. The budget: {sizing.budget_pct:g} % of SLAs may break."
    return Section("budget", "Options and the budget", told, table=shown, in_sight=True)


def _axis(axis: object, rows: pd.DataFrame) -> Section:
    title = AXES[str(axis)]
    table = rows.rename(columns={"nics": "middle", "nics_low": "low", "nics_high": "high"})
    table = table[["curve", "factor", "low", "middle", "high", "violations_mean_pct"]]
    figure = Figure(f"nics-by-{axis}", "The median of the draws; the band holds at least four of five.",
                    charts.banded(table, "factor", title, "NICs"))  # fmt: skip
    headings = {
        "curve": "option",
        "middle": "NICs",
        "low": "from",
        "high": "to",
        "violations_mean_pct": "SLAs broken, %",
    }
    return Section(
        f"by-{axis}", f"NICs by {title.split(',')[0]}", f"Along: {title}.", (figure,), table.rename(columns=headings)
    )
