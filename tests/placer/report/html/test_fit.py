"""The page of fitted models: what it says, what it draws, and in a browser."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placer.report.html import Figure, Page, fit, write_page
from placer.report.html.fit import MOST_POINTS, fit_page
from placer.report.html.fit_tables import NAME_PLACEHOLDER, breaks_table, mathematics, noise_band_pct, points_table
from placer.report.html.page import render
from predictor.fitting.fitted_model import CurveBreak, FittedModel
from predictor.fitting.points import MeasuredCurve
from tests.placer.report.fitted import bent_model, cache_model, curve_of, line_model
from tests.placer.report.html.browser import chromium, shown
from tests.predictor.fitting.made_up_models import made_up

COMMAND = "placer fit m.csv --x entries --y cycles"


def page_of(*fits: FittedModel) -> Page:
    return fit_page(fits, [curve_of(one, repeats=1) for one in fits], COMMAND)


def names(page: Page) -> list[str]:
    return [section.name for section in page.sections]


def texts(page: Page) -> str:
    return " ".join(page.summary)


def table(page: Page, section: str) -> list[dict[str, Any]]:
    (found,) = [one.table for one in page.sections if one.name == section]
    assert found is not None
    return [{str(name): value for name, value in row.items()} for row in found.to_dict("records")]


def test_the_first_sentence_is_the_model() -> None:
    """A formula where it is one, else the segments and what happens between them."""
    assert page_of(line_model()).summary[0] == "cycles = 50 + 2.5·rules, for rules from 0 to 4."
    assert page_of(cache_model()).summary[0] == (
        "cycles over entries has 2 segments (constant, log): it jumps by 12.2 at 4,096."
    )


def test_errors_stand_side_by_side_and_extrapolation_is_explained() -> None:
    said = texts(page_of(cache_model()))
    assert "Error of the fit 0.43 %, at points left out of the fit 0.50 %, noise 0.45 %." in said
    assert "It holds for entries from 1 to 1,048,576, where cycles was measured." in said
    assert "extrapolated, no measurement supports them" in said


def test_segments_and_breakpoints_are_tables() -> None:
    page = page_of(cache_model())
    assert table(page, "model")[1] == {
        "from": "4,096", "to": "1,048,576", "family": "log", "cycles =": "100 + 4.28·ln(entries)", "points": 24,
        "error, %": 0.47,
    }  # fmt: skip
    assert table(page, "breakpoints") == [
        {"at": "4,096", "from, 90 %": "3,890", "to, 90 %": "4,310", "jump": "12.2", "kind": "jump"}
    ]
    assert table(page_of(bent_model()), "breakpoints")[0]["kind"] == "bend"
    assert "breakpoints" not in names(page_of(line_model()))


def test_several_models_have_a_table_first_then_a_section_each() -> None:
    """Settings are columns; the largest error is named in the first sentence."""
    page = page_of(cache_model(8.0), cache_model(16.0), line_model("entries"))
    assert names(page) == ["models", "breakpoints", "model-1", "model-2", "model-3"]
    rows = table(page, "models")
    assert [row["key_width"] for row in rows[:2]] == ["8", "16"]
    assert rows[2]["key_width"] is None or np.isnan(rows[2]["key_width"])
    assert [row["breakpoints"] for row in rows] == ["4,096", "4,096", "–"]
    assert page.summary[0].startswith("3 curves are fitted; the largest error is 0.43 %, of cycles over entries")
    assert "Of 1 model it is not known" in texts(page)


def test_several_metrics_are_named_by_column() -> None:
    page = page_of(line_model(y="cycles"), line_model(y="kpps"))
    assert [row["y"] for row in table(page, "models")] == ["cycles", "kpps"]
    assert page.title == "2 fitted models: cycles, kpps over rules"


def test_a_setting_may_have_the_name_of_a_column() -> None:
    """A sweep over `points`: both columns are there."""
    fits = [replace(cache_model(), setting={"points": value}) for value in (7.0, 9.0)]
    section = page_of(*fits).sections[0]
    assert section.table is not None
    assert section.table["points"].to_numpy().tolist() == [["7", 120], ["9", 120]]


def test_of_very_many_models_the_worst_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their order stays."""
    monkeypatch.setattr(fit, "MOST_FITS", 2)
    page = page_of(bent_model(), cache_model(4.0), line_model(), cache_model(8.0))
    assert names(page) == ["models", "breakpoints", "model-2", "model-4"]
    assert "The 2 with the largest errors are drawn below." in page.sections[0].text


def test_a_wide_positive_range_has_a_logarithmic_axis() -> None:
    """Entries from 1 to 1,048,576 do, rules from 0 to 4 do not; the caption says so."""
    for model, kind in ((cache_model(), "log"), (line_model(), None)):
        figure = page_of(model).sections[0].figures[0]
        assert ("logarithmic axis" if kind else "linear axis") in figure.caption
        assert isinstance(figure, Figure)
        assert figure.chart.to_dict()["layer"][-1]["encoding"]["x"]["scale"].get("type") == kind


def test_a_formula_that_leaves_the_points_does_not_hide_them() -> None:
    """An inverse with a pole between two points: the axis holds the points and half their span more."""
    model = made_up((1.0, 4.0), ("inverse-linear", (-2.5, 1.0)), x="rules", y="us", points=4)
    x = np.arange(1.0, 5.0)
    figure = fit_page([model], [MeasuredCurve("rules", "us", x, model.predict(x))], "").sections[0].figures[0]
    assert isinstance(figure, Figure)
    layers = figure.chart.to_dict()["layer"]
    assert layers[0]["encoding"]["y"]["scale"]["domain"] == pytest.approx([-4.0, 4.0])
    assert layers[1]["mark"]["clip"]


