"""Findings with as many digits as the paper prints."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from experiments.methodology.findings import Finding, findings_table

NOT_PRINTED = "not printed"


def format_findings(findings: Sequence[Finding]) -> pd.DataFrame:
    """As `findings_table`, numbers as text: errors with three digits after the point, counts without."""
    table = findings_table(findings)
    for column in ("ours", "published"):
        table[column] = [_print(float(value)) for value in table[column]]
    return table


def _print(value: float) -> str:
    if np.isnan(value):
        return NOT_PRINTED
    return f"{value:.0f}" if value.is_integer() else f"{value:.3f}"
