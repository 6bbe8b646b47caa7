"""The unit of a study: one trace on one fleet at one risk. It holds all that its figures depend on."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from placer.evaluate.evaluation import Evaluation
from placer.inputs.catalogue import Cards
from placer.model.oracle import DEFAULT_RISK
from placer.optimal.trace_optimum import NAME as OPTIMAL
from placer.progress import Progress
from placer.run import Comparison, Evaluations, RunRequest, run, run_online
from placer.strategies import find_strategy

Value = str | float | int | bool | None
Row = dict[str, Value]


@dataclass(frozen=True)
class Unit:
    """One run of a study.

    Parameters
    ----------
    labels
        What tells it from other units, by column name.
    trace
        The arrivals, as CSV text: a unit may be run where no file of ours is.
    strategies, predictors
        Names; empty means all.
    risk
        Of strategies that look at a predictor; None is the default.
    fleet, models, testbed, time_limit
        As of `RunRequest`.
    against_optimum
        Whether wastage is told; without it the optimum is not sought, unless it is among the strategies.
    """

    labels: Mapping[str, Value]
    trace: str
    strategies: tuple[str, ...] = ()
    predictors: tuple[str, ...] = ()
    risk: float | None = None
    fleet: Path | None = None
    models: Path | None = None
    testbed: str | None = None
    time_limit: float = 60.0
    against_optimum: bool = True


def judged(unit: Unit) -> list[Row]:
    """A row per strategy and predictor: the labels, then figures. Times are left out: they are of the machine.

    Raises
    ------
    InputError, TestbedError, BrokenPlan
        As `run`.
    """
    request = RunRequest(
        arrivals=io.StringIO(unit.trace, newline=""),
        strategies=unit.strategies,
        predictors=unit.predictors,
        cards=Cards(models=unit.models, testbed=unit.testbed, fleet=unit.fleet, risk=unit.risk),
        time_limit=unit.time_limit,
    )
    seeks = unit.against_optimum or not unit.strategies or OPTIMAL in unit.strategies
    found = (run if seeks else run_online)(request, Progress(quiet=True))
    return [{**unit.labels, **_figures(found, one, unit.risk)} for one in found.evaluations]


def looks_at_a_predictor(strategy: str) -> bool:
    """Whether what the strategy does depends on predictor and risk."""
    return strategy != OPTIMAL and find_strategy(strategy).needs_predictor


def _heeds_risk(judged: Evaluations, one: Evaluation) -> bool:
    return (
        one.plan.predictor is not None
        and looks_at_a_predictor(one.plan.strategy)
        and judged.catalogue.heeds_risk(one.plan.predictor)
    )


def _figures(judged: Evaluations, one: Evaluation, risk: float | None) -> Row:
    return {
        "strategy": one.plan.strategy,
        "predictor": one.plan.predictor,
        "risk": (DEFAULT_RISK if risk is None else risk) if _heeds_risk(judged, one) else None,
        "arrivals": len(judged.arrivals),
        "nics": one.nics,
        "cost": float(one.cost),
        "rejected": one.plan.rejected,
        "violated": one.violated,
        "violations_pct": one.violations_pct,
        **_against_optimum(judged, one),
        "truth": judged.truth,
    }


def _against_optimum(judged: Evaluations, one: Evaluation) -> Row:
    if not isinstance(judged, Comparison):
        return dict.fromkeys(("wastage_pct", "optimal_nics", "lower_bound", "proven"))
    optimum = judged.optimum
    return {
        "wastage_pct": judged.wastage_pct(one),
        "optimal_nics": optimum.nics,
        "lower_bound": optimum.nics_lower_bound,
        "proven": optimum.proven,
    }
