"""The rounds of `placer profile --for` as a table."""

from __future__ import annotations

from collections.abc import Sequence

from placer.measuring.rounds import Round
from placer.report.text.table import text_table

HEADINGS = (
    "round",
    "runs",
    "co-locations measured",
    "repeats",
    "NICs planned",
    "expected violations %",
    "after",
    "largest change %",
)


def as_table(rounds: Sequence[Round]) -> str:
    """A row per round; expected violations are those of the round's plan, before and after the round."""
    return text_table(
        HEADINGS,
        [
            (
                number,
                one.runs,
                one.co_locations,
                one.repeats,
                one.nics,
                f"{one.expected_pct:.2f}",
                f"{one.expected_after_pct:.2f}",
                f"{one.change_pct:.1f}",
            )
            for number, one in enumerate(rounds, 1)
        ],
        words=0,
    )
