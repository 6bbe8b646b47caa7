"""The page of a study: the best strategy, then medians and ranges, strategy by strategy."""

import pandas as pd

from placer.evaluate.wastage import MARK_MEANINGS
from placer.report.html import Figure, Page, Section, Tile, charts
from placer.report.text.sizing import AXIS_TEXTS, curves_of, fleet_option_name, further_lines, recommendation_line
from placer.report.text.study import (
    UNKNOWN_TEXT,
    interval_text,
    marks,
    note_marks,
    option_name,
    recommendation,
    truth_sentence,
)
from placer.studies.sizing import Sizing, options_of, recommendation_of
from placer.studies.statistics import MIDDLE_COLUMNS
from placer.studies.study import UNLIMITED_FLEET

COLUMN_HEADINGS = {
    "nics": "NICs",
    "wastage_pct": "wastage, %",
    "violations_pct": "SLA violations, %",
    "rejected": "rejected",
}

CHART_CAPTIONS = {
    "wastage_pct": "Wastage: the median, and the range of at least four draws in five.",
    "violations_pct": "SLA violations: the mean, and the range of at least four draws in five.",
}


def page_of_study(name: str, statistics: pd.DataFrame, results: pd.DataFrame) -> Page:
    """The page of a study. `name`: name of the study. `statistics`: medians and ranges, as of `summarize`. `results`:
    rows as of `execute`."""
    groups, traces = statistics.groupby(["trace", "fleet"], sort=False), statistics["trace"].nunique()
    return Page(
        title=f"Study: {name}",
        summary=(recommendation(statistics), truth_sentence(results)),
        tiles=(
            Tile(f"{len(results):,}", "plans"),
            Tile(f"{traces:,}", "kind of trace" if traces == 1 else "kinds of traces"),
            Tile(f"{statistics['draws'].max():.0f}" if len(statistics) else "0", "draws of a trace at most"),
            Tile(_share_of_proven(results), "of optima proven"),
        ),
        sections=tuple(study_section(number, rows) for number, (_, rows) in enumerate(groups, start=1)),
    )


def study_section(number: int, rows: pd.DataFrame) -> Section:
    """One trace on one fleet; `rows` of the statistics."""
    trace, fleet = rows["trace"].iloc[0], rows["fleet"].iloc[0]
    named = rows.assign(strategy=[option_name(row) for _, row in rows.iterrows()])
    middle = named.assign(**{figure: named[column] for figure, column in MIDDLE_COLUMNS.items()})
    slug = "".join(letter if letter.isalnum() else "-" for letter in f"{number}-{trace}-{fleet}".lower())
    title = f"{trace}" if fleet == UNLIMITED_FLEET else f"{trace}, fleet {fleet}"
    figures = [
        Figure(f"{slug}-{figure}", caption, charts.intervals(middle, figure, COLUMN_HEADINGS[figure]))
        for figure, caption in CHART_CAPTIONS.items()
        if named[figure].notna().all()
    ]
    draws = int(rows["draws"].max())
    text = "One draw." if draws == 1 else f"{draws:,} draws."
    return Section(slug, title, text, tuple(figures), _numbers(middle), notes=note_marks(rows))


def _share_of_proven(results: pd.DataFrame) -> str:
    """The share of proven optima: one per trace and fleet, however many strategies were compared with it."""
    optima = results.drop_duplicates(["trace", "fleet", "draw"])["proven"].dropna()
    return f"{100 * optima.mean():.0f} %" if len(optima) else "–"


def _numbers(middle: pd.DataFrame) -> pd.DataFrame:
    """A row per strategy: the middle of every figure, and as text its range where draws differ."""
    table = middle[["strategy"]].copy()
    for figure, heading in COLUMN_HEADINGS.items():
        table[heading] = middle[figure]
        if figure == "wastage_pct" and any(marks(middle)):
            table["note"] = [MARK_MEANINGS.get(mark, "") for mark in marks(middle)]
        if (middle[f"{figure}_low"] != middle[f"{figure}_high"]).any() and middle[figure].notna().all():
            table[f"{heading.removesuffix(', %')}: range"] = middle.apply(interval_text, axis=1, figure=figure)
        if figure == "violations_pct" and middle["expected_violations_pct"].notna().any():
            table["expected, %"] = middle["expected_violations_pct"]
    return table


# The page of a sizing: the recommendation, the options, and a curve with its range along every axis.


def page_of_sizing(results: pd.DataFrame, sizing: Sizing) -> Page:
    """The page of a sizing; `results` as of `size`."""
    recommendation, curves = recommendation_of(results, sizing), curves_of(results, sizing)
    violations = UNKNOWN_TEXT if recommendation.violations_pct is None else f"{recommendation.violations_pct:.1f} %"
    return Page(
        title=f"NICs to buy: {sizing.arrivals}",
        summary=(
            recommendation_line(recommendation, sizing),
            *further_lines(recommendation, sizing),
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
            "NICs needed next year": table["nics_high"],
            "median": table["nics"],
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
    text = (
        f"At {sizing.next_year:g} times the {sizing.growth_of}. The budget is {sizing.budget_pct:g} % SLA violations."
    )
    return Section("budget", "Options and the budget", text, table=shown, expanded=True)


def axis_section(axis: str, rows: pd.DataFrame) -> Section:
    """NICs along one axis; `rows` of `curves_of`."""
    title = AXIS_TEXTS[axis]
    table = rows.rename(columns={"nics": "middle", "nics_low": "low", "nics_high": "high"})
    table = table[["option", "factor", "low", "middle", "high", "violations_mean_pct"]]
    caption = "The median of the draws; the band holds at least four in five."
    figures = (Figure(f"nics-by-{axis}", caption, charts.bands(table, "factor", title, "NICs")),) if len(table) else ()
    headings = {"middle": "NICs", "low": "from", "high": "to", "violations_mean_pct": "SLA violations, %"}
    return Section(
        f"by-{axis}", f"NICs by {title.split(',')[0]}", f"Along: {title}.", figures, table.rename(columns=headings)
    )
