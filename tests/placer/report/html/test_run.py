"""The page of a run as a file, without a browser, section by section."""

import re
from collections.abc import Iterable
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from placer.explain.waste import Waste
from placer.inputs.catalogue import Cards
from placer.model.plan import Placement
from placer.progress import Progress
from placer.report.html import Page, Section, Tile, page_of_run, write_plots
from placer.report.html import run as run_page
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
from placer.report.text.recommendation import plan_name
from placer.run import Comparison, RunRequest, run
from traces.arrivals import Recipe, generate

EMPTY = Page("A <b>page</b>", ("One & all.",), (Tile("1", "NIC"),), (), "placer run")


class _Elements(HTMLParser):
    """Ids, and addresses that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if identity := values.get("id"):
            self.ids.append(identity)
        if values.get("src") or (tag == "link" and values.get("href")):
            self.fetched.append(f"{tag} {values}")


@pytest.mark.long
def test_the_file_needs_no_network(report: Path) -> None:
    """Nothing is fetched, the policy forbids it, every id is unique, and the file is small enough to mail."""
    text = report.read_text(encoding="utf-8")
    elements = _Elements()
    elements.feed(text)
    assert elements.fetched == [] and "default-src 'none'" in text
    assert len(elements.ids) == len(set(elements.ids)) and len(text) < 1_500_000


def test_the_same_run_gives_the_same_bytes(page: Page, report: Path) -> None:
    """A page is rendered to the same bytes again."""
    assert render(page) == report.read_text(encoding="utf-8")


def test_the_summary_begins_with_the_decision(page: Page, comparison: Comparison) -> None:
    """The first sentence has the NICs of the chosen plan, the last one the ground truth."""
    nics = {one.nics for one in comparison.evaluations}
    found = re.search(r"places 40 NF instances on (\d+) NICs", page.summary[0])
    assert found is not None and int(found[1]) in nics and "not on hardware" in page.summary[-1]


@pytest.mark.long
def test_a_plan_with_fewer_nics_but_too_many_violations_is_named(comparison: Comparison) -> None:
    """Where Tomur's plan violates too many SLAs another is chosen, and the page hints at a lower budget."""
    summary = page_of_run(_with_slas_met(comparison, by_tomur=False), "t.csv").summary
    assert summary[0].startswith("greedy places ")
    hints = [sentence for sentence in summary if "a lower --budget" in sentence]
    assert hints[0].startswith("contention-aware, tomur uses ")
    kept = page_of_run(_with_slas_met(comparison, by_tomur=True), "t.csv").summary
    assert not any("a lower --budget" in sentence for sentence in kept)


def _with_slas_met(comparison: Comparison, *, by_tomur: bool) -> Comparison:
    """Where every plan of a predictor violates all SLAs, or none."""
    evaluations = [
        replace(one, stays={name: replace(stay, sla_met=by_tomur) for name, stay in (one.stays or {}).items()})
        if one.plan.predictor
        else one
        for one in comparison.evaluations
    ]
    return replace(comparison, evaluations=tuple(evaluations))


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "sentence", "charts"),
    [
        ({"testbed": "none"}, "SLA violations are unknown", ["nics", "nics-over-time", "occupancy"]),
        (
            {"strategies": ("optimal",)},
            "optimal places 12 NF instances on",
            ["nics", "violations", "nics-over-time", "occupancy"],
        ),
        ({"sla": "1e9", "strategies": ("contention-aware",)}, "It rejects 12 arrivals: n0, n1", ["nics", "violations"]),
    ],
    ids=["no ground truth", "the optimum alone", "every arrival rejected"],
)
def test_unknown_figures_are_left_out(
    tmp_path: Path, options: dict[str, Any], sentence: str, charts: list[str]
) -> None:
    """Without ground truth, without a predictor, even without a placed arrival there is a page, and no empty chart."""
    trace = tmp_path / "arrivals.csv"
    trace.write_text("".join(generate(Recipe(count=12))), encoding="utf-8")
    if "sla" in options:
        rows = "".join(f"n{i},{i},NAT,{options['sla']}\n" for i in range(12))
        trace.write_text("id,time,nf,sla_min_kpps\n" + rows, encoding="utf-8")
    cards = Cards(testbed=options.get("testbed"))
    strategies = options.get("strategies", ("monopolization",))
    page = page_of_run(run(RunRequest(str(trace), strategies, cards=cards), Progress(quiet=True)), "-")
    assert any(sentence in paragraph for paragraph in page.summary)
    assert [figure.name for section in page.sections for figure in section.figures] == charts
    assert "standard input" in render(page)


def test_text_is_escaped() -> None:
    """Names of files and NFs are text, never markup."""
    table = pd.DataFrame({"<i>": ["</script><script>", None], "n": [1234.5, float("nan")]})
    text = render(Page("A <b>page</b>", ("One & all.",), (), (Section("s", "S", "<u>", table=table),), "placer run"))
    assert "<b>page" not in text and "<u>" not in text and "&lt;/script&gt;&lt;script&gt;" in text
    assert ">1,234<" in text or ">1,235<" in text
    assert ">–<" in text


def test_a_page_names_the_version_and_no_date() -> None:
    """So that the same program gives the same bytes, and pages of others show it."""
    footer = render(EMPTY).partition("<footer>")[2].partition("</footer>")[0]
    made_by = f"Made by <code>placer run</code>. placer {version('nf-placer')}."
    assert footer == f"<p>{made_by} This file needs no network.</p>"


