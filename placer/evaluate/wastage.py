"""Wastage as every report shows it: NICs and cost beyond the optimum, marked where a plan is no fair comparison."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from placer.evaluate.evaluation import Evaluation
from placer.model.catalogue import DEFAULT_BUDGET_PCT, Catalogue
from placer.model.plan import OPTIMAL, Plan

MARK = "*"  # follows the wastage of a plan that must not be compared with the optimum

UNPROVEN = "**"
"""Follows the wastage of the optimum where it is not proven: it is the best plan found, above a lower bound."""

MARK_MEANINGS = {MARK: f"{MARK} not comparable", UNPROVEN: f"{UNPROVEN} not proven"}
"""What the marks mean, in a column of a table."""

LEAST_DIFFERENCE = 1e-9


class BestPlan(Protocol):
    """The plan that wastage is measured against, with the bound below it."""

    @property
    def plan(self) -> Plan: ...
    @property
    def nics(self) -> int: ...
    @property
    def nics_lower_bound(self) -> int: ...
    @property
    def proven(self) -> bool: ...


class Compared(Protocol):
    """Plans for one trace beside the best one (`placer.run.Comparison`)."""

    @property
    def catalogue(self) -> Catalogue: ...
    @property
    def optimum(self) -> BestPlan: ...
    @property
    def plans(self) -> tuple[Evaluation, ...]: ...
    def wastage_pct(self, evaluation: Evaluation) -> float | None: ...
    def cost_wastage_pct(self, evaluation: Evaluation) -> float | None: ...


def budget_of(comparison: Compared) -> float:
    """SLA violations up to which a plan is acceptable, %: as requested, or the default where a risk was given."""
    budget = comparison.catalogue.budget_pct
    return DEFAULT_BUDGET_PCT if budget is None else budget


def keeps_budget(comparison: Compared, evaluation: Evaluation) -> bool | None:
    """Whether the plan's SLA violations are within the budget; None without a ground truth."""
    violations = evaluation.violations_pct
    return None if violations is None else violations <= budget_of(comparison)


def reference(comparison: Compared) -> str:
    """What wastage is relative to: the optimum, or its lower bound where the optimum is not proven."""
    return "optimum" if comparison.optimum.proven else "lower bound"


def costs_differ(comparison: Compared) -> bool:
    """Whether NICs of the fleet cost different amounts, so that fewest NICs and least cost are two goals."""
    return len({kind.cost for kind in comparison.catalogue.kinds}) > 1


def is_marked(comparison: Compared, evaluation: Evaluation) -> bool:
    """Whether the plan looks better than it is next to the optimum."""
    return next(_reasons(comparison, evaluation), None) is not None


def mark_of(comparison: Compared, evaluation: Evaluation) -> str:
    """What follows the wastage of a plan; nothing where it can be compared with the optimum, or is a proven one."""
    if is_marked(comparison, evaluation):
        return MARK
    return UNPROVEN if _is_unproven(comparison, evaluation) else ""


def wastage_text(pct: float | None, mark: str = "") -> str:
    """A wastage with its sign and its mark."""
    if pct is None:
        return "-"
    return f"{pct:+.1f} % {mark}" if mark else f"{pct:+.1f} %"


def wastage_notes(comparison: Compared, evaluations: Sequence[Evaluation]) -> list[str]:
    """What readers of the wastage of these plans must know: what the mark means, and why there may be no wastage."""
    optimum = comparison.optimum
    if not optimum.nics:
        return [f"Wastage is undefined: the optimum uses no NIC and rejects all {optimum.plan.rejected:,} arrivals."]
    if not optimum.proven and not optimum.nics_lower_bound:
        return ["Wastage is unknown: no lower bound above 0 NICs is known."]
    reasons = dict.fromkeys(reason for evaluation in evaluations for reason in _reasons(comparison, evaluation))
    notes = [f"{MARK} not comparable with the optimum: {'; '.join(reasons)}."] if reasons else []
    if any(_is_unproven(comparison, evaluation) for evaluation in evaluations):
        bound = f"{optimum.nics_lower_bound:,} NIC{'s' * (optimum.nics_lower_bound != 1)}"
        notes.append(f"{UNPROVEN} not proven optimal: the best plan found, above the lower bound of {bound}.")
    return notes


def _reasons(comparison: Compared, evaluation: Evaluation) -> Iterator[str]:
    optimum = comparison.optimum
    if keeps_budget(comparison, evaluation) is False:
        yield f"more than {budget_of(comparison):g} % SLA violations"
    elif evaluation.violated and _below_reference(comparison, evaluation):
        yield "fewer NICs only through SLA violations"
    if evaluation.plan.rejected > optimum.plan.rejected:
        yield "more arrivals rejected than in the optimum"
    elif evaluation.plan.losses > optimum.plan.losses:
        yield "arrivals of higher priority rejected than in the optimum"


def _is_unproven(comparison: Compared, evaluation: Evaluation) -> bool:
    return evaluation.plan.strategy == OPTIMAL and not comparison.optimum.proven


def _below_reference(comparison: Compared, evaluation: Evaluation) -> bool:
    wastages = comparison.wastage_pct(evaluation), comparison.cost_wastage_pct(evaluation)
    return any(pct is not None and pct < -LEAST_DIFFERENCE for pct in wastages)
