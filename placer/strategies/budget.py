"""A budget of SLA violations: how careful placement must be so that its plans are expected to stay inside.

A margin on every prediction costs NICs, and how many violations it avoids depends on the plan: on how close to their
SLAs the co-locations are that placement chooses. So the risk is chosen by plans. The trace, or one like it, is placed
at a few risks; of each plan the SLA violations are expected from how far the predictor errs, times what decisions
replayed at that risk violate per expected violation (`replay`); and the largest risk is taken whose plan stays within
the budget.
"""

from __future__ import annotations

from collections.abc import Callable

from placer.evaluate.expected_violations import ExpectedViolations, expected_violations
from placer.model.catalogue import Catalogue
from placer.model.oracle import DEFAULT_RISK
from placer.model.plan import Plan
from placer.strategies.replay import Replayed

RISKS = (0.5, 0.35, 0.25, 0.18, 0.13, 0.09, 0.065, 0.045, 0.03, 0.02, 0.014, 0.01, 0.007, 0.005)
"""Risks that are tried, the least careful first."""

SELECTED = 1.3
"""Times as many violations as in replays are allowed for.

Replays only have co-locations that were left out. Of those that were measured, placement selects the ones whose
measurements were too high by noise. On six testbeds 0.6 to 1.6 times as many were violated as replays lead to expect.
"""
UNREPLAYED = 3.0
"""Expected violations in replays that count as much as what would be expected by chance."""
REPEATED = 0.7
"""Standard deviations by which the expected violations must stay below the budget."""
GUESS = 0.045
"""The risk that usually keeps a budget of 1 %, and in proportion others."""
PROPORTIONAL = 3
"""Plans until which the next risk is guessed in proportion."""


def risk_within_budget(
    catalogue: Catalogue,
    predictor: str,
    place: Callable[[float], Plan],
    replay: Callable[[float], Replayed] = lambda risk: Replayed(),
) -> float:
    """The largest risk whose plan is expected to keep the catalogue's budget; else the smallest.

    It is searched by halving, as if violations only grew with the risk. They nearly do: on a short trace, a larger
    budget may find a smaller risk.

    The catalogue's own risk where it has one, and the default where a predictor does not estimate its errors.

    Parameters
    ----------
    catalogue
        The NICs, and the budget.
    predictor
        The name of the predictor that plans are made by.
    place
        Makes the plan of a risk.
    replay
        Replays the decisions of a risk; by default they are not.
    """
    if catalogue.budget_pct is None or not catalogue.supports_risk(predictor):
        return DEFAULT_RISK if catalogue.risk is None else catalogue.risk
    low, high, tries = 0, len(RISKS) - 1, 0
    at = min(_index(GUESS * catalogue.budget_pct), high - 1)
    while low < high:
        expected = expected_violations(place(RISKS[at]), catalogue, predictor)
        careful = with_reserves(expected, replay(RISKS[at]))
        if careful <= catalogue.budget_pct:
            high = at
        else:
            low = at + 1
        # violations grow about as the risk does; after a few tries that were off, halving is surer
        tries += 1
        proportional = _index(RISKS[at] * catalogue.budget_pct / max(careful, 1e-9))
        at = min(max(proportional if tries < PROPORTIONAL else (low + high) // 2, low), max(high - 1, low))
    return RISKS[low]


def with_reserves(expected: ExpectedViolations, replayed: Replayed) -> float:
    """SLA violations per 100 instances that a plan must be allowed, given what is expected of it and of replays."""
    return _selected(replayed) * expected.mean_pct + REPEATED * expected.spread_pct


def _selected(replayed: Replayed) -> float:
    """Violations per expected one; the fewer are expected in replays, the nearer to `SELECTED`, and never below.

    What noise of measurements adds to violations is as expected; all that is not is due to predictions.
    """
    of_predictions = max(replayed.of_predictions + replayed.violations - replayed.expected, 0.0)
    return SELECTED * max((of_predictions + UNREPLAYED) / (replayed.of_predictions + UNREPLAYED), 1.0)


def _index(risk: float) -> int:
    """The position in `RISKS` of the largest that is not above this one; else of the smallest."""
    return next((at for at, one in enumerate(RISKS) if one <= risk + 1e-12), len(RISKS) - 1)
