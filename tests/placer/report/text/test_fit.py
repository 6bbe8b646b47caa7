"""A fitted model, the formula of a throughput alone, and a sweep in a terminal."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.commands.sweep import as_table
from placer.explain.solo_formula import SoloFormula, Turn
from placer.report.text.fit import PLOT_ROWS, draw_curve, errors_verdict, format_fit, number_text
from placer.report.text.solo_formula import formula_json, formula_sentences, turn_sentence
from predictor.fitting.fitted_model import CurveBreak
from predictor.fitting.points import MeasuredCurve
from tests.effort import examples
from tests.placer.report.fitted import bent_model, cache_model, curve_of, line_model
from tests.predictor.fitting.made_up_models import made_up


def test_a_model_is_a_line_per_segment_and_breakpoint() -> None:
    """Without a curve: what it is of, segments with breakpoints between them, errors."""
    assert format_fit(cache_model(), None, 80).splitlines() == [
        "cycles over entries, key_width 8: 120 points",
        "1 to 4,096: cycles = 123.4 (constant), 0.41 %",
        "at 4,096 [3,890, 4,310]: jumps by 12.2",
        "4,096 to 1,048,576: cycles = 100 + 4.28*ln(entries) (log), 0.47 %",
        "error of the fit 0.43 %, at points left out of the fit 0.50 %, noise 0.45 %",
        "    (sMAPE)",
    ]


def test_a_bend_is_not_a_jump() -> None:
    assert "at 10 [9, 11.5]: bends\n" in format_fit(bent_model(), None, 120)


def test_what_is_not_known_is_said() -> None:
    assert "at points left out of the fit unknown, noise 0.30 % (sMAPE)" in format_fit(line_model(), None, 120)


def test_the_curve_is_six_rows_with_its_ends_and_a_caret_below_the_breakpoint() -> None:
    """A logarithmic axis: 4,096 of 1,048,576 is at 12/20 of it."""
    model = cache_model()
    lines = format_fit(model, curve_of(model), 60).splitlines()
    carets, ends = lines[1 + PLOT_ROWS], lines[2 + PLOT_ROWS]
    margin = len(ends) - len(ends.lstrip())
    assert ends.split() == ["1", "entries", "(log)", "1,048,576"] and len(ends) == 60
    assert carets.strip() == "^"
    assert carets.index("^") - margin == pytest.approx(12 / 20 * (60 - margin), abs=1)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_another_encoding_has_plain_ascii_and_loses_only_foreign_letters(encoding: str) -> None:
    text = format_fit(cache_model(), curve_of(cache_model()), 60, encoding=encoding)
    assert text.isascii() and any(letter in text for letter in "|:'")
    assert format_fit(line_model("потоки"), None, 80, encoding=encoding).startswith("cycles over ??????: 3 points\n")


@pytest.mark.parametrize("rows", [3, 100_000])
def test_few_and_many_points_take_the_same_space(rows: int) -> None:
    model = line_model()
    lines = format_fit(model, curve_of(model, repeats=1, rows=rows), 80).splitlines()
    assert len(lines) == PLOT_ROWS + 5 and max(map(len, lines)) <= 80


def test_a_narrow_terminal_shows_no_curve() -> None:
    model = line_model()
    assert len(format_fit(model, curve_of(model, repeats=1), 12).splitlines()[0]) <= 20
    assert "⠂" not in format_fit(model, curve_of(model, repeats=1), 12)


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)), min_size=1, max_size=30),
    st.integers(8, 60),
    st.booleans(),
)
@settings(max_examples=examples(50))
def test_every_curve_fits_its_box(points: list[tuple[float, float]], columns: int, braille: bool) -> None:
    """Whatever the points are; each row and column has as many characters as asked for, and some have dots."""
    x, y = np.array(points).T
    rows = draw_curve(x, y, columns, PLOT_ROWS, braille=braille)
    assert [len(row) for row in rows] == [columns] * PLOT_ROWS and any(row.strip(" \u2800") for row in rows)


def test_a_point_is_drawn_where_it_is() -> None:
    """Two points, in opposite corners; a constant in the middle."""
    ends = np.array([0.0, 1.0])
    assert draw_curve(ends, ends, 2, 2, braille=True) == ["\u2800⠈", "⡀\u2800"]
    assert draw_curve(ends, ends, 2, 2, braille=False) == [" '", ". "]
    assert draw_curve(ends, ends * 0, 2, 1, braille=False) == ["--"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (4096, "4,096"), (12.2, "12.2"), (-3.25, "-3.25"), (0.00021, "0.00021"), (3.2e-9, "3.2e-09"),
     (1048576.0, "1,048,576"), (123456.78, "123,457"), (1e18, "1e+18"), (0.1 + 0.2, "0.3")],
)  # fmt: skip
def test_numbers_have_the_digits_that_they_need(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("left_out", "verdict"),
    [(0.5, "about as exactly as they can be measured"), (2.25, "5.0 times the noise"), (None, "is not known")],
)
def test_the_error_at_left_out_points_is_compared_with_the_noise(left_out: float | None, verdict: str) -> None:
    assert verdict in errors_verdict(cache_model(left_out=left_out))


def test_equal_points_are_drawn_without_a_fault() -> None:
    """A curve of one x and one y."""
    same = MeasuredCurve("rules", "cycles", np.ones(3), np.ones(3))
    assert format_fit(line_model(), same, 60)


def test_names_of_columns_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in format_fit(line_model("rules\x1b[2J\n"), None, 80)
    assert "rules?[2J" in format_fit(line_model("rules\x1b[2J"), None, 80)


MODEL = made_up(
    (1.0, 9800.0, 500000.0), ("constant", (1000.0,)), ("inverse", (400.0, 5.88e6)),
    x="flows", y="throughput_kpps", breaks=[CurveBreak(9800, 9300, 10400, 0.0)], points=40, errors=(0.2, None, 0.2),
)  # fmt: skip
TURN = Turn(9800, 9300, 10400, 0.0, -2.0, 0.0, None)
FORMULA = SoloFormula(MODEL, {"packet_size": 1500, "mtbr": 600}, True, (TURN,), 6.291456)


@pytest.mark.parametrize(
    ("turn", "sentence"),
    [
        (TURN, "falls from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, cause="cache"), "falls once 9,800 flows (9,300 to 10,400) no longer fit the cache of 6.3 MB"),
        (
            replace(TURN, cause="regex"),
            "falls from 9,800 flows on (9,300 to 10,400): from there, regex is the bottleneck",
        ),
        (replace(TURN, before=-1.0), "falls faster from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, before=-4.0), "falls more slowly from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, after=0.0, cause="cache"), "is steady from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, after=2.0), "rises from 9,800 flows on (9,300 to 10,400)"),
        (replace(TURN, jump=-222.0), "falls by 222 kpps at 9,800 flows (9,300 to 10,400), and falls from there on"),
        (replace(TURN, low=None, high=None), "falls from about 9,800 flows on"),
    ],
)
def test_a_sentence_per_breakpoint(turn: Turn, sentence: str) -> None:
    """What throughput does from there on; the cause only where it is known, the interval only of measurements."""
    assert turn_sentence(FORMULA, turn) == sentence


def test_the_formula_by_segment() -> None:
    """With its source and error, then the breakpoint."""
    assert formula_sentences(FORMULA) == [
        "Throughput alone (kpps) over flows, at packet_size 1500, mtbr 600; fitted to 40 runs, error 0.20 %:",
        "  from 1 to 9,800: 1000;",
        "  from 9,800 to 500,000: 400 + 5.88e+06/flows.",
        "  It falls from 9,800 flows on (9,300 to 10,400).",
    ]


def test_json_has_the_model_its_source_and_the_sentences() -> None:
    """Keys of a fitted model without its time."""
    document = formula_json(replace(FORMULA, measured=False))
    assert (document["source"], document["x"], document["traffic"]["mtbr"]) == ("predicted", "flows", 600)
    assert document["breakpoints"][0]["text"] == "falls from 9,800 flows on (9,300 to 10,400)"
    assert "seconds" not in document


ONE = made_up((1.0, 9.0), ("linear", (1.0, 2.0)), x="flows", y="kpps", errors=(0.1, None, 0.2))
TWO = made_up(
    (1.0, 32_666.4, 1e5), ("constant", (1.0,)), ("log", (1.0, 2.0)),
    x="flows", y="kpps", setting={"mtbr": 600.0}, breaks=[CurveBreak(32_666.4, 998.26, 36_470.0, 0.0)],
    errors=(1.234, 1.5, 12.0),
)  # fmt: skip


def test_a_row_has_segments_breakpoints_and_errors() -> None:
    """The setting beside the curve's name, errors with two decimals; what is not known is called so."""
    lines = [line.split("  ") for line in as_table([ONE, TWO]).splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells == [
        ["curve", "segments", "breakpoints (90 % interval)", "error", "left out", "noise"],
        ["kpps over flows", "linear", "none", "0.10 %", "unknown", "0.20 %"],
        ["kpps over flows, mtbr 600", "constant, log", "32,666 [998.3, 36,470]", "1.23 %", "1.50 %", "12.00 %"],
    ]
