"""The page of a study: medians with their spread, strategy by strategy."""

from __future__ import annotations

from typing import Any

import pandas as pd

from placer.report.html import Figure, Page, Section, Tile, charts
from placer.report.html.run import BUDGET_PCT
from placer.studies.statistics import MIDDLE, range_of
from placer.studies.study import UNLIMITED

HEADINGS = {"nics": "NICs", "wastage_pct": "wastage, %", "violations_pct": "SLAs broken, %", "rejected": "rejected"}


def page_of_study(name: str, spread: pd.DataFrame, results: pd.DataFrame) -> Page:
    """What a study found, on a page.

    Parameters
    ----------
    name
        Of the study.
    spread
        Medians and spread, of `spread_of`.
    results
        Rows of `conduct`.
    """
    groups, kinds = spread.groupby(["trace", "fleet"], sort=False), spread["trace"].nunique()
    sections = [_section(number, rows) for number, (_, rows) in enumerate(groups, start=1)]
    return Page(
        title=f"Study: {name}",
        summary=(_best(spread), judged_by(results)),
        tiles=(
            Tile(f"{len(results):,}", "plans"),
            Tile(f"{kinds:,}", "kind of trace" if kinds == 1 else "kinds of trace"),
            Tile(f"{int(spread['draws'].max()):,}", "draws of each at most"),
            Tile(f"{100 * _optima(results)['proven'].mean():.0f} %", "of optima proven"),
        ),
        sections=tuple(sections),
    )


def _optima(results: pd.DataFrame) -> pd.DataFrame:
    """A row per trace that was placed, whatever the number of plans beside its optimum."""
    return results.drop_duplicates(["trace", "fleet", "draw"])


def judged_by(results: pd.DataFrame) -> str:
    """Who told the true throughputs, in a sentence."""
    judges = sorted(set(results["truth"]))
    if judges == ["simulated"]:
        return "Throughputs are judged on the simulated card, not on hardware."
    if judges == ["predicted"]:
        return "Nobody told the truth: whether SLAs break is unknown."
    return f"Throughputs are judged by: {', '.join(judges)}."


def curve_of(row: pd.Series[Any]) -> str:
    """A strategy with its predictor and risk, in words."""
    words = [str(row["strategy"])]
    if not pd.isna(row["predictor"]):
        words.append(str(row["predictor"]))
    return ", ".join(words) + ("" if pd.isna(row["risk"]) else f" at risk {row['risk']:g}")


def _best(spread: pd.DataFrame) -> str:
    online = spread[spread["strategy"] != "optimal"]
    if online.empty:
        return "Nothing but the optimum was placed."
    curves = online.assign(curve=online.apply(curve_of, axis=1)).groupby("curve", sort=False)
    wastage, broken = curves["wastage_pct"].mean(), curves["violations_mean_pct"].max()
    # where nobody tells the truth, nobody can say that SLAs break
    kept = wastage[(broken.fillna(0.0) <= BUDGET_PCT) & (curves["rejected_high"].max() == 0)]
    if kept.empty:
        return f"No strategy places everybody and keeps broken SLAs at {BUDGET_PCT:g} % or less."
    best = str(kept.idxmin())
    within = f"with at most {BUDGET_PCT:g} % of SLAs broken"
    if len(spread[["trace", "fleet"]].drop_duplicates()) == 1:
        return f"Least waste {within}: {best}, {kept.min():+.1f} % over the optimum in the median."
    return f"Least waste {within} everywhere: {best}, {kept.min():+.1f} % over the optimum, the mean of the medians."


def _section(number: int, rows: pd.DataFrame) -> Section:
    trace, fleet = rows["trace"].iloc[0], rows["fleet"].iloc[0]
    named = rows.assign(strategy=rows.apply(curve_of, axis=1))
    middle = named.assign(**{figure: named[column] for figure, column in MIDDLE.items()})
    slug = "".join(letter if letter.isalnum() else "-" for letter in f"{number}-{trace}-{fleet}".lower())
    title = f"{trace}" if fleet == UNLIMITED else f"{trace}, fleet {fleet}"
    figures = [
        Figure(f"{slug}-{figure}", told, charts.ranged(middle, figure, HEADINGS[figure]))
        for figure, told in (
            ("wastage_pct", "NICs over the optimum: the median, and where at least four draws of five lie."),
            ("violations_pct", "Instances below their SLA: the mean, and where at least four draws of five lie."),
        )
        if named[figure].notna().all()
    ]
    draws = int(rows["draws"].max())
    told = "One draw." if draws == 1 else f"{draws:,} draws."
    return Section(slug, title, told, tuple(figures), _numbers(middle))


def _numbers(middle: pd.DataFrame) -> pd.DataFrame:
    """A row per strategy: of every figure its middle, and in words where at least four draws of five lie."""
    told = middle[["strategy"]].copy()
    for figure, heading in HEADINGS.items():
        told[heading] = middle[figure]
        if (middle[f"{figure}_low"] != middle[f"{figure}_high"]).any() and middle[figure].notna().all():
            told[f"{heading.removesuffix(', %')}: range"] = middle.apply(range_of, axis=1, figure=figure)
    return told
