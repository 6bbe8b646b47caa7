"""Wastage as every report shows it: NICs and cost beyond the optimum, marked where a plan is no fair comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placer.evaluate.evaluation import Evaluation
from placer.model.catalogue import DEFAULT_BUDGET_PCT
from placer.run import Comparison

MARK = "*"
"""Follows the wastage of a plan that must not be compared with the optimum."""

EPSILON = 1e-9


def budget_of(comparison: Comparison) -> float:
    """SLA violations up to which a plan is acceptable, %: as requested, or the default where a risk was given."""
    budget = comparison.catalogue.budget_pct
    return DEFAULT_BUDGET_PCT if budget is None else budget


def keeps_budget(comparison: Comparison, evaluation: Evaluation) -> bool | None:
    """Whether the plan's SLA violations are within the budget; None without a ground truth."""
    violations = evaluation.violations_pct
    return None if violations is None else violations <= budget_of(comparison)


def reference(comparison: Comparison) -> str:
    """What wastage is relative to: the optimum, or its lower bound where the optimum is not proven."""
    return "optimum" if comparison.optimum.proven else "lower bound"


def costs_differ(comparison: Comparison) -> bool:
    """Whether NICs of the fleet cost different amounts, so that fewest NICs and least cost are two goals."""
    return len({kind.cost for kind in comparison.catalogue.kinds}) > 1


def is_marked(comparison: Comparison, evaluation: Evaluation) -> bool:
    """Whether the plan looks better than it is next to the optimum."""
    return next(_reasons(comparison, evaluation), None) is not None


def wastage_text(pct: float | None, marked: bool = False) -> str:
    """A wastage with its sign, and with the mark where the plan is no fair comparison."""
    if pct is None:
        return "-"
    return f"{pct:+.1f} % {MARK}" if marked else f"{pct:+.1f} %"


def wastage_notes(comparison: Comparison, evaluations: Sequence[Evaluation]) -> list[str]:
    """What readers of the wastage of these plans must know: what the mark means, and why there may be no wastage."""
    optimum = comparison.optimum
    if not optimum.nics:
        return [f"Wastage is undefined: the optimum uses no NIC and rejects all {optimum.plan.rejected:,} arrivals."]
    if not optimum.proven and not optimum.nics_lower_bound:
        return ["Wastage is unknown: no lower bound above 0 NICs is known."]
    reasons = dict.fromkeys(reason for one in evaluations for reason in _reasons(comparison, one))
    return [f"{MARK} not comparable with the optimum: {'; '.join(reasons)}."] if reasons else []


def _reasons(comparison: Comparison, evaluation: Evaluation) -> Iterator[str]:
    optimum = comparison.optimum
    if keeps_budget(comparison, evaluation) is False:
        yield f"more than {budget_of(comparison):g} % SLA violations"
    elif evaluation.violated and _below_reference(comparison, evaluation):
        yield "fewer NICs only through SLA violations"
    if evaluation.plan.rejected > optimum.plan.rejected:
        yield "more arrivals rejected than in the optimum"


def _below_reference(comparison: Comparison, evaluation: Evaluation) -> bool:
    wastages = comparison.wastage_pct(evaluation), comparison.cost_wastage_pct(evaluation)
    return any(pct is not None and pct < -EPSILON for pct in wastages)
