"""The summary of a sweep."""

from __future__ import annotations

from placer.report.text.sweep import as_table
from predictor.fitting.fitted_model import CurveBreak, CurveSegment, FittedModel

ONE = FittedModel("flows", "kpps", 9, (CurveSegment(1, 9, "linear", (1.0, 2.0), 9, 0.1),), (), 0.1, None, 0.2, 0.0)
TWO = FittedModel(
    "flows",
    "kpps",
    120,
    (
        CurveSegment(1, 32_666.4, "constant", (1.0,), 30, 0.1),
        CurveSegment(32_666.4, 1e5, "log", (1.0, 2.0), 10, 0.2),
    ),
    (CurveBreak(32_666.4, 998.26, 36_470.0, 0.0),),
    1.234,
    1.5,
    12.0,
    0.0,
    {"mtbr": 600.0},
)


def test_a_row_has_segments_breakpoints_and_errors() -> None:
    """The setting beside the curve's name, errors with two decimals; what is not known is called so."""
    lines = [line.split("  ") for line in as_table([ONE, TWO]).splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells == [
        ["curve", "segments", "breakpoints (90 % interval)", "error", "left out", "noise"],
        ["kpps over flows", "linear", "none", "0.10 %", "unknown", "0.20 %"],
        ["kpps over flows, mtbr 600", "constant, log", "32,666 [998.3, 36,470]", "1.23 %", "1.50 %", "12.00 %"],
    ]
