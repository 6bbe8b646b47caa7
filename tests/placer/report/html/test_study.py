"""The pages of studies and sizings: what their first sentence says, and that no two charts share a name."""

from __future__ import annotations

import pandas as pd
import pytest

from placer.report.html.page import render
from placer.report.html.study import page_of_study
from placer.report.text.study import BY
from placer.studies.statistics import spread_of


def results(*plans: tuple[str, str, float, float]) -> pd.DataFrame:
    """Rows of a study by hand: trace, strategy, wastage and SLAs broken."""
    told = {"draw": 0, "fleet": "unlimited", "predictor": None, "risk": None, "nics": 5, "cost": 5.0, "rejected": 0,
            "proven": True, "truth": "simulated"}  # fmt: skip
    return pd.DataFrame(
        [
            {**told, "trace": trace, "strategy": strategy, "wastage_pct": wastage, "violations_pct": broken}
            for trace, strategy, wastage, broken in plans
        ]
    )


@pytest.mark.parametrize(
    ("plans", "told"),
    [
        ([("t", "rash", 1.0, 9.0), ("t", "safe", 4.0, 1.0), ("t", "optimal", 0.0, 0.0)],
         "Least waste with at most 2 % of SLAs broken: safe, +4.0 % over the optimum in the median."),
        ([("t", "rash", 1.0, 9.0)], "No strategy places everybody and keeps broken SLAs at 2 % or less."),
        ([("t", "rash", 1.0, 0.0), ("u", "rash", 1.0, 3.0), ("t", "safe", 6.0, 1.0), ("u", "safe", 4.0, 2.0)],
         "Least waste with at most 2 % of SLAs broken everywhere: safe, +5.0 % over the optimum, "
         "the mean of the medians."),
        ([("t", "optimal", 0.0, 0.0)], "Nothing but the optimum was placed."),
    ],
)  # fmt: skip
def test_the_first_sentence_is_the_decision(plans: list[tuple[str, str, float, float]], told: str) -> None:
    """What wastes least is named only if it breaks few enough SLAs; the optimum is no choice."""
    rows = results(*plans)
    assert page_of_study("s", spread_of(rows, BY), rows).summary[0] == told


def test_who_leaves_somebody_out_is_no_choice() -> None:
    """A strategy that needs few NICs because it rejects arrivals is not the one that wastes least."""
    rows = results(("t", "small", 0.0, 0.0), ("t", "safe", 4.0, 0.0))
    rows.loc[rows["strategy"] == "small", "rejected"] = 3
    assert "safe, +4.0 %" in page_of_study("s", spread_of(rows, BY), rows).summary[0]


def test_numbers_have_their_range_beside_them() -> None:
    """Where draws differ a column says between what, and broken SLAs are their mean."""
    rows = results(*(("t", "greedy", float(draw), broken) for draw, broken in enumerate((0.0, 0.0, 3.0))))
    (section,) = page_of_study("s", spread_of(rows, BY), rows).sections
    assert section.table is not None
    assert section.table.to_dict("records") == [
        {"strategy": "greedy", "NICs": 5, "wastage, %": 1.0, "wastage: range": "0.0 to 2.0", "SLAs broken, %": 1.0,
         "SLAs broken: range": "0.0 to 3.0", "rejected": 0}
    ]  # fmt: skip


def test_traces_of_alike_names_have_charts_of_their_own() -> None:
    """`a b` and `a-b` are two sections with two names, and a page can be made of them."""
    rows = results(("a b", "greedy", 1.0, 0.0), ("a-b", "greedy", 2.0, 0.0))
    page = page_of_study("s", spread_of(rows, BY), rows)
    names = [figure.name for section in page.sections for figure in section.figures]
    assert len(names) == len(set(names)) == 4
    assert all(f'id="chart-{name}"' in render(page) for name in names)
