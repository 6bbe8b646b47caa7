"""A budget of SLA violations: how careful placement must be so that its plans are expected to stay inside.

A margin on every prediction costs NICs, and how many violations it avoids depends on the plan: on how close to their
SLAs the co-locations are that placement chooses. So the risk is chosen by plans. The trace, or one like it, is placed
at a few risks; of each plan the SLA violations are expected from how far the predictor errs; and the largest risk is
taken whose plan stays within the budget.
"""

from __future__ import annotations

from collections.abc import Callable

from placer.evaluate.expected_violations import expected_violations
from placer.model.catalogue import Catalogue
from placer.model.oracle import DEFAULT_RISK
from placer.model.plan import Plan

RISKS = (0.5, 0.35, 0.25, 0.18, 0.13, 0.09, 0.065, 0.045, 0.03, 0.02, 0.014, 0.01, 0.007, 0.005)
"""Risks that are tried, the least careful first."""

SELECTED = 1.5
"""Times as many violations as by chance are allowed for: placement selects where predictions are too high.

On nine testbeds with 600 runs per NF there were 0.2 to 1.7 times as many as expected, with 400 runs up to 3 times.
"""
REPEATED = 0.7
"""Standard deviations by which the expected violations must stay below the budget."""
GUESS = 0.045
"""The risk that usually keeps a budget of 1 %, and in proportion others."""
PROPORTIONAL = 3
"""Plans until which the next risk is guessed in proportion."""


def risk_within_budget(catalogue: Catalogue, predictor: str, place: Callable[[float], Plan]) -> float:
    """The largest risk whose plan is expected to keep the catalogue's budget; else the smallest.

    The catalogue's own risk where it has one, and the default where a predictor does not estimate its errors.

    Parameters
    ----------
    catalogue
        The NICs, and the budget.
    predictor
        The name of the predictor that plans are made by.
    place
        Makes the plan of a risk.
    """
    if catalogue.budget_pct is None or not catalogue.supports_risk(predictor):
        return DEFAULT_RISK if catalogue.risk is None else catalogue.risk
    low, high, tries = 0, len(RISKS) - 1, 0
    at = min(_index(GUESS * catalogue.budget_pct), high - 1)
    while low < high:
        expected = expected_violations(place(RISKS[at]), catalogue, predictor)
        careful = SELECTED * expected.mean_pct + REPEATED * expected.spread_pct
        if careful <= catalogue.budget_pct:
            high = at
        else:
            low = at + 1
        # violations grow about as the risk does; after a few tries that were off, halving is surer
        tries += 1
        proportional = _index(RISKS[at] * catalogue.budget_pct / max(careful, 1e-9))
        at = min(max(proportional if tries < PROPORTIONAL else (low + high) // 2, low), max(high - 1, low))
    return RISKS[low]


def _index(risk: float) -> int:
    """The position in `RISKS` of the largest that is not above this one; else of the smallest."""
    return next((at for at, one in enumerate(RISKS) if one <= risk + 1e-12), len(RISKS) - 1)
