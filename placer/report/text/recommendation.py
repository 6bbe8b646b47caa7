"""Which plan of a run to choose, and what its budget of SLA violations costs, in sentences for every report."""

from __future__ import annotations

from collections.abc import Iterator

from placer.evaluate.evaluation import Evaluation
from placer.optimal.bounded_plan import NAME as OPTIMAL
from placer.placing import BudgetVariation
from placer.report.text.counts import counted_nics
from placer.report.wastage import budget_of
from placer.run import Comparison


def plan_name(evaluation: Evaluation) -> str:
    """The strategy of a plan, with its predictor where it has one."""
    plan = evaluation.plan
    return f"{plan.strategy}, {plan.predictor}" if plan.predictor else plan.strategy


def recommended_plan(comparison: Comparison) -> Evaluation:
    """The plan to choose: it rejects fewest arrivals, then keeps the budget of SLA violations, then costs least.

    Without a ground truth the expected violations count. The optimum is not a choice, because it knows all arrivals in
    advance.
    """
    online = [one for one in comparison.plans if one.plan.strategy != OPTIMAL]
    budget = budget_of(comparison)
    return min(
        online or comparison.plans,
        key=lambda one: (one.plan.rejected, max((known_violations_pct(one) or 0.0) - budget, 0.0), one.cost),
    )


def known_violations_pct(evaluation: Evaluation) -> float | None:
    """SLA violations (%) by the ground truth; without one, those to expect; None where neither is known."""
    measured = evaluation.violations_pct
    return evaluation.expected_violations_pct if measured is None else measured


def asked_budget(comparison: Comparison, evaluation: Evaluation) -> float | None:
    """The budget (%) that the plan was made for; None where it was made for none."""
    for variation in comparison.variations:
        for budget, one in variation.more_careful:
            if one is evaluation:
                return budget
    return None if evaluation.plan.risk is None else comparison.catalogue.budget_pct


def variation_of(comparison: Comparison, evaluation: Evaluation) -> BudgetVariation | None:
    """The variation that the plan is one of."""
    for variation in comparison.variations:
        if any(one is evaluation for one in (variation.asked, *(one for _, one in variation.more_careful))):
            return variation
    return None


def recommendation_lines(comparison: Comparison) -> Iterator[str]:
    """The plan to choose, with the option that gives it, and what the budget costs."""
    chosen, budget = recommended_plan(comparison), budget_of(comparison)
    if chosen.plan.strategy == OPTIMAL:
        return
    violations = known_violations_pct(chosen)
    kept = violations is None or violations <= budget
    measured = "" if chosen.violations_pct is not None else " expected"
    of = "unknown SLA violations" if violations is None else f"{violations:.1f} % SLA violations{measured}"
    asked = asked_budget(comparison, chosen)
    option = f" (--budget {asked:g})" if asked not in (None, budget) else ""
    start = "Recommended" if kept else f"No plan keeps the budget of {budget:g} %; the closest one"
    yield f"{start}: {plan_name(chosen)}{option}, {counted_nics(chosen.nics)}, {of}."
    yield from missed_budget(comparison, chosen)
    yield from budget_cost(comparison, chosen)


def budget_cost(comparison: Comparison, chosen: Evaluation) -> Iterator[str]:
    """What the budget costs in NICs, against the same strategy by the median prediction."""
    variation = variation_of(comparison, chosen)
    if variation is None:
        return
    without, more = variation.without_margin, chosen.nics - variation.without_margin.nics
    violations = known_violations_pct(without)
    of = "" if violations is None else f", with {violations:.1f} % SLA violations"
    costs = f"costs {counted_nics(more)}" if more > 0 else "costs no NIC"
    yield f"The budget of {budget_of(comparison):g} % {costs}: without a margin, the plan needs {without.nics:,}{of}."


def missed_budget(comparison: Comparison, chosen: Evaluation) -> Iterator[str]:
    """Plans with fewer NICs than the chosen one that violate more SLAs than the budget, and what would help."""
    budget, family = budget_of(comparison), variation_of(comparison, chosen)
    for one in comparison.evaluations:
        violations = one.violations_pct or 0.0
        if one.plan.risk is not None and one.nics < chosen.nics and violations > budget:
            start = f"{plan_name(one)} uses {counted_nics(one.nics)}, but {violations:.1f} % of its instances violate "
            variation = variation_of(comparison, one)
            yield f"{start}their SLA, more than the budget of {budget:g} %{_remedy(comparison, variation, family)}."


def _remedy(comparison: Comparison, missed: BudgetVariation | None, kept: BudgetVariation | None) -> str:
    """What reduces the violations of a plan; nothing is left to say where a more careful one of `kept` was chosen."""
    if missed is None or not missed.more_careful:
        option = "--risk" if comparison.catalogue.budget_pct is None else "--budget"
        return f"; a lower {option} reduces violations"
    if missed is kept:
        return ""
    return f", and so do those of its plans for smaller budgets, down to {missed.more_careful[-1][0]:g} %"
