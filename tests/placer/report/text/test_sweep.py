"""The summary of a sweep."""

from __future__ import annotations

from placer.commands.sweep import as_table
from predictor.fitting.fitted_model import CurveBreak
from tests.predictor.fitting.made_up_models import made_up

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
