"""What a figure shows, as single numbers beside those that the paper's text tells of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from experiments.methodology.accuracy import is_worse

UNPUBLISHED = float("nan")
NEAR = 0.25
"""Share of a published number by which ours may differ and still be the same effect."""
NEAR_PCT = 2.0
"""The same in percentage points, for effects that are nearly none."""


@dataclass(frozen=True)
class Fact:
    """One number of ours, and the published one.

    Parameters
    ----------
    quantity
        What it is.
    ours, published
        In `unit`; the latter NaN where the paper only draws it.
    kind
        `error`: the lower the better. `effect`: to be the same.
    """

    quantity: str
    ours: float
    published: float = UNPUBLISHED
    unit: str = "%"
    kind: Literal["error", "effect"] = "effect"

    @property
    def verdict(self) -> str:
        """`worse` for a larger error, `differs` for another effect, else nothing."""
        if np.isnan(self.published):
            return ""
        if self.kind == "error":
            return "worse" if is_worse(self.ours, self.published) else ""
        room = max(NEAR * abs(self.published), NEAR_PCT if self.unit == "%" else 0.0)
        return "differs" if abs(self.ours - self.published) > room else ""


def fact_table(facts: list[Fact]) -> pd.DataFrame:
    """A row per fact."""
    return pd.DataFrame(
        [
            {
                "quantity": fact.quantity,
                "ours": float(fact.ours),
                "published": float(fact.published),
                "unit": fact.unit,
                "worse": fact.verdict,
            }
            for fact in facts
        ]
    )
