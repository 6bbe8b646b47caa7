"""Which plan of a run is recommended, and what the sentences say about its budget."""

from __future__ import annotations

import json
from dataclasses import replace

from placer.evaluate.evaluation import Evaluation
from placer.placing import BudgetVariation
from placer.report.text.recommendation import recommendation_lines, recommended_plan
from placer.report.text.run import as_json
from placer.run import Comparison
from tests.placer.report.test_wastage import comparison, evaluation


def at_risk(name: str, risk: float, nics: int, violated: int) -> Evaluation:
    """A plan of contention-aware at a risk."""
    one = evaluation(name, nics, float(nics), violated)
    return replace(one, plan=replace(one.plan, predictor="tomur", risk=risk))


def varied(asked_violated: int, careful: tuple[tuple[float, int, int], ...]) -> Comparison:
    """Greedy with 20 NICs and contention-aware with 12; `careful`: budget, NICs, violations."""
    asked = at_risk("contention-aware", 0.1, 12, asked_violated)
    more = tuple(
        (budget, at_risk(f"contention-aware at budget {budget:g} %", 0.01, nics, violated))
        for budget, nics, violated in careful
    )
    variation = BudgetVariation(asked, more, at_risk("contention-aware without margin", 0.5, 11, 9))
    return replace(comparison(evaluation("greedy", 20, 20.0, 0), asked), variations=(variation,))


def test_the_cheapest_plan_that_keeps_the_budget_is_recommended() -> None:
    lines = list(recommendation_lines(varied(2, ())))
    assert lines == [
        "Recommended: contention-aware, tomur, 12 NICs, 2.0 % SLA violations.",
        "The budget of 2 % costs 1 NIC: without a margin, the plan needs 11, with 9.0 % SLA violations.",
    ]


def test_a_more_careful_plan_is_recommended_before_another_strategy() -> None:
    """Where the asked plan misses the budget by the truth, with the option that gives the more careful plan."""
    compared = varied(3, ((1.0, 13, 3), (0.5, 14, 1)))
    lines = list(recommendation_lines(compared))
    assert lines[0] == (
        "Recommended: contention-aware at budget 0.5 %, tomur (--budget 0.5), 14 NICs, 1.0 % SLA violations."
    )
    assert lines[1:] == [
        "contention-aware, tomur uses 12 NICs, but 3.0 % of its instances violate their SLA, more than the budget of "
        "2 %.",
        "The budget of 2 % costs 3 NICs: without a margin, the plan needs 11, with 9.0 % SLA violations.",
    ]
    printed = json.loads(as_json(compared))
    assert [row["strategy"] for row in printed["strategies"]] == ["greedy", "contention-aware"]
    recommended = printed["recommended"]
    assert recommended["strategy"] == "contention-aware"
    assert (recommended["asked_budget_pct"], recommended["budget_pct"], recommended["keeps_budget"]) == (0.5, 2.0, True)
    assert (recommended["nics"], recommended["nics_without_margin"], recommended["risk"]) == (14, 11, 0.01)


def test_another_strategy_is_recommended_where_no_careful_plan_keeps_the_budget() -> None:
    compared = varied(9, ((1.0, 13, 8),))
    assert recommended_plan(compared).plan.strategy == "greedy"
    assert list(recommendation_lines(compared))[1:] == [
        "contention-aware, tomur uses 12 NICs, but 9.0 % of its instances violate their SLA, more than the budget of "
        "2 %, and so do those of its plans for smaller budgets, down to 1 %."
    ]


def test_where_no_plan_keeps_the_budget_the_closest_one_is_named() -> None:
    lines = list(recommendation_lines(comparison(evaluation("greedy", 20, 20.0, 9), evaluation("rash", 9, 9.0, 30))))
    assert lines == ["No plan keeps the budget of 2 %; the closest one: greedy, 20 NICs, 9.0 % SLA violations."]


def test_without_a_ground_truth_the_expected_violations_count() -> None:
    """The cheaper plan is expected to miss the budget."""
    cheap, sound = (
        replace(evaluation(name, nics, float(nics), 0), stays=None, expected_violations_pct=expected)
        for name, nics, expected in (("cheap", 10, 3.0), ("sound", 11, 1.0))
    )
    lines = list(recommendation_lines(comparison(cheap, sound)))
    assert lines == ["Recommended: sound, 11 NICs, 1.0 % SLA violations expected."]
