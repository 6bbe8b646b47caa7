"""The comparison of `placer run` as a table for people, and as JSON and CSV for programs (docs/formats.md)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from placer.evaluate.evaluation import Evaluation
from placer.optimal.shortfall import Shortfall
from placer.report.text.counts import counted, counted_nics
from placer.report.text.recommendation import (
    asked_budget,
    plan_name,
    recommendation_lines,
    recommended_plan,
    variation_of,
)
from placer.report.text.table import text_table
from placer.report.wastage import (
    costs_differ,
    is_marked,
    keeps_budget,
    reference,
    wastage_notes,
    wastage_text,
)
from placer.run import Comparison

EXPECTED = "expected"
"""Heading of the SLA violations that the predictor expects, next to the measured ones."""


def as_table(comparison: Comparison) -> str:
    """A table that reads without colour, then the optimum, the ground truth, and what else the reader must know."""
    costs, expected = costs_differ(comparison), _expects_violations(comparison)
    headings = [
        "strategy", "predictor", "NICs", *(["cost"] if costs else []), "wastage", *(["cost wastage"] if costs else []),
        "SLA violations", *([EXPECTED] if expected else []), "rejected", "decisions/s",
    ]  # fmt: skip
    rows = [_row(comparison, evaluation) for evaluation in comparison.plans]
    shortfall = comparison.optimum.shortfall
    lines = [
        "",
        *recommendation_lines(comparison),
        *wastage_notes(comparison, comparison.plans),
        _optimum_line(comparison),
        *([] if shortfall is None else [shortfall.sentence()]),
        f"{counted(len(comparison.arrivals), 'arrival')}. {truth_note(comparison)}",
        *measured_notes(comparison),
        *risk_notes(comparison),
    ]
    return text_table(headings, rows, words=2) + "\n".join(lines) + "\n"


def as_json(comparison: Comparison) -> str:
    """One JSON object."""
    return json.dumps(_summary(comparison), indent=2) + "\n"


def as_csv(comparison: Comparison) -> str:
    """One row per strategy and predictor; each repeats the figures of the whole run."""
    summary = _summary(comparison)
    optimal = {f"optimal_{key}": value for key, value in summary["optimal"].items() if not isinstance(value, dict)}
    rows = [
        {"arrivals": summary["arrivals"], "seed": summary["seed"], "truth": summary["truth"], **row, **optimal}
        for row in summary["strategies"]
    ]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["strategy"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


FORMATS: dict[str, Callable[[Comparison], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


def truth_note(comparison: Comparison) -> str:
    """Where the ground truth comes from, in a sentence or two."""
    if comparison.truth == "predicted":
        return (
            f"No ground truth: the optimum is the one that {comparison.judge} predicts, not comparable with plans of\n"
            "other predictors, and SLA violations are unknown."
        )
    if comparison.truth == "simulated":
        return "SLA violations are measured on the simulated card, not on hardware."
    return f"SLA violations are measured by the testbed {comparison.truth}."


def measured_notes(comparison: Comparison) -> list[str]:
    """Where a plan was made by measuring, how far it rests on that."""
    return [
        f"{plan_name(one)}: {counted(one.measured_runs, 'run')} measured; {one.measured_pct:.0f} % of the instances "
        "are on NICs whose co-locations were measured."
        for one in comparison.plans
        if one.measured_runs is not None and one.measured_pct is not None
    ]


def risk_notes(comparison: Comparison) -> list[str]:
    """Where --risk was given, the predictors on which it has no effect."""
    catalogue = comparison.catalogue
    used = dict.fromkeys(one.plan.predictor for one in comparison.evaluations if one.plan.predictor)
    without = [name for name in used if catalogue.risk is not None and not catalogue.supports_risk(name)]
    return [f"{name} does not model its prediction error: --risk {catalogue.risk:g} has no effect." for name in without]


def _expects_violations(comparison: Comparison) -> bool:
    return any(one.expected_violations_pct is not None for one in comparison.evaluations)


def _row(comparison: Comparison, evaluation: Evaluation) -> list[str]:
    """The cells of a plan; where some plan is marked, the wastage of others is aligned with it."""
    costs, marked = costs_differ(comparison), is_marked(comparison, evaluation)
    marks = any(is_marked(comparison, one) for one in comparison.plans)
    nics, cost = (
        wastage_text(pct, marked) + ("  " if marks and not marked else "")
        for pct in (comparison.wastage_pct(evaluation), comparison.cost_wastage_pct(evaluation))
    )
    return [
        evaluation.plan.strategy,
        evaluation.plan.predictor or "-",
        f"{evaluation.nics:,}",
        *([f"{evaluation.cost:,.6g}"] if costs else []),
        nics,
        *([cost] if costs else []),
        _percent(evaluation.violations_pct, "unknown"),
        *([_percent(evaluation.expected_violations_pct, "-")] if _expects_violations(comparison) else []),
        f"{evaluation.plan.rejected:,}",
        f"{_decisions_per_s(evaluation):,.0f}",
    ]


def _optimum_line(comparison: Comparison) -> str:
    optimum = comparison.optimum
    nics, cost = counted_nics(optimum.nics) if optimum.nics else "every arrival rejected", f"{optimum.cost:,.6g}"
    if not optimum.proven:
        nics = f"between {optimum.nics_lower_bound:,} (lower bound) and {nics}"
        cost = f"between {optimum.lower_bound:,.6g} and {cost}"
    figures = f"{nics}, cost {cost}" if costs_differ(comparison) else nics
    proof = "proven" if optimum.proven else "not proven"
    times = f"solved in {optimum.seconds:.1f} s, throughput queries {optimum.oracle_seconds:.1f} s"
    return f"Optimum: {figures}, {proof} ({optimum.scope}; {times})."


def _summary(comparison: Comparison) -> dict[str, Any]:
    optimum = comparison.optimum
    return {
        "arrivals": len(comparison.arrivals),
        "seed": comparison.seed,
        "truth": comparison.truth,
        "optimal": {
            "nics": optimum.nics,
            "lower_bound": _whole(optimum.lower_bound),
            "proven": optimum.proven,
            "seconds": round(optimum.seconds, 4),
            "oracle_seconds": round(optimum.oracle_seconds, 4),
            "cost": _whole(optimum.cost),
            "rejected": optimum.plan.rejected,
            "scope": optimum.scope,
            **({} if optimum.shortfall is None else {"shortfall": _shortfall(optimum.shortfall)}),
        },
        "strategies": [_strategy(comparison, evaluation) for evaluation in comparison.evaluations],
        "recommended": _recommended(comparison),
    }


def _strategy(comparison: Comparison, evaluation: Evaluation) -> dict[str, Any]:
    return {
        "strategy": evaluation.plan.strategy,
        "predictor": evaluation.plan.predictor,
        "nics": evaluation.nics,
        "wastage_pct": _rounded(comparison.wastage_pct(evaluation)),
        "wastage_against": reference(comparison).replace(" ", "_"),
        "sla_violations_pct": _rounded(evaluation.violations_pct),
        "expected_violations_pct": _rounded(evaluation.expected_violations_pct),
        "violated": evaluation.violated,
        "rejected": evaluation.plan.rejected,
        "seconds": round(evaluation.plan.seconds, 4),
        "decisions_per_s": round(_decisions_per_s(evaluation), 1),
        "cost": _whole(evaluation.cost),
        "cost_wastage_pct": _rounded(comparison.cost_wastage_pct(evaluation)),
        "budget_pct": comparison.catalogue.budget_pct,
        "keeps_budget": None if comparison.catalogue.budget_pct is None else keeps_budget(comparison, evaluation),
        "risk": evaluation.plan.risk,
        "comparable": not is_marked(comparison, evaluation),
        **({} if not measured_notes(comparison) else _measured(evaluation)),
    }


def _measured(evaluation: Evaluation) -> dict[str, Any]:
    return {"measured_runs": evaluation.measured_runs, "measured_pct": _rounded(evaluation.measured_pct)}


def _recommended(comparison: Comparison) -> dict[str, Any]:
    """The plan to choose, which may be one for a smaller budget than the requested one."""
    chosen = recommended_plan(comparison)
    variation = variation_of(comparison, chosen)
    return {
        **_strategy(comparison, chosen),
        "strategy": (chosen if variation is None else variation.asked).plan.strategy,
        "asked_budget_pct": asked_budget(comparison, chosen),
        "nics_without_margin": None if variation is None else variation.without_margin.nics,
    }


def _shortfall(shortfall: Shortfall) -> dict[str, Any]:
    return {
        "left_out": list(shortfall.left_out),
        "smallest": shortfall.proven,
        "nics_to_add": shortfall.to_add,
        "fewest": shortfall.to_add_proven,
        "hopeless": list(shortfall.unsatisfiable),
        "why": shortfall.reason or None,
    }


def _decisions_per_s(evaluation: Evaluation) -> float:
    return len(evaluation.plan.placements) / max(evaluation.plan.seconds, 1e-9)


def _percent(value: float | None, unknown: str) -> str:
    return unknown if value is None else f"{value:.1f} %"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value