def test_the_band_of_a_breakpoint_ends_with_the_axis() -> None:
    """A logarithmic axis has no place for an interval that begins at 0."""
    wide = CurveBreak(4096.0, 0.0, 1e9, 12.2)
    table = breaks_table(replace(cache_model(), breakpoints=(wide,)))
    assert table[["low", "high"]].to_numpy().tolist() == [[1.0, 1048576.0]]


def test_captions_speak_the_curve() -> None:
    """For readers who cannot see it."""
    caption = page_of(cache_model()).sections[0].figures[0].caption
    assert "from 1 to 4,096 it is 123.4, jumps by 12.2, from 4,096 to 1,048,576 it goes from 135.6 to 159.3" in caption


@pytest.mark.parametrize("rows", [3, 100_000])
def test_points_are_thinned_where_they_are_many(rows: int) -> None:
    """What lies outside stays, and the page says how many are drawn; of three points all are."""
    model = line_model()
    curve = curve_of(model, repeats=1, rows=rows)
    curve.y[rows // 2] = 1000.0
    drawn = points_table(model, curve, MOST_POINTS)
    assert len(drawn) <= MOST_POINTS and drawn["measured"].max() == 1000.0
    assert ("1,000 of them are drawn" in fit_page([model], [curve], "").sections[0].text) == (rows > MOST_POINTS)
    assert len(render(fit_page([model], [curve], ""))) < 1_500_000


def test_repeats_are_drawn_one_by_one() -> None:
    model = cache_model()
    text = fit_page([model], [curve_of(model, repeats=3)], "").sections[0].text
    assert text == "120 points at 40 values of entries. Repeats are drawn one by one."


def test_the_band_of_normal_noise_holds_nine_points_in_ten() -> None:
    """Noise of 1 % has an sMAPE of 0.4 %, of which the band is made."""
    deviation = np.random.default_rng(0).normal(scale=0.01, size=100_000)
    noise = 100 * np.mean(np.abs(deviation) / (2 + deviation))
    band = noise_band_pct(replace(line_model(), noise_pct=float(noise)))
    assert np.mean(np.abs(100 * deviation) <= band) == pytest.approx(0.9, abs=0.005)


def test_where_the_model_is_zero_there_is_no_deviation() -> None:
    """The page says so, and draws the others; with none there is a page, too."""
    zero = made_up((0.0, 4.0), ("linear", (0.0, 1.0)), x="rules", y="cycles", points=3)
    curve = MeasuredCurve("rules", "cycles", np.array([0.0, 2.0, 4.0]), np.array([0.0, 2.0, 4.0]))
    assert "are left out" in fit_page([zero], [curve], "").sections[-1].figures[0].caption
    assert render(fit_page([zero], [MeasuredCurve("rules", "cycles", np.zeros(2), np.zeros(2))], ""))


@pytest.mark.parametrize(
    ("formula", "text"),
    [("1.5e-05 - 2*\ue000^2", "1.5·10⁻⁵ − 2·x²"), ("1e+09*ln(\ue000)", "1·10⁹·ln(x)"),
     ("2*exp(-0.5*\ue000)", "2·exp(−0.5·x)"),
     ("1 / (3 + 4/\ue000)", "1 / (3 + 4/x)"), ("-2 + 1e-10*\ue000", "−2 + 1·10⁻¹⁰·x")],
)  # fmt: skip
def test_formulas_are_plain_mathematics(formula: str, text: str) -> None:
    assert mathematics(formula, "x") == text
    assert mathematics(f"2*{NAME_PLACEHOLDER}", "size*1e5") == "2·size*1e5"


def test_the_page_says_how_it_was_made_and_is_the_same_again() -> None:
    text = render(page_of(cache_model()))
    assert COMMAND in text and text == render(page_of(cache_model()))
    assert re.findall(r'id="chart-(\w+)"', text) == ["curve", "deviations"]


@pytest.mark.slow
def test_in_a_browser_charts_fit_in_both_themes(tmp_path: Path) -> None:
    """Drawn without a word on the console and without a network; labels do not overlap, and contrast is enough."""
    path = tmp_path / "fit.html"
    write_page(page_of(cache_model(), bent_model()), path)
    with chromium() as browser:
        for width, theme in ((1280, "light"), (390, "dark")):
            with shown(browser, path, width, theme) as tab:
                assert tab.locator(".chart svg").count() == 4
                assert tab.evaluate(OVERLAPS) == 0 and min(json.loads(tab.evaluate(CONTRASTS))) >= 3.0
                tab.locator("#models th button").first.focus()
                tab.keyboard.press("Enter")
                assert tab.locator("#models th").first.get_attribute("aria-sort") == "ascending"


OVERLAPS = """
[...document.querySelectorAll(".chart svg")].map((svg) => {
  const boxes = [...svg.querySelectorAll("text")].filter((text) => text.textContent && text.style.opacity !== "0"
    && text.getAttribute("opacity") !== "0").map((text) => text.getBoundingClientRect()).filter((box) => box.width);
  let count = 0;
  boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b) => {
    if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2) count += 1;
  }));
  return count;
}).reduce((a, b) => a + b, 0)
"""
CONTRASTS = """
(() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).map(Number).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.documentElement).backgroundColor);
  const marks = [...document.querySelectorAll(".chart svg text, figcaption")]
    .map((one) => getComputedStyle(one)).map((style) => style.fill === "rgb(0, 0, 0)" ? style.color : style.fill);
  const lines = [...document.querySelectorAll(".chart svg .mark-line path")].map((one) => getComputedStyle(one).stroke);
  return JSON.stringify([...marks, ...lines].map(light).map((own) =>
    (Math.max(own, ground) + 0.05) / (Math.min(own, ground) + 0.05)));
})()
"""
