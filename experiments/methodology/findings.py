"""Findings of a figure: single numbers of ours, each next to the number that the paper's text gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from experiments.methodology.accuracy import is_worse

NOT_PUBLISHED = float("nan")
EFFECT_TOLERANCE = 0.25  # an effect may differ from the published one by this share and still count as the same
TOLERANCE_PCT = 2.0  # the same in percentage points, for effects near zero


@dataclass(frozen=True)
class Finding:
    """One number of ours and the published one."""

    quantity: str  # what is measured
    ours: float
    published: float = NOT_PUBLISHED  # in `unit`; `published` is NaN where the paper only draws it
    unit: str = "%"
    kind: Literal["error", "effect"] = "effect"  # `error`: lower is better. `effect`: should equal the published one.

    @property
    def verdict(self) -> str:
        """`worse` for a larger error, `differs` for an effect of another size, else empty."""
        if np.isnan(self.published):
            return ""
        if self.kind == "error":
            return "worse" if is_worse(self.ours, self.published) else ""
        tolerance = max(EFFECT_TOLERANCE * abs(self.published), TOLERANCE_PCT if self.unit == "%" else 0.0)
        return "differs" if abs(self.ours - self.published) > tolerance else ""


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """A row per finding."""
    return pd.DataFrame(
        [
            {
                "quantity": finding.quantity,
                "ours": float(finding.ours),
                "published": float(finding.published),
                "unit": finding.unit,
                "verdict": finding.verdict,
            }
            for finding in findings
        ]
    )