def test_long_names_are_broken_into_lines(page: Page, comparison: Comparison) -> None:
    """A strategy and its predictor are two lines, on axes and in legends, and rows are higher for them."""
    charts = {figure.name: figure.chart.to_dict() for section in page.sections for figure in section.charts}
    bars, curves = charts["nics"], charts["nics-over-time"]
    assert bars["layer"][0]["encoding"]["y"]["axis"]["labelExpr"] == "split(datum.label, ', ')"
    assert curves["layer"][0]["encoding"]["color"]["legend"]["labelExpr"] == "split(datum.label, ', ')"
    assert bars["height"] == len(comparison.plans) * 34
    assert charts["occupancy"]["usermeta"]["axis"] == 6 * len("contention-aware")


def test_a_page_without_charts_carries_no_charting_library() -> None:
    """It stays small."""
    assert len(render(EMPTY)) < 20_000


@pytest.mark.long
def test_charts_are_files_for_papers_too(page: Page, tmp_path: Path) -> None:
    """Every chart is an SVG and a PNG in light colours."""
    written = write_plots(page, tmp_path)
    charts = [figure.name for section in page.sections for figure in section.figures]
    assert [path.name for path in written] == [f"{name}.{kind}" for name in charts for kind in ("svg", "png")]
    for path in written:
        content = path.read_bytes()
        assert content.startswith(b"<svg" if path.suffix == ".svg" else b"\x89PNG")
        assert b"var(--" not in content


def test_numbers_of_a_column_have_the_same_digits() -> None:
    """0.2 and 1 line up; whole numbers have no point."""
    table = pd.DataFrame({"violations": [0.2, 1.0], "NICs": [3.0, 1200.0], "kpps": [663.25, 1499.5]})
    page = replace(EMPTY, sections=(Section("s", "S", "Text.", table=table),))
    cells = re.findall(r'<td class="number"[^>]*>([^<]*)</td>', render(page))
    assert cells == ["0.20", "3", "663.2", "1.00", "1,200", "1,499.5"]


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


def test_over_time_section_without_nics_or_strategies(nothing: Comparison, comparison: Comparison) -> None:
    """No curve where no NIC is ever in use, or where a run has no evaluations."""
    unused, none = nics_over_time(nothing), nics_over_time(replace(comparison, evaluations=()))
    assert not unused["nics"].any() and none.empty
    assert all(without_chart([over_time_section(curves, 0, "the optimum")]) for curves in (unused, none))


def test_occupancy_section_without_nics(nothing: Comparison) -> None:
    """No bar, no co-location."""
    table = occupancy(nothing)
    assert table.empty
    assert without_chart([occupancy_section(table, co_locations(nothing.evaluations[0].plan), 8, "greedy")])


def test_sections_of_empty_tables_are_left_out(nothing: Comparison) -> None:
    """Of predictions, drops and violations; the last one also without a ground truth."""
    chosen = nothing.evaluations[0]
    assert not list(agreement_section(compare_with_truth(nothing), ["greedy"]))
    assert not list(drops_section(drops(chosen.plan, []), "tomur", "greedy"))
    for evaluation in (chosen, replace(chosen, stays=None)):
        assert not list(violations_section(violations(evaluation), "greedy"))


def test_idle_section_without_idle_capacity() -> None:
    """A sentence instead of a chart; with no NIC at all, too."""
    for waste in (Waste(2, 2.0, {}), Waste(0, 0.0, {})):
        table = idle_capacity(waste)
        assert list(table.columns) == ["cause", "NICs", "pct"]
        section = idle_section(table, waste.nics)
        assert without_chart([section])
        assert section.text.startswith("No capacity is idle" if waste.nics else "No NIC is in use")


def test_strategies_section_with_zero_nics(nothing: Comparison) -> None:
    """Bars of length 0, and a note instead of wastage."""
    section = next(iter(sections_of_run(nothing, nothing.evaluations[0])))
    assert section.name == "strategies" and "Wastage is undefined" in section.notes[0]
    assert section.table is not None and "wastage, %" not in section.table and html([section])


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


def test_the_curve_over_time_peaks_at_the_nics_that_are_reported(comparison: Comparison) -> None:
    """The maximum of every curve is the number of NICs of the strategy."""
    peaks = nics_over_time(comparison).groupby("strategy")["nics"].max()
    assert {plan_name(one): one.nics for one in comparison.evaluations} == peaks.to_dict()


def test_a_curve_of_many_moments_keeps_its_peak(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """A curve reduced to ten points still has its peak."""
    monkeypatch.setattr(run_page, "MOST_CURVE_POINTS", 10)
    curves = nics_over_time(comparison)
    assert curves.groupby("strategy").size().max() <= 11
    assert curves.groupby("strategy")["nics"].max().to_dict() == {
        plan_name(one): one.nics for one in comparison.evaluations
    }


def test_co_locations_add_up_to_the_nics_in_use(comparison: Comparison) -> None:
    """The NICs of all co-locations are those of the peak, and the average NIC uses at most its cores."""
    for one in comparison.evaluations:
        assert co_locations(one.plan)["NICs"].sum() == one.nics
    assert occupancy(comparison).groupby("strategy")["cores"].sum().max() <= 8


def test_every_sla_violation_is_listed(comparison: Comparison) -> None:
    """A row per violation, each with less throughput than required."""
    for one in comparison.evaluations:
        if one.violated:
            table = violations(one)
            assert len(table) == one.violated and (table["true, kpps"] < table["required, kpps"]).all()


def test_every_prediction_is_counted_once(comparison: Comparison) -> None:
    """Instances of equal prediction and truth are one point; all points together hold all instances."""
    counted = compare_with_truth(comparison).groupby("strategy")["instances"].sum()
    assert counted.to_dict() == {"contention-aware, tomur": 40, "contention-aware, slomo": 40, "planned, tomur": 40}
