"""Which plans say what is worth measuring."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from placer.budget import usage
from placer.evaluate.expected_violations import ExpectedViolations
from placer.model.arrival import Arrival
from placer.model.catalogue import Catalogue
from placer.model.plan import Plan
from placer.strategies.budget import RISKS_TRIED
from placer.testing.strategies import arrival, catalogue


class Careful:
    """Places nothing, at a risk of 5 % unless another is given."""

    def __init__(self, catalogue: Catalogue, predictor: str) -> None:
        self.risk = catalogue.risk or 0.05

    def place(self, arrivals: Sequence[Arrival]) -> Plan:
        return Plan("careful", "toy", (), 0.0, self.risk)


def test_the_plan_of_a_round_is_the_one_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less careful plans and resampled traces weigh co-locations; what a round reports is the plan of the arrivals."""
    monkeypatch.setattr(usage, "ContentionAware", Careful)
    assert usage.usage_of([arrival("1", 0, "a")], catalogue(), "toy", 0).plan.risk == 0.05


def test_the_risk_of_a_later_round_moves_by_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the budget it is one smaller; with far fewer violations than it allows, one larger; else the same."""
    monkeypatch.setattr(usage, "ContentionAware", Careful)
    at = RISKS_TRIED[5]
    former = usage.Usage(Plan("careful", "toy", (), 0.0, at), {})
    for violations, risk in ((2.0, RISKS_TRIED[6]), (0.1, RISKS_TRIED[4]), (0.6, at)):
        expected = ExpectedViolations(violations, 0.0)
        monkeypatch.setattr(usage, "expected_violations", lambda *_, expected=expected: expected)
        kept = replace(catalogue(), risk=None, budget_pct=1.0)
        assert usage.usage_of([arrival("1", 0, "a")], kept, "toy", 0, former, 1).plan.risk == risk


def test_what_the_round_before_used_counts_half(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of one round are few, and those of the round before are still like them."""
    monkeypatch.setattr(usage, "ContentionAware", Careful)
    former = usage.Usage(Plan("careful", "toy", (), 0.0, 0.05), {(): 4.0})
    assert usage.usage_of([arrival("1", 0, "a")], catalogue(), "toy", 0, former, 1).weights == {(): 2.0}
