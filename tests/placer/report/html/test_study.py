"""The page of a study: its first sentence, its numbers, and names of charts."""

import pandas as pd
import pytest

from placer.report.html.page import render
from placer.report.html.study import page_of_study
from placer.report.text.study import as_table, note_marks
from placer.studies.statistics import GROUP_COLUMNS, summarize


def results(*plans: tuple[str, str, float, float]) -> pd.DataFrame:
    """Rows of a study: trace, strategy, wastage and SLA violations."""
    fixed = {"draw": 0, "fleet": "unlimited", "predictor": None, "risk": None, "nics": 5, "cost": 5.0, "rejected": 0,
            "proven": True, "truth": "simulated"}  # fmt: skip
    return pd.DataFrame(
        [
            {**fixed, "trace": trace, "strategy": strategy, "wastage_pct": wastage, "violations_pct": violations}
            for trace, strategy, wastage, violations in plans
        ]
    )


UNKNOWN = float("nan")
BEST_IS_SAFE = "Least wastage with at most 2 % SLA violations: safe, +4.0 % (median)."


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (results(("t", "rash", 1.0, 9.0), ("t", "safe", 4.0, 1.0), ("t", "optimal", 0.0, 0.0)), BEST_IS_SAFE),
        (results(("t", "rash", 1.0, 9.0)),
         "rash (no other strategy was compared): wastage +1.0 % (median), 9.0 % SLA violations; more than the budget "
         "of 2 %."),
        (results(("t", "safe", 1.0, 2.0), ("t", "optimal", 0.0, 0.0)),
         "safe (no other strategy was compared): wastage +1.0 % (median), 2.0 % SLA violations; the budget is 2 %."),
        (results(("t", "rash", 1.0, 9.0), ("t", "bold", 5.0, 3.0)),
         "No strategy keeps the budget of 2 % SLA violations; the closest one: bold, wastage +5.0 % (median), 3.0 % "
         "SLA violations."),
        (results(("t", "rash", 1.0, 0.0), ("u", "rash", 1.0, 3.0), ("t", "safe", 6.0, 1.0), ("u", "safe", 4.0, 2.0)),
         "Least wastage with at most 2 % SLA violations on every trace: safe, +5.0 % (mean of the medians)."),
        (results(("t", "optimal", 0.0, 0.0)), "The study holds the optimum only, no strategy to compare with it."),
        # few NICs are no advantage when arrivals are rejected
        (results(("t", "small", 0.0, 0.0), ("t", "safe", 4.0, 0.0)).assign(rejected=[3, 0]), BEST_IS_SAFE),
        # the rash one rejects none and violates too much; of the others, the one that rejects less is named
        (results(("t", "rash", 0.0, 9.0), ("t", "small", 0.0, 0.0), ("t", "safe", 4.0, 0.0)).assign(
            rejected=[0, 3, 1]),
         "No strategy places every arrival with at most 2 % SLA violations; fewest are rejected by safe, wastage "
         "+4.0 % (median), 1 arrival rejected."),
        # without a ground truth, a strategy that is expected to miss the budget is not recommended
        (results(("t", "rash", 1.0, UNKNOWN), ("t", "safe", 4.0, UNKNOWN)).assign(
            expected_violations_pct=[5.0, 1.0], budget_pct=2.0),
         BEST_IS_SAFE),
        (results(("t", "rash", UNKNOWN, 5.0), ("t", "safe", UNKNOWN, 1.0)),
         "Wastage is unknown: there is no optimum to compare with."),
    ],
)  # fmt: skip
def test_the_first_sentence_is_the_decision(rows: pd.DataFrame, sentence: str) -> None:
    """The strategy of least wastage is named only if it keeps the budget; the optimum is no choice."""
    assert page_of_study("s", summarize(rows, GROUP_COLUMNS), rows).summary[0] == sentence


def test_an_optimum_that_is_not_proven_is_marked() -> None:
    """Its wastage is relative to a lower bound, in text and HTML; that of a proven one is 0."""
    rows = results(("t", "safe", 4.0, 1.0), ("t", "optimal", 1.9, 0.0))
    statistics = summarize(rows, GROUP_COLUMNS)
    table = as_table(statistics)
    assert "1.9 **" in table
    assert "\n** the best plans found, not all proven optimal: wastage is relative to lower bounds.\n" in table
    (section,) = page_of_study("s", statistics, rows).sections
    assert section.table is not None and section.table["note"].tolist() == ["", "** not proven"]
    assert "**" not in as_table(summarize(results(("t", "safe", 4.0, 1.0), ("t", "optimal", 0.0, 0.0)), GROUP_COLUMNS))


