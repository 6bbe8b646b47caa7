"""A fitted model in a terminal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placer.report.text.fit import PLOT_ROWS, draw_curve, errors_verdict, format_fit, number_text
from predictor.fitting.points import MeasuredCurve
from tests.effort import examples
from tests.placer.report.fitted import bent_model, cache_model, curve_of, line_model


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
    assert ends.split() == ["1", "entries", "(log)", "1,048,576"]
    assert len(ends) == 60
    assert carets.strip() == "^"
    assert carets.index("^") - margin == pytest.approx(12 / 20 * (60 - margin), abs=1)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_another_encoding_has_plain_ascii_and_loses_only_foreign_letters(encoding: str) -> None:
    text = format_fit(cache_model(), curve_of(cache_model()), 60, encoding=encoding)
    assert text.isascii()
    assert any(letter in text for letter in "|:'")
    foreign = line_model("потоки")
    assert format_fit(foreign, None, 80, encoding=encoding).startswith("cycles over ??????: 3 points\n")


@pytest.mark.parametrize("rows", [3, 100_000])
def test_few_and_many_points_take_the_same_space(rows: int) -> None:
    model = line_model()
    curve = curve_of(model, repeats=1, rows=rows)
    lines = format_fit(model, curve, 80).splitlines()
    assert len(lines) == PLOT_ROWS + 5
    assert max(map(len, lines)) <= 80


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
    assert [len(row) for row in rows] == [columns] * PLOT_ROWS
    assert any(row.strip(" \u2800") for row in rows)


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
