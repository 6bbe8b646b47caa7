"""What is in the file, looked at without a browser."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from placer.progress import Progress
from placer.report.html import Page, Section, Tile, page_of_run, write_plots
from placer.report.html.page import render
from placer.run import Comparison, RunRequest, run
from traces.arrivals import Recipe, generate

EMPTY = Page("A <b>page</b>", ("One & all.",), (Tile("1", "NIC"),), (), "placer run")


class _Elements(HTMLParser):
    """Ids, and whatever would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        told = dict(attributes)
        if identity := told.get("id"):
            self.ids.append(identity)
        if told.get("src") or (tag == "link" and told.get("href")):
            self.fetched.append(f"{tag} {told}")


def test_the_file_is_complete_in_itself(report: Path) -> None:
    """Nothing is fetched, the policy forbids it, every id is unique, and it is no larger than a photograph."""
    text = report.read_text(encoding="utf-8")
    elements = _Elements()
    elements.feed(text)
    assert elements.fetched == []
    assert "default-src 'none'" in text
    assert len(elements.ids) == len(set(elements.ids))
    assert len(text) < 1_500_000


def test_the_same_run_gives_the_same_bytes(page: Page, report: Path) -> None:
    """Rendered again, a page is the same file."""
    assert render(page) == report.read_text(encoding="utf-8")


def test_the_summary_tells_the_decision(page: Page, comparison: Comparison) -> None:
    """The first sentence has the NICs of the plan that was chosen, and who judged is said."""
    nics = {one.nics for one in comparison.evaluations}
    told = re.search(r"80 NF instances go on (\d+) NICs", page.summary[0])
    assert told is not None
    assert int(told[1]) in nics
    assert "not on hardware" in page.summary[-1]


def test_who_would_be_thriftier_at_a_lower_risk_is_named(comparison: Comparison) -> None:
    """Where Tomur's plan breaks too many SLAs another is the choice, and the page says what Tomur's would take."""
    broken = [
        replace(one, stays={name: replace(stay, sla_met=False) for name, stay in (one.stays or {}).items()})
        if one.plan.predictor
        else one
        for one in comparison.evaluations
    ]
    summary = page_of_run(replace(comparison, evaluations=tuple(broken)), "t.csv").summary
    assert "placed by greedy" in summary[0]
    (hint,) = [told for told in summary if "at a lower --risk" in told]
    assert hint.startswith("contention-aware, tomur takes ")
    assert not any("at a lower --risk" in told for told in page_of_run(comparison, "t.csv").summary)


@pytest.mark.parametrize(
    ("options", "told", "charts"),
    [
        ({"testbed": "none"}, "Whether SLAs break is unknown", ["nics", "nics-over-time", "occupancy"]),
        ({"strategies": ("optimal",)}, "12 NF instances go on", ["nics", "violations", "nics-over-time", "occupancy"]),
        ({"fleet": "none.toml"}, "12 instances found no place", ["nics", "violations"]),
    ],
    ids=["no truth", "the optimum alone", "no NIC"],
)
def test_what_is_not_known_is_left_out(tmp_path: Path, options: dict[str, Any], told: str, charts: list[str]) -> None:
    """Without truth, without a predictor, even without a NIC there is a page, and no chart of nothing."""
    (tmp_path / "none.toml").write_text('[[nic]]\nmodel = "bluefield-2"\ncount = 0\n', encoding="utf-8")
    trace = tmp_path / "arrivals.csv"
    trace.write_text("".join(generate(Recipe(count=12))), encoding="utf-8")
    fleet = {"fleet": tmp_path / "none.toml"} if "fleet" in options else {}
    asked = {"strategies": ("monopolization",)} | options | fleet
    page = page_of_run(run(RunRequest(arrivals=str(trace), **asked), Progress(quiet=True)), "-")
    assert any(told in paragraph for paragraph in page.summary)
    assert [figure.name for section in page.sections for figure in section.figures] == charts
    assert "standard input" in render(page)


def test_text_is_escaped() -> None:
    """What a file or an NF is called is text, never markup."""
    table = pd.DataFrame({"<i>": ["</script><script>", None], "n": [1234.5, float("nan")]})
    text = render(Page("A <b>page</b>", ("One & all.",), (), (Section("s", "S", "<u>", table=table),), "placer run"))
    assert "<b>page" not in text
    assert "<u>" not in text
    assert "&lt;/script&gt;&lt;script&gt;" in text
    assert ">1,234<" in text or ">1,235<" in text
    assert ">–<" in text


def test_a_page_without_charts_carries_no_charting_library() -> None:
    """It stays small."""
    assert len(render(EMPTY)) < 20_000


def test_charts_are_files_for_papers_too(page: Page, tmp_path: Path) -> None:
    """Every chart is an SVG and a PNG in colours that a paper has."""
    written = write_plots(page, tmp_path)
    charts = [figure.name for section in page.sections for figure in section.figures]
    assert [path.name for path in written] == [f"{name}.{kind}" for name in charts for kind in ("svg", "png")]
    for path in written:
        content = path.read_bytes()
        assert content.startswith(b"<svg" if path.suffix == ".svg" else b"\x89PNG")
        assert b"var(--" not in content


def test_numbers_of_a_column_have_the_same_digits() -> None:
    """0.2 and 1 stand one below the other; whole numbers have no point."""
    table = pd.DataFrame({"broken": [0.2, 1.0], "NICs": [3.0, 1200.0], "kpps": [663.25, 1499.5]})
    page = replace(EMPTY, sections=(Section("s", "S", "Told.", table=table),))
    cells = re.findall(r'<td class="number"[^>]*>([^<]*)</td>', render(page))
    assert cells == ["0.20", "3", "663.2", "1.00", "1,200", "1,499.5"]
