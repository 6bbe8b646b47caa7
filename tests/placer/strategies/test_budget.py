"""A budget of SLA violations chooses the risk."""

from dataclasses import replace

import pytest

from placer.evaluate.expected_violations import ExpectedViolations
from placer.model.plan import Plan
from placer.strategies import budget
from placer.strategies.budget import RISKS_TRIED, SELECTION_FACTOR, Replayed, risk_within_budget
from placer.testing.strategies import ToyCatalogue, catalogue


class Risky(ToyCatalogue):
    """A catalogue whose predictor knows its errors."""

    def supports_risk(self, predictor: str) -> bool:
        return True


def _asked(budget_pct: float | None, risk: float | None = None) -> Risky:
    return Risky(catalogue().kinds, (), (), risk, (), budget_pct)


def _place(risk: float) -> Plan:
    return Plan("contention-aware", "toy", (), 0.0, risk)


def _expect(monkeypatch: pytest.MonkeyPatch, per_risk: float, spread: float) -> list[float]:
    """Let plans violate `per_risk` % per unit of risk; returns the risks that were tried."""
    tried: list[float] = []

    def expected(plan: Plan, catalogue: ToyCatalogue, predictor: str) -> ExpectedViolations:
        tried.append(plan.risk or 0.0)
        return ExpectedViolations(per_risk * (plan.risk or 0.0), spread)

    monkeypatch.setattr(budget, "expected_violations", expected)
    return tried


@pytest.mark.parametrize("budget_pct", [0.16, 1.0, 2.0, 5.0])
def test_the_largest_risk_within_the_budget_is_taken(monkeypatch: pytest.MonkeyPatch, budget_pct: float) -> None:
    """At 10 % of violations per unit of risk; and no more than five plans are made."""
    tried = _expect(monkeypatch, 10.0, 0.0)
    risk = risk_within_budget(_asked(budget_pct), "toy", _place)
    assert risk == max(one for one in RISKS_TRIED if SELECTION_FACTOR * 10.0 * one <= budget_pct)
    assert len(tried) <= 5


def test_errors_that_repeat_make_placement_more_careful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spread of the expectation leaves less of the budget."""
    _expect(monkeypatch, 10.0, 0.0)
    even = risk_within_budget(_asked(2.0), "toy", _place)
    _expect(monkeypatch, 10.0, 1.0)
    assert risk_within_budget(_asked(2.0), "toy", _place) < even


def test_violations_that_replays_did_not_expect_make_placement_more_careful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as many as predictions lead to expect halve what is left; fewer than expected gain nothing."""
    _expect(monkeypatch, 10.0, 0.0)
    chosen = risk_within_budget(_asked(2.0), "toy", _place)
    often = risk_within_budget(_asked(2.0), "toy", _place, lambda risk: Replayed(5_000.0, 4_000.0, 1_000.0))
    seldom = risk_within_budget(_asked(2.0), "toy", _place, lambda risk: Replayed(3_500.0, 4_000.0, 1_000.0))
    assert often == max(one for one in RISKS_TRIED if 2 * SELECTION_FACTOR * 10.0 * one <= 2.0)
    assert seldom == chosen


def test_where_no_risk_keeps_the_budget_the_smallest_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan is as careful as it can be."""
    _expect(monkeypatch, 1000.0, 0.3)
    for budget_pct in (1.0, 0.125, 0.001):
        assert risk_within_budget(_asked(budget_pct), "toy", _place) == RISKS_TRIED[-1]


def test_a_given_risk_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a budget nothing is tried."""
    tried = _expect(monkeypatch, 10.0, 0.0)
    assert risk_within_budget(_asked(None, 0.1), "toy", _place) == 0.1
    assert risk_within_budget(replace(_asked(None), risk=None), "toy", _place) == budget.DEFAULT_RISK
    assert not tried