def test_numbers_have_their_range_in_the_next_column() -> None:
    """Where draws differ, a column holds their range; SLA violations are the mean."""
    rows = results(*(("t", "greedy", float(draw), violations) for draw, violations in enumerate((0.0, 0.0, 3.0))))
    (section,) = page_of_study("s", summarize(rows, GROUP_COLUMNS), rows).sections
    assert section.table is not None
    assert section.table.to_dict("records") == [
        {"strategy": "greedy", "NICs": 5, "wastage, %": 1.0, "wastage: range": "0.0 to 2.0", "SLA violations, %": 1.0,
         "SLA violations: range": "0.0 to 3.0", "rejected": 0}
    ]  # fmt: skip


@pytest.mark.long
def test_charts_of_traces_with_similar_names_have_different_names() -> None:
    """`a b` and `a-b` are two sections, and their charts have four names."""
    rows = results(("a b", "greedy", 1.0, 0.0), ("a-b", "greedy", 2.0, 0.0))
    page = page_of_study("s", summarize(rows, GROUP_COLUMNS), rows)
    names = [figure.name for section in page.sections for figure in section.figures]
    assert len(names) == len(set(names)) == 4 and all(f'id="chart-{name}"' in render(page) for name in names)


def test_wastage_with_too_many_violations_is_marked() -> None:
    """A strategy above the budget has a mark and a note in text and HTML, others have none."""
    rows = results(("t", "rash", -20.0, 9.0), ("t", "safe", 4.0, 1.0))
    statistics = summarize(rows, GROUP_COLUMNS)
    rash, safe = as_table(statistics).splitlines()[1:3]
    assert "-20.0 *" in rash and "*" not in safe
    (note,) = note_marks(statistics)
    assert note == "* not comparable with the optimum: more than 2 % SLA violations."
    assert note in as_table(statistics)
    (section,) = page_of_study("s", statistics, rows).sections
    assert section.table is not None and section.table["note"].tolist() == ["* not comparable", ""]
    assert section.notes == (note,) and note not in as_table(summarize(rows[1:], GROUP_COLUMNS))


def test_a_study_without_wastage_and_truth_has_a_page() -> None:
    """Unknown figures have no charts, and no strategy is known to keep the budget."""
    unknown = float("nan")
    rows = results(("t", "safe", unknown, unknown), ("t", "other", unknown, unknown)).assign(truth="predicted")
    page = page_of_study("s", summarize(rows, GROUP_COLUMNS), rows)
    assert page.summary[0] == "No strategy is known to keep the budget of 2 % SLA violations: they are unknown."
    assert [section.figures for section in page.sections] == [()]
    assert "SLA violations are unknown" in render(page)


def test_a_study_without_rows_has_a_page() -> None:
    """No section, and no fault."""
    rows = results(("t", "safe", 1.0, 1.0))[:0]
    page = page_of_study("s", summarize(rows, GROUP_COLUMNS), rows)
    assert page.sections == () and render(page)


def test_a_strategy_for_a_smaller_budget_is_recommended_before_another() -> None:
    """The budget of a study is its largest; 3 % violations keep none of 2 %, so the plans for 1 % are the choice."""
    fixed = {"predictor": "tomur", "risk": 0.1, "expected_violations_pct": 0.5}
    rows = pd.concat(
        [
            results(("t", "greedy", 30.0, 0.0)).assign(budget_pct=2.0),
            results(("t", "aware", 1.0, 3.0)).assign(budget_pct=2.0, **fixed),
            results(("t", "aware", 2.0, 1.5)).assign(budget_pct=1.0, **fixed),
        ],
        ignore_index=True,
    )
    statistics = summarize(rows, GROUP_COLUMNS)
    text = as_table(statistics)
    assert "Least wastage with at most 2 % SLA violations: aware, tomur at budget 1 %, +2.0 % (median)." in text
    assert text.splitlines()[0].split()[2] == "budget_pct"
    kept = {(row["strategy"], row["budget_pct"]): row["keeps_budget"] for row in statistics.to_dict("records")}
    assert kept == {("greedy", 2.0): True, ("aware", 1.0): False, ("aware", 2.0): False}


@pytest.mark.parametrize(
    ("truth", "sentence"),
    [
        ("simulated", "Throughput is measured on the simulated card, not on hardware."),
        ("predicted", "There is no ground truth: SLA violations are unknown."),
        ("lab-3", "Throughput is measured by: lab-3."),
    ],
)
def test_the_table_ends_with_the_ground_truth(truth: str, sentence: str) -> None:
    """As the page does."""
    rows = results(("t", "safe", 4.0, 1.0)).assign(truth=truth)
    assert as_table(summarize(rows, GROUP_COLUMNS)).endswith(f"\n{sentence}\n")
    assert summarize(rows, GROUP_COLUMNS)["truth"].tolist() == [truth]
