"""The statistics of a study as a table for people, and as JSON and CSV for programs (docs/formats/study.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from placer.evaluate.wastage import LEAST_DIFFERENCE, MARK, UNPROVEN
from placer.model.catalogue import DEFAULT_BUDGET_PCT
from placer.model.plan import OPTIMAL
from placer.report.text.table import count_noun, text_table
from placer.studies.statistics import GROUP_COLUMNS, MIDDLE_COLUMNS

UNKNOWN_TEXT = "unknown"

INTERVALS_NOTE = (
    "Medians over the draws, means of SLA violations; in parentheses the range of at least four draws in five."
)


def as_table(statistics: pd.DataFrame) -> str:
    """A row per strategy; columns in which all rows are alike are left out."""
    columns = [
        name
        for name in GROUP_COLUMNS
        if name in ("strategy", "predictor") or statistics[name].nunique(dropna=False) > 1
    ]
    expected = statistics["expected_violations_pct"].notna().any()
    headings = [*columns, "draws", "NICs", "wastage %", "SLA violations %", *(["expected %"] if expected else []),
                "rejected"]  # fmt: skip
    figures = ("nics", "wastage_pct", "violations_pct", "rejected")
    rows = [
        [
            *(_label(row[name]) for name in columns),
            str(row["draws"]),
            *(_figure(row, figure, mark if figure == "wastage_pct" else "") for figure in figures[:3]),
            *([_format_expected(row)] if expected else []),
            _figure(row, figures[3], ""),
        ]
        for (_, row), mark in zip(statistics.iterrows(), marks(statistics), strict=True)
    ]
    notes = [recommendation(statistics), *note_marks(statistics)]
    notes += [INTERVALS_NOTE] if (statistics["draws"] > 1).any() else []
    notes += [truth_sentence(statistics)] if "truth" in statistics and len(statistics) else []
    return text_table(headings, rows, words=len(columns)) + "".join(f"\n{note}" for note in notes) + "\n" * bool(notes)


def as_json(statistics: pd.DataFrame) -> str:
    """A list of objects, one per row."""
    return statistics.to_json(orient="records", indent=2, double_precision=6) + "\n"


def as_csv(statistics: pd.DataFrame) -> str:
    """The rows as they are."""
    return statistics.to_csv(index=False, float_format="%.6g", lineterminator="\n")


STUDY_FORMATS: dict[str, Callable[[pd.DataFrame], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
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


def marks(statistics: pd.DataFrame) -> list[str]:
    """Per row, what follows its wastage: a mark for too many SLA violations, or for an optimum that is not proven."""
    unproven = (statistics["strategy"] == OPTIMAL) & (statistics["wastage_pct_high"] > LEAST_DIFFERENCE)
    return [
        MARK if over else UNPROVEN if above else ""
        for over, above in zip(over_budget(statistics), unproven, strict=True)
    ]


def note_marks(statistics: pd.DataFrame) -> tuple[str, ...]:
    """What each mark means, where a row has it."""
    meanings = {
        MARK: f"{MARK} not comparable with the optimum: more than {budget_of(statistics):g} % SLA violations.",
        UNPROVEN: f"{UNPROVEN} the best plans found, not all proven optimal: wastage is relative to lower bounds.",
    }
    used = set(marks(statistics))
    return tuple(meaning for mark, meaning in meanings.items() if mark in used)


def recommendation(statistics: pd.DataFrame) -> str:
    """The strategy to choose: of those that keep the budget of SLA violations, least rejections, then least wastage.
    The budget is kept by the ground truth, or else by what is expected; where neither is known, it is not."""
    online = statistics[statistics["strategy"] != OPTIMAL]
    if online.empty:
        return "The study holds the optimum only, no strategy to compare with it."
    named = online.assign(
        option=[option_name(row) for _, row in online.iterrows()],
        violations=online["violations_mean_pct"].fillna(online["expected_violations_pct"]),
    )
    groups = named.groupby("option", sort=False)
    options = pd.DataFrame(
        {
            "violations": groups["violations"].agg(lambda known: known.max(skipna=False)),
            "rejected": groups["rejected_high"].max(),
            "wastage": groups["wastage_pct"].mean(),
        }
    )
    budget, traces = budget_of(statistics), len(statistics[["trace", "fleet"]].drop_duplicates())
    kept = options[options["violations"] <= budget].sort_values(["rejected", "wastage"], kind="stable")
    by_violations = options.sort_values(["violations", "rejected", "wastage"], kind="stable")
    best = (by_violations if kept.empty else kept).iloc[0]
    wastage, violations = _wastage_of(best, traces), f"{best['violations']:.1f} % SLA violations"
    if len(options) == 1:
        verdict = "the budget is" if len(kept) else "more than the budget of"
        known = "SLA violations unknown" if pd.isna(best["violations"]) else f"{violations}; {verdict} {budget:g} %"
        return f"{best.name} (no other strategy was compared): wastage {wastage}, {known}."
    if kept.empty and pd.isna(best["violations"]):
        return f"No strategy is known to keep the budget of {budget:g} % SLA violations: they are unknown."
    if kept.empty:
        start = f"No strategy keeps the budget of {budget:g} % SLA violations"
        return f"{start}; the closest one: {best.name}, wastage {wastage}, {violations}."
    on_every = " on every trace" if traces > 1 else ""
    if best["rejected"]:
        start = f"No strategy places every arrival with at most {budget:g} % SLA violations{on_every}"
        return f"{start}; fewest are rejected by {best.name}, wastage {wastage}."
    if pd.isna(best["wastage"]):
        return "Wastage is unknown: there is no optimum to compare with."
    return f"Least wastage with at most {budget:g} % SLA violations{on_every}: {best.name}, {wastage}."


def _wastage_of(option: pd.Series[Any], traces: int) -> str:
    """Wastage, and the arrivals rejected if any."""
    unknown, of = pd.isna(option["wastage"]), "median" if traces == 1 else "mean of the medians"
    wastage = "unknown" if unknown else f"{option['wastage']:+.1f} % ({of})"
    rejected = int(option["rejected"])
    return f"{wastage}, {count_noun(rejected, 'arrival')} rejected" if rejected else wastage


def truth_sentence(results: pd.DataFrame) -> str:
    """Where the ground truth of a study comes from; rows of results or of their statistics."""
    truths = sorted(set(results["truth"]))
    if truths == ["simulated"]:
        return "Throughput is measured on the simulated card, not on hardware."
    if truths == ["predicted"]:
        return "There is no ground truth: SLA violations are unknown."
    return f"Throughput is measured by: {', '.join(truths)}."


def _label(value: Any) -> str:
    return "-" if pd.isna(value) else f"{value:g}" if isinstance(value, float) else str(value)


def _format_expected(row: pd.Series[Any]) -> str:
    return "-" if pd.isna(row["expected_violations_pct"]) else f"{row['expected_violations_pct']:.1f}"


def _figure(row: pd.Series[Any], figure: str, mark: str) -> str:
    if pd.isna(row[MIDDLE_COLUMNS[figure]]):
        return UNKNOWN_TEXT
    middle = f"{row[MIDDLE_COLUMNS[figure]]:,.{1 if figure.endswith('pct') else 0}f}"
    interval = interval_text(row, figure)
    text = middle if interval == middle else f"{middle} ({interval})"
    return f"{text} {mark}" if mark else text
