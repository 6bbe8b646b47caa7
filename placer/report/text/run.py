"""The comparison of `placer run` as a table for people, and as JSON and CSV for programs (docs/formats/run.md)."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from placer.evaluate.columns import figures_of, losses_by_name, round_figure, table_columns, whole
from placer.evaluate.evaluation import Evaluation
from placer.evaluate.wastage import costs_differ, wastage_notes
from placer.model.arrival import have_priorities
from placer.optimal.bounded_plan import ids_of_rejected
from placer.optimal.shortfall import Shortfall
from placer.report.text import recommendation as choice
from placer.report.text.table import count_nics, count_noun, csv_text, text_table
from placer.run import Comparison

MOST_LISTED = 5  # Co-locations that a sentence lists at most


def as_table(comparison: Comparison) -> str:
    """A table that reads without colour, then the optimum, the ground truth, and what else the reader must know."""
    columns = table_columns(comparison)
    rows = [[column.text(comparison, plan) for column in columns] for plan in comparison.plans]
    shortfall = comparison.optimum.shortfall
    lines = [
        "",
        *choice.recommendation_lines(comparison),
        *wastage_notes(comparison, comparison.plans),
        _optimum_line(comparison),
        *([] if shortfall is None else [shortfall.sentence()]),
        f"{count_noun(len(comparison.arrivals), 'arrival')}. {truth_note(comparison)}",
        *load_notes(comparison),
        *note_measurements(comparison),
        *risk_notes(comparison),
    ]
    return text_table([column.heading for column in columns], rows, words=2) + "\n".join(lines) + "\n"


def as_json(comparison: Comparison) -> str:
    """One JSON object."""
    return json.dumps(_summary(comparison), indent=2) + "\n"


def as_csv(comparison: Comparison) -> str:
    """One row per strategy and predictor; each repeats the figures of the whole run."""
    summary = _summary(comparison)
    optimal = {f"optimal_{key}": value for key, value in _flat(summary["optimal"]).items()}
    rows = [
        {"arrivals": summary["arrivals"], "seed": summary["seed"], "truth": summary["truth"], **_flat(row), **optimal}
        for row in summary["strategies"]
    ]
    headings = list(dict.fromkeys(key for row in rows for key in row)) or ["strategy"]
    return csv_text(headings, [[row.get(key, "") for key in headings] for row in rows])


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """What of a row of the JSON fits the cells of a CSV file, with a cell for each priority."""
    by_priority = {f"rejected_priority_{key}": value for key, value in row.get("rejected_by_priority", {}).items()}
    return {key: value for key, value in row.items() if not isinstance(value, dict)} | by_priority


RUN_FORMATS: dict[str, Callable[[Comparison], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
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


def load_notes(comparison: Comparison) -> list[str]:
    """Where instances have an offered rate, when they keep their SLA."""
    loaded = sum(not arrival.workload.is_saturated for arrival in comparison.arrivals)
    if not loaded:
        return []
    which = "An instance" if loaded == len(comparison.arrivals) else f"Of {loaded:,} arrivals the load is given: each"
    return [f"{which} carries its load if it loses no more of the offered rate than its SLA allows."]


def note_measurements(comparison: Comparison) -> list[str]:
    """Where a plan was made by measuring, how far it rests on that, and what of it was not measured."""
    return [
        f"{choice.plan_name(plan)}: {count_noun(plan.measured_runs, 'run')} measured; {plan.measured_pct:.0f} % of the "
        f"instances are on NICs whose co-locations were measured{_note_unmeasured(plan)}."
        for plan in comparison.plans
        if plan.measured_runs is not None and plan.measured_pct is not None
    ]


def _note_unmeasured(evaluation: Evaluation) -> str:
    """The co-locations of the plan that were not measured, if any."""
    names = [" + ".join(nfs) for nfs in evaluation.unmeasured]
    more = f" and {len(names) - MOST_LISTED:,} more" if len(names) > MOST_LISTED else ""
    return f"; not measured: {', '.join(names[:MOST_LISTED])}{more}" if names else ""


def risk_notes(comparison: Comparison) -> list[str]:
    """Where --risk was given, the predictors on which it has no effect."""
    catalogue = comparison.catalogue
    used = dict.fromkeys(
        evaluation.plan.predictor for evaluation in comparison.evaluations if evaluation.plan.predictor
    )
    without = [name for name in used if catalogue.risk is not None and not catalogue.supports_risk(name)]
    return [f"{name} does not model its prediction error: --risk {catalogue.risk:g} has no effect." for name in without]


def _optimum_line(comparison: Comparison) -> str:
    optimum = comparison.optimum
    nics, cost = count_nics(optimum.nics) if optimum.nics else "every arrival rejected", f"{optimum.cost:,.6g}"
    if not optimum.proven:
        nics = f"between {optimum.nics_lower_bound:,} (lower bound) and {nics}"
        cost = f"between {optimum.lower_bound:,.6g} and {cost}"
    figures = f"{nics}, cost {cost}" if costs_differ(comparison) else nics
    proof = "proven" if optimum.proven else "not proven"
    times = f"solved in {optimum.seconds:.1f} s, throughput queries {optimum.oracle_seconds:.1f} s"
    return f"Optimum: {figures}, {proof} ({optimum.scope}; {times})."


def _summary(comparison: Comparison) -> dict[str, Any]:
    optimum, ranked = comparison.optimum, have_priorities(comparison.arrivals)
    return {
        "arrivals": len(comparison.arrivals),
        "seed": comparison.seed,
        "truth": comparison.truth,
        "optimal": {
            "nics": optimum.nics,
            "lower_bound": whole(optimum.lower_bound),
            "proven": optimum.proven,
            "seconds": round(optimum.seconds, 4),
            "oracle_seconds": round(optimum.oracle_seconds, 4),
            "cost": whole(optimum.cost),
            "rejected": optimum.plan.rejected,
            **({"rejected_by_priority": losses_by_name(optimum.plan)} if ranked else {}),
            "scope": optimum.scope,
            **({} if optimum.shortfall is None else {"shortfall": _shortfall(optimum.shortfall)}),
        },
        "strategies": [figures_of(comparison, evaluation) for evaluation in comparison.evaluations],
        "recommended": _describe_recommended(comparison),
    }


def _describe_recommended(comparison: Comparison) -> dict[str, Any]:
    """The plan to choose, which may be one for a smaller budget than the requested one."""
    chosen = choice.choose_plan(comparison)
    variation = choice.variation_of(comparison, chosen)
    return {
        **figures_of(comparison, chosen),
        "strategy": (chosen if variation is None else variation.asked).plan.strategy,
        "asked_budget_pct": choice.asked_budget(comparison, chosen),
        "nics_without_margin": None if variation is None else variation.without_margin.nics,
        "left_out": list(ids_of_rejected(chosen.plan)),
        "nics_to_add": choice.nics_to_add(comparison),
        "range": _range(comparison),
    }


def _range(comparison: Comparison) -> dict[str, Any] | None:
    """What the strategy of the recommended plan does on traces drawn from this one; None where none was drawn."""
    similar = comparison.similar
    if not similar:
        return None
    figures: dict[str, Iterable[float | None]] = {
        "nics": [evaluation.nics for evaluation in similar],
        "sla_violations_pct": [round_figure(evaluation.violations_pct) for evaluation in similar],
        "expected_violations_pct": [round_figure(evaluation.expected_violations_pct) for evaluation in similar],
        "rejected": [evaluation.plan.rejected for evaluation in similar],
    }
    return {"draws": len(similar), **{name: choice.ends_of(values) for name, values in figures.items()}}


def _shortfall(shortfall: Shortfall) -> dict[str, Any]:
    return {
        "left_out": list(shortfall.left_out), "smallest": shortfall.proven, "nics_to_add": shortfall.to_add,
        "fewest": shortfall.to_add_proven, "hopeless": list(shortfall.unsatisfiable), "why": shortfall.reason or None,
    }  # fmt: skip
