"""The page of reproduced tables and figures."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from experiments import CannotRun, Experiment, Outcome, Paper, Result, Setting, page_of_outcomes, write_result

PAPERS = Paper("One", "One: A Paper", "Doe et al."), Paper("Two", "Two: Another", "Roe et al.")


def unused(setting: Setting) -> Result:
    """Never called: the outcomes are given."""
    raise CannotRun("unused")


@pytest.fixture()
def outcomes(tmp_path: Path) -> list[Outcome]:
    """A result of the first paper and a skipped experiment of the second; the plot is in `tmp_path`."""
    table = pd.DataFrame({"nf": ["NAT"], "published_mape_pct": [1.0], "solo_kpps": [2.0], "verdict": ["differs"]})
    result = Result(table, ("Card: all runs.",), lambda figure: None, ("Invented.",))
    ran, skipped = (Experiment(paper, f"table{paper.name}", "A title", unused) for paper in PAPERS)
    write_result(ran, result, tmp_path)
    return [Outcome(ran, result), Outcome(skipped, reason="no card is available")]


def test_the_title_names_every_paper(outcomes: list[Outcome], tmp_path: Path) -> None:
    """The summary cites them in full."""
    page = page_of_outcomes(outcomes, Setting(), tmp_path)
    assert page.title == "One, Two: reproduced tables and figures"
    assert "Papers: One: A Paper (Doe et al.); Two: Another (Roe et al.)." in page.summary[-1]


def test_the_summary_counts_rows_worse_or_different(outcomes: list[Outcome], tmp_path: Path) -> None:
    """One of one row differs, and one of two experiments ran."""
    summary = page_of_outcomes(outcomes, Setting(), tmp_path).summary[0]
    assert summary.startswith("1 of 2 experiments ran. Rows that are worse than published or different: 1 of 1.")


def test_a_section_has_headings_with_units_and_notes(outcomes: list[Outcome], tmp_path: Path) -> None:
    """Column names become headings; testbeds come before the notes; a skipped experiment gives its reason."""
    _, ran, skipped = page_of_outcomes(outcomes, Setting(), tmp_path).sections
    assert ran.table is not None
    assert list(ran.table) == ["NF", "published MAPE, %", "solo, kpps", "verdict"]
    assert ran.notes == ("Testbed: Card: all runs.", "Invented.")
    assert skipped.title == "Two, tableTwo"
    assert "Skipped: no card is available" in repr(skipped)
