"""Verdicts of findings."""

from __future__ import annotations

import pytest

from experiments.methodology.findings import NOT_PUBLISHED, Finding, findings_table


@pytest.mark.parametrize(
    ("finding", "verdict"),
    [
        (Finding("an error", 5.0, 4.0, kind="error"), "worse"),
        (Finding("an error", 3.0, 4.0, kind="error"), ""),
        (Finding("an effect", 27.0, 30.0), ""),  # within a quarter
        (Finding("an effect", 20.0, 30.0), "differs"),
        (Finding("no effect", 1.5, 0.0), ""),  # within two points
        (Finding("no effect", 2.5, 0.0), "differs"),
        (Finding("drawn only", 5.0, NOT_PUBLISHED), ""),
    ],
)
def test_an_error_may_be_smaller_and_an_effect_must_be_the_same(finding: Finding, verdict: str) -> None:
    """Errors are compared at the published decimal, effects within a tolerance."""
    assert finding.verdict == verdict


def test_the_table_has_a_row_per_finding() -> None:
    """Each row has our number, the published one, the unit and the verdict."""
    (row,) = findings_table([Finding("drop", 20.0, 30.0)]).to_dict("records")
    assert row == {"quantity": "drop", "ours": 20.0, "published": 30.0, "unit": "%", "verdict": "differs"}
