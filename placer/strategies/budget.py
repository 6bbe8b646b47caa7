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

REPEATED = 0.7
"""Standard deviations by which the expected violations must stay below the budget."""


def within_budget(catalogue: Catalogue, predictor: str, place: Callable[[float], Plan]) -> Plan:
    """The plan of the largest risk that is expected to keep the catalogue's budget; else that of the smallest risk.

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
        return place(DEFAULT_RISK if catalogue.risk is None else catalogue.risk)
    low, high = 0, len(RISKS) - 1
    plans: dict[int, Plan] = {}
    while low < high:
        middle = (low + high) // 2
        plans[middle] = place(RISKS[middle])
        expected = expected_violations(plans[middle], catalogue, predictor)
        if expected.mean_pct + REPEATED * expected.spread_pct <= catalogue.budget_pct:
            high = middle
        else:
            low = middle + 1
    return plans[low] if low in plans else place(RISKS[low])
