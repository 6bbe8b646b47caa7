"""The page of a study: the best strategy, then medians and ranges, strategy by strategy."""

from __future__ import annotations

import pandas as pd

from placer.report.html import Figure, Page, Section, Tile, charts
from placer.report.text.study import (
    interval_text,
    marked_notes,
    option_name,
    over_budget,
    recommendation,
    truth_sentence,
)
from placer.report.wastage import MARK
from placer.studies.statistics import MIDDLE
from placer.studies.study import UNLIMITED

HEADINGS = {"nics": "NICs", "wastage_pct": "wastage, %", "violations_pct": "SLA violations, %", "rejected": "rejected"}

CAPTIONS = {
    "wastage_pct": "Wastage: the median, and the range of at least four draws in five.",
    "violations_pct": "SLA violations: the mean, and the range of at least four draws in five.",
}


def page_of_study(name: str, statistics: pd.DataFrame, results: pd.DataFrame) -> Page:
    """The page of a study.

    Parameters
    ----------
    name
        Name of the study.
    statistics
        Medians and ranges, as of `summarize`.
    results
        Rows as of `execute`.
    """
    groups, traces = statistics.groupby(["trace", "fleet"], sort=False), statistics["trace"].nunique()
    return Page(
        title=f"Study: {name}",
        summary=(recommendation(statistics), truth_sentence(results)),
        tiles=(
            Tile(f"{len(results):,}", "plans"),
            Tile(f"{traces:,}", "kind of trace" if traces == 1 else "kinds of traces"),
            Tile(f"{statistics['draws'].max():.0f}" if len(statistics) else "0", "draws of a trace at most"),
            Tile(_proven(results), "of optima proven"),
        ),
        sections=tuple(study_section(number, rows) for number, (_, rows) in enumerate(groups, start=1)),
    )


def study_section(number: int, rows: pd.DataFrame) -> Section:
    """One trace on one fleet; `rows` of the statistics."""
    trace, fleet = rows["trace"].iloc[0], rows["fleet"].iloc[0]
    named = rows.assign(strategy=[option_name(row) for _, row in rows.iterrows()])
    middle = named.assign(**{figure: named[column] for figure, column in MIDDLE.items()})
    slug = "".join(letter if letter.isalnum() else "-" for letter in f"{number}-{trace}-{fleet}".lower())
    title = f"{trace}" if fleet == UNLIMITED else f"{trace}, fleet {fleet}"
    figures = [
        Figure(f"{slug}-{figure}", caption, charts.intervals(middle, figure, HEADINGS[figure]))
        for figure, caption in CAPTIONS.items()
        if named[figure].notna().all()
    ]
    draws = int(rows["draws"].max())
    text = "One draw." if draws == 1 else f"{draws:,} draws."
    return Section(slug, title, text, tuple(figures), _numbers(middle), notes=marked_notes(rows))


def _proven(results: pd.DataFrame) -> str:
    """The share of proven optima: one per trace and fleet, however many strategies were compared with it."""
    optima = results.drop_duplicates(["trace", "fleet", "draw"])["proven"].dropna()
    return f"{100 * optima.mean():.0f} %" if len(optima) else "–"


def _numbers(middle: pd.DataFrame) -> pd.DataFrame:
    """A row per strategy: the middle of every figure, and as text its range where draws differ."""
    table = middle[["strategy"]].copy()
    for figure, heading in HEADINGS.items():
        table[heading] = middle[figure]
        if figure == "wastage_pct" and over_budget(middle).any():
            table["note"] = over_budget(middle).map({True: f"{MARK} not comparable", False: ""})
        if (middle[f"{figure}_low"] != middle[f"{figure}_high"]).any() and middle[figure].notna().all():
            table[f"{heading.removesuffix(', %')}: range"] = middle.apply(interval_text, axis=1, figure=figure)
        if figure == "violations_pct" and middle["expected_violations_pct"].notna().any():
            table["expected, %"] = middle["expected_violations_pct"]
    return table
