"""Allocations of a chain as a text table and JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from placer.report.text.table import text_table

if TYPE_CHECKING:
    from predictor.chains.chain_model import ChainModel, ChainPredictions
    from predictor.chains.scaling import ScalingResult, ScalingTarget


def scaling_report(
    model: ChainModel, target: ScalingTarget, smallest: ScalingResult, greedy: ScalingResult, measure: str, form: str
) -> str:
    """The smallest allocation beside that of the greedy procedure, with what each reaches as predicted."""
    found = {"one-shot": smallest, "greedy": greedy}
    predicted = {name: _predicted(model, target, result) for name, result in found.items()}
    if form == "json":
        answer = {
            "y": measure, "target": target.measure, "resource": target.resource, "workload": dict(target.workload),
            "rule": model.rule.name, "corrected": model.correction is not None,
            **{name.replace("-", "_"): _as_json(result, predicted[name]) for name, result in found.items()},
        }  # fmt: skip
        return json.dumps(answer) + "\n"
    nfs = list(dict.fromkeys(stage.nf for stage in model.chain.stages))
    headings = ["method", *(f"{nf}.{target.resource}" for nf in nfs), "total", f"predicted {measure}", "90 % interval",
                "chain runs"]  # fmt: skip
    rows = [
        [name, *_amounts(result, nfs), *_reached(predicted[name]), str(len(result.tried))]
        for name, result in found.items()
    ]
    limit = "at least" if model.higher_is_better else "at most"
    text = text_table(headings, rows, words=1) + f"\nTarget: {measure} {limit} {target.measure:g}, as predicted.\n"
    if smallest.allocation is None:
        text += "No profiled allocation meets it.\n"
    return text


def _predicted(model: ChainModel, target: ScalingTarget, result: ScalingResult) -> ChainPredictions | None:
    from predictor.chains.scaling import predicted_for

    if result.allocation is None:
        return None
    return predicted_for(model, target, {nf: np.array([amount]) for nf, amount in result.allocation.items()})


def _amounts(result: ScalingResult, nfs: list[str]) -> list[str]:
    if result.allocation is None:
        return ["-"] * (len(nfs) + 1)
    return [*(f"{result.allocation[nf]:g}" for nf in nfs), f"{result.total:g}"]


def _reached(predicted: ChainPredictions | None) -> list[str]:
    if predicted is None:
        return ["-", "-"]
    return [f"{predicted.predicted[0]:.4g}", f"{predicted.low[0]:.4g} to {predicted.high[0]:.4g}"]


def _as_json(result: ScalingResult, predicted: ChainPredictions | None) -> dict[str, object]:
    if result.allocation is None or predicted is None:
        return {"allocation": None, "chain_runs": len(result.tried)}
    return {
        "allocation": dict(result.allocation),
        "total": result.total,
        "predicted": float(f"{predicted.predicted[0]:.6g}"),
        "low": float(f"{predicted.low[0]:.6g}"),
        "high": float(f"{predicted.high[0]:.6g}"),
        "chain_runs": len(result.tried),
    }
