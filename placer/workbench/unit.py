"""The unit of a study: one trace on one fleet at one risk. It holds all that its figures depend on."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from placer.evaluation import Evaluation
from placer.optimum import NAME as OPTIMAL
from placer.oracle import DEFAULT_RISK
from placer.progress import Progress
from placer.run import Comparison, RunRequest, run
from placer.strategies import strategies

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


def judged(unit: Unit) -> list[Row]:
    """A row per strategy and predictor: the labels, then figures. Times are left out: they are of the machine.

    Raises
    ------
    InputError, TestbedError, BrokenPlan
        As `run`.
    """
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "arrivals.csv"
        trace.write_text(unit.trace, encoding="utf-8")
        request = RunRequest(
            arrivals=str(trace),
            strategies=unit.strategies,
            predictors=unit.predictors,
            models=unit.models,
            testbed=unit.testbed,
            fleet=unit.fleet,
            time_limit=unit.time_limit,
            risk=unit.risk,
        )
        comparison = run(request, Progress(quiet=True))
    return [{**unit.labels, **_figures(comparison, one, unit.risk)} for one in comparison.evaluations]


def looks_at_a_predictor(strategy: str) -> bool:
    """Whether what the strategy does depends on predictor and risk."""
    return strategy != OPTIMAL and strategies()[strategy].needs_predictor


def _heeds_risk(comparison: Comparison, one: Evaluation) -> bool:
    return (
        one.plan.predictor is not None
        and looks_at_a_predictor(one.plan.strategy)
        and comparison.catalogue.heeds_risk(one.plan.predictor)
    )


def _figures(comparison: Comparison, one: Evaluation, risk: float | None) -> Row:
    optimum = comparison.optimum
    return {
        "strategy": one.plan.strategy,
        "predictor": one.plan.predictor,
        "risk": (DEFAULT_RISK if risk is None else risk) if _heeds_risk(comparison, one) else None,
        "arrivals": len(comparison.arrivals),
        "nics": one.nics,
        "cost": float(one.cost),
        "rejected": one.plan.rejected,
        "violated": one.violated,
        "violations_pct": one.violations_pct,
        "wastage_pct": comparison.wastage_pct(one),
        "optimal_nics": optimum.nics,
        "lower_bound": optimum.nics_lower_bound,
        "proven": optimum.proven,
        "truth": comparison.truth,
    }
