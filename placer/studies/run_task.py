"""A run of a study: one trace on one fleet for one budget, with everything that its results depend on."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from placer.evaluate.evaluation import Evaluation
from placer.inputs.catalogue import Cards
from placer.model.catalogue import DEFAULT_BUDGET_PCT, Catalogue
from placer.optimal.bounded_plan import NAME as OPTIMAL
from placer.progress import Progress
from placer.run import Comparison, Evaluations, RunRequest, run, run_online
from placer.strategies import find_strategy

Value = str | float | int | bool | None
Row = dict[str, Value]


@dataclass(frozen=True)
class RunTask:
    """One run of a study.

    Parameters
    ----------
    labels
        Columns of the results that identify the run.
    trace
        The arrivals as CSV text, because a task may run on another machine.
    cards
        The NICs, their models, the ground truth, and the budget of SLA violations or the risk.
    strategies, predictors
        Names; empty means all.
    time_limit
        Seconds for the optimum.
    with_optimum
        Whether wastage is needed; without it the optimum is computed only if it is among the strategies.
    """

    labels: Mapping[str, Value]
    trace: str
    cards: Cards = field(default_factory=Cards)
    strategies: tuple[str, ...] = ()
    predictors: tuple[str, ...] = ()
    time_limit: float = 60.0
    with_optimum: bool = True


def run_task(task: RunTask) -> list[Row]:
    """A row per strategy and predictor: the labels, then results. Times are left out, because they vary.

    Raises
    ------
    InputError, TestbedError, InvalidPlan
        As `run`.
    """
    request = RunRequest(
        arrivals=io.StringIO(task.trace, newline=""),
        strategies=task.strategies,
        predictors=task.predictors,
        cards=task.cards,
        time_limit=task.time_limit,
    )
    with_optimum = task.with_optimum or not task.strategies or OPTIMAL in task.strategies
    evaluations = (run if with_optimum else run_online)(request, Progress(quiet=True))
    return [{**task.labels, **_results(evaluations, one)} for one in evaluations.evaluations]


def variants(
    task: RunTask, catalogue: Catalogue, *, budgets: Sequence[float] = (), risks: Sequence[float] = ()
) -> Iterator[RunTask]:
    """The task for each budget, the largest first, then at each risk; for the default budget where none is given.

    Strategies and predictors on which neither has an effect run once.
    """
    asked: list[tuple[float | None, float | None]] = [(budget, None) for budget in sorted(set(budgets), reverse=True)]
    asked += [(None, risk) for risk in dict.fromkeys(risks)]
    for number, (budget, risk) in enumerate(asked or [(DEFAULT_BUDGET_PCT, None)]):
        if number == 1:
            strategies = tuple(name for name in task.strategies if uses_predictor(name))
            predictors = tuple(name for name in task.predictors if catalogue.supports_risk(name))
            task = replace(task, strategies=strategies, predictors=predictors)
        if task.strategies and task.predictors:
            yield replace(task, cards=replace(task.cards, budget_pct=budget, risk=risk))


def uses_predictor(strategy: str) -> bool:
    """Whether the plan of the strategy depends on predictor and risk."""
    return strategy != OPTIMAL and find_strategy(strategy).needs_predictor


def _results(evaluations: Evaluations, one: Evaluation) -> Row:
    catalogue = evaluations.catalogue
    given = catalogue.risk if _supports_risk(evaluations, one) else None
    return {
        "strategy": one.plan.strategy,
        "predictor": one.plan.predictor,
        "budget_pct": catalogue.budget_pct,
        "risk": given if one.plan.risk is None else one.plan.risk,
        "arrivals": len(evaluations.arrivals),
        "nics": one.nics,
        "cost": float(one.cost),
        "rejected": one.plan.rejected,
        "violated": one.violated,
        "violations_pct": one.violations_pct,
        "expected_violations_pct": one.expected_violations_pct,
        **_against_optimum(evaluations, one),
        "truth": evaluations.truth,
    }


def _supports_risk(evaluations: Evaluations, one: Evaluation) -> bool:
    strategy, predictor = one.plan.strategy, one.plan.predictor
    return predictor is not None and uses_predictor(strategy) and evaluations.catalogue.supports_risk(predictor)


def _against_optimum(evaluations: Evaluations, one: Evaluation) -> Row:
    if not isinstance(evaluations, Comparison):
        return dict.fromkeys(("wastage_pct", "optimal_nics", "lower_bound", "proven"))
    optimum = evaluations.optimum
    return {
        "wastage_pct": evaluations.wastage_pct(one),
        "optimal_nics": optimum.nics,
        "lower_bound": optimum.nics_lower_bound,
        "proven": optimum.proven,
    }
