"""Renders a comparison: a table for people, JSON and CSV for programs (docs/formats.md)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from placer.evaluate.evaluation import Evaluation
from placer.optimal.shortfall import Shortfall
from placer.report.text.table import text_table
from placer.run import Comparison


def as_json(comparison: Comparison) -> str:
    """One JSON object."""
    return json.dumps(_summary(comparison), indent=2) + "\n"


def as_csv(comparison: Comparison) -> str:
    """One row per strategy and predictor; what is of the whole run is repeated in each."""
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


def as_table(comparison: Comparison) -> str:
    """A table that reads without colour and in 80 columns."""
    optimum, proven = comparison.optimum, comparison.optimum.proven
    against = "optimum" if proven else "bound"
    headings = ["strategy", "predictor", "NICs", f"over {against}", "SLAs broken", "rejected", "decisions/s"]
    rows = [
        (
            evaluation.plan.strategy,
            evaluation.plan.predictor or "-",
            f"{evaluation.nics:,}",
            f"{comparison.wastage_pct(evaluation):+.1f} %",
            "unknown" if evaluation.violations_pct is None else f"{evaluation.violations_pct:.1f} %",
            f"{evaluation.plan.rejected:,}",
            f"{_decisions_per_s(evaluation):,.0f}",
        )
        for evaluation in comparison.evaluations
    ]
    count = len(comparison.arrivals)
    told = (
        f"{optimum.nics:,} NICs, proven"
        if proven
        else f"between {optimum.nics_lower_bound:,} and {optimum.nics:,} NICs"
    )
    lines = [
        "",
        f"Optimum: {told} ({optimum.scope}; {optimum.seconds:.1f} s, and {optimum.oracle_seconds:.1f} s of asking).",
        *([] if optimum.shortfall is None else [optimum.shortfall.told()]),
        f"{count:,} arrivals. {truth_told(comparison)}",
        *risk_told(comparison),
    ]
    return text_table(headings, rows, words=2) + "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[[Comparison], str]] = {"table": as_table, "json": as_json, "csv": as_csv}
"""Renderers by the name of their format."""


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
        "strategies": [
            {
                "strategy": evaluation.plan.strategy,
                "predictor": evaluation.plan.predictor,
                "nics": evaluation.nics,
                "wastage_pct": round(comparison.wastage_pct(evaluation), 4),
                "wastage_against": "optimum" if optimum.proven else "lower_bound",
                "sla_violations_pct": _rounded(evaluation.violations_pct),
                "violated": evaluation.violated,
                "rejected": evaluation.plan.rejected,
                "seconds": round(evaluation.plan.seconds, 4),
                "decisions_per_s": round(_decisions_per_s(evaluation), 1),
                "cost": _whole(evaluation.cost),
            }
            for evaluation in comparison.evaluations
        ],
    }


def _shortfall(shortfall: Shortfall) -> dict[str, Any]:
    return {
        "left_out": list(shortfall.left_out),
        "smallest": shortfall.smallest,
        "nics_to_add": shortfall.to_add,
        "fewest": shortfall.fewest,
        "hopeless": list(shortfall.hopeless),
        "why": shortfall.why or None,
    }


def _decisions_per_s(evaluation: Evaluation) -> float:
    return len(evaluation.plan.placements) / max(evaluation.plan.seconds, 1e-9)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _whole(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value


def risk_told(comparison: Comparison) -> list[str]:
    """Where a risk was asked for, which of the predictors take no notice of it."""
    catalogue = comparison.catalogue
    used = dict.fromkeys(one.plan.predictor for one in comparison.evaluations if one.plan.predictor)
    deaf = [name for name in used if catalogue.risk is not None and not catalogue.heeds_risk(name)]
    return [f"{name} knows no errors of its own and takes no notice of --risk {catalogue.risk:g}." for name in deaf]


def truth_told(comparison: Comparison) -> str:
    """Who judged, in a sentence or two."""
    if comparison.truth == "predicted":
        return (
            f"No ground truth: the optimum is what {comparison.judge} predicts, figures of other predictors are not\n"
            "comparable with it, and whether SLAs break is unknown."
        )
    if comparison.truth == "simulated":
        return "SLAs are judged on the simulated card, not on hardware."
    return f"SLAs are judged by the testbed {comparison.truth}."
