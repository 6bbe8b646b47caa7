"""Every section of a run's page with empty data, and runs that leave tables empty."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from placer.explain.waste import Waste
from placer.model.plan import Placement
from placer.progress import Progress
from placer.report.html import Page, Section, page_of_run
from placer.report.html.page import render
from placer.report.html.run import (
    agreement_section,
    co_locations,
    compare_with_truth,
    drops,
    drops_section,
    idle_capacity,
    idle_section,
    nics_over_time,
    occupancy,
    occupancy_section,
    over_time_section,
    sections_of_run,
    violations,
    violations_section,
)
from placer.run import Comparison, RunRequest, run


@pytest.fixture(scope="module")
def nothing(comparison: Comparison) -> Comparison:
    """The run as if every plan, the optimum included, rejected every arrival."""
    rejected = tuple(map(Placement, comparison.arrivals))
    empty = tuple(
        replace(one, plan=replace(one.plan, placements=rejected), nics=0, cost=0.0, stays={}, expected={})
        for one in comparison.evaluations
    )
    plan = replace(comparison.optimum.plan, placements=rejected)
    optimum = replace(comparison.optimum, plan=plan, nics=0, cost=0.0, lower_bound=0.0, nics_lower_bound=0, proven=True)
    return replace(comparison, evaluations=empty, optimum=optimum)


def html(sections: Iterable[Section]) -> str:
    """The sections on a page; its script is left out."""
    return render(Page("page", (), (), tuple(sections))).partition("<noscript>")[0]


def without_chart(sections: Iterable[Section]) -> bool:
    """Whether the sections have no chart and can be rendered."""
    kept = list(sections)
    return bool(html(kept)) and not any(section.charts for section in kept)


def test_over_time_section_without_nics(nothing: Comparison) -> None:
    """No curve where no NIC is ever in use."""
    curves = nics_over_time(nothing)
    assert not curves["nics"].any()
    assert without_chart([over_time_section(curves, 0, "the optimum")])


def test_over_time_section_without_strategies(comparison: Comparison) -> None:
    """A run without evaluations has no curve either."""
    curves = nics_over_time(replace(comparison, evaluations=()))
    assert curves.empty
    assert without_chart([over_time_section(curves, 0, "the optimum")])


def test_occupancy_section_without_nics(nothing: Comparison) -> None:
    """No bar, no co-location."""
    table = occupancy(nothing)
    assert table.empty
    plan = nothing.evaluations[0].plan
    assert without_chart([occupancy_section(table, co_locations(plan), 8, "greedy")])


def test_agreement_section_without_predictions(nothing: Comparison) -> None:
    """The section is left out."""
    table = compare_with_truth(nothing)
    assert table.empty
    assert not list(agreement_section(table, ["greedy"]))


def test_drops_section_without_drops(nothing: Comparison) -> None:
    """The section is left out."""
    table = drops(nothing.evaluations[0].plan, [])
    assert table.empty
    assert not list(drops_section(table, "tomur", "greedy"))


def test_idle_section_without_idle_capacity() -> None:
    """A sentence instead of a chart; with no NIC at all, too."""
    for waste in (Waste(2, 2.0, {}), Waste(0, 0.0, {})):
        table = idle_capacity(waste)
        assert list(table.columns) == ["cause", "NICs", "pct"]
        section = idle_section(table, waste.nics)
        assert without_chart([section])
        assert section.text.startswith("No capacity is idle" if waste.nics else "No NIC is in use")


def test_violations_section_without_violations(nothing: Comparison) -> None:
    """The section is left out; so it is without a ground truth."""
    chosen = nothing.evaluations[0]
    for evaluation in (chosen, replace(chosen, stays=None)):
        table = violations(evaluation)
        assert table.empty
        assert not list(violations_section(table, "greedy"))


def test_strategies_section_with_zero_nics(nothing: Comparison) -> None:
    """Bars of length 0, and a note instead of wastage."""
    section = next(iter(sections_of_run(nothing, nothing.evaluations[0])))
    assert section.name == "strategies"
    assert "Wastage is undefined" in section.notes[0]
    assert section.table is not None
    assert "wastage, %" not in section.table
    assert html([section])


@pytest.mark.parametrize("chosen", range(5))
def test_a_page_of_nothing_is_rendered(nothing: Comparison, chosen: int) -> None:
    """Whichever plan is chosen."""
    assert html(sections_of_run(nothing, nothing.evaluations[chosen]))
    assert render(page_of_run(nothing, "nothing.csv"))


def test_a_plan_without_idle_capacity_has_a_page(tmp_path: Path) -> None:
    """Four NATs with loose SLAs fill their NIC: the page says that no capacity is idle."""
    trace = tmp_path / "four.csv"
    trace.write_text("id,time,nf,sla_drop\n" + "".join(f"n{i},{i},NAT,0.5\n" for i in range(4)), encoding="utf-8")
    page = page_of_run(run(RunRequest(str(trace)), Progress(quiet=True)), "four.csv")
    (section,) = (section for section in page.sections if section.name == "waste")
    assert section.text == "No capacity is idle at the peak: every core of the NICs in use is taken."
    assert render(page)
