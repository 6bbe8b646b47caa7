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

INTERVALS = "Medians over the draws, means of SLA violations; in parentheses the range of at least four draws in five."


def as_table(statistics: pd.DataFrame) -> str:
    """A row per strategy; columns in which all rows are alike are left out."""
    columns = [name for name in BY if name in ("strategy", "predictor") or statistics[name].nunique(dropna=False) > 1]
    expected = statistics["expected_violations_pct"].notna().any()
    headings = [*columns, "draws", "NICs", "wastage %", "SLA violations %", *(["expected %"] if expected else []),
                "rejected"]  # fmt: skip
    figures = ("nics", "wastage_pct", "violations_pct", "rejected")
    rows = [
        [
            *(_label(row[name]) for name in columns),
            str(row["draws"]),
            *(_figure(row, figure, marked and figure == "wastage_pct") for figure in figures[:3]),
            *([_expected(row)] if expected else []),
            _figure(row, figures[3], False),
        ]
        for (_, row), marked in zip(statistics.iterrows(), over_budget(statistics), strict=True)
    ]
    notes = [recommendation(statistics), *marked_notes(statistics)]
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
    """A strategy with its predictor, and its budget or risk where that has an effect."""
    words = [str(row["strategy"])]
    if not pd.isna(row["predictor"]):
        words.append(str(row["predictor"]))
    if pd.isna(row["chosen_risk"]):
        return ", ".join(words)
    at = f"risk {row['risk']:g}" if pd.isna(row["budget_pct"]) else f"budget {row['budget_pct']:g} %"
    return f"{', '.join(words)} at {at}"


def interval_text(row: pd.Series[Any], figure: str) -> str:
    """The range of at least four draws in five."""
    digits = 1 if figure.endswith("pct") else 0
    low, high = (f"{row[f'{figure}{end}']:,.{digits}f}" for end in ("_low", "_high"))
    return low if low == high else f"{low} to {high}"


def over_budget(statistics: pd.DataFrame) -> pd.Series[bool]:
    """Per row, whether the mean of SLA violations is above the budget of the study."""
    return statistics["violations_mean_pct"].gt(budget_of(statistics))


def budget_of(statistics: pd.DataFrame) -> float:
    """The SLA violations that the study accepts, %: the largest of its budgets, the default where risks were given."""
    largest = statistics["budget_pct"].max()
    return DEFAULT_BUDGET_PCT if pd.isna(largest) else float(largest)


def misses_budget(statistics: pd.DataFrame) -> bool:
    """Whether a strategy that chooses its risk by a budget misses it by the ground truth."""
    chooses = statistics["chosen_risk"].notna() & statistics["budget_pct"].notna()
    return bool((over_budget(statistics) & chooses).any())


def marked_notes(statistics: pd.DataFrame) -> tuple[str, ...]:
    """What the mark means, where a row has it."""
    if not over_budget(statistics).any():
        return ()
    return (f"{MARK} not comparable with the optimum: more than {budget_of(statistics):g} % SLA violations.",)


def recommendation(statistics: pd.DataFrame) -> str:
    """The strategy of least wastage among those that keep the budget of SLA violations and reject no arrival."""
    online = statistics[statistics["strategy"] != "optimal"]
    if online.empty:
        return "The study holds the optimum only, no strategy to compare with it."
    named = online.assign(
        option=[option_name(row) for _, row in online.iterrows()],
        # without a ground truth the expected violations count, and unknown ones exclude no strategy
        violations=online["violations_mean_pct"].fillna(online["expected_violations_pct"]).fillna(0.0),
    )
    options = named.groupby("option", sort=False)
    wastage, budget = options["wastage_pct"].mean(), budget_of(statistics)
    acceptable = (options["violations"].max() <= budget) & (options["rejected_high"].max() == 0)
    kept = wastage[acceptable].dropna()
    if not acceptable.any():
        return f"No strategy places every arrival with at most {budget:g} % SLA violations."
    if kept.empty:
        return "Wastage is unknown: there is no optimum to compare with."
    best, within = str(kept.idxmin()), f"with at most {budget:g} % SLA violations"
    if len(statistics[["trace", "fleet"]].drop_duplicates()) == 1:
        return f"Least wastage {within}: {best}, {kept.min():+.1f} % (median)."
    return f"Least wastage {within} on every trace: {best}, {kept.min():+.1f} % (mean of the medians)."


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


def _expected(row: pd.Series[Any]) -> str:
    return "-" if pd.isna(row["expected_violations_pct"]) else f"{row['expected_violations_pct']:.1f}"


def _figure(row: pd.Series[Any], figure: str, marked: bool) -> str:
    if pd.isna(row[MIDDLE[figure]]):
        return UNKNOWN
    middle = f"{row[MIDDLE[figure]]:,.{1 if figure.endswith('pct') else 0}f}"
    interval = interval_text(row, figure)
    text = middle if interval == middle else f"{middle} ({interval})"
    return f"{text} {MARK}" if marked else text
