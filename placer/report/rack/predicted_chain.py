"""Predictions of chains as CSV, text tables and JSON, and what their models found."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placer.report.text.table import csv_text, text_table

if TYPE_CHECKING:
    from predictor.chains.chain_model import ChainModel, ChainPredictions
    from predictor.chains.profiled_nf import RegressorError
    from predictor.chains.scaling import ScalingResult, ScalingTarget
    from profiles.files.csv_table import CsvTable

SHOWN_RULES, LEAST_SHOWN_CHANCE = 3, 0.05  # rules that are shown, and how probable each must be
ADDED_COLUMNS = ("predicted", "low", "high", "weakest", "extrapolated")


def describe(model: ChainModel) -> Iterator[str]:
    """What was learnt from the files, one line each."""
    for nf, profile in model.profiles.items():
        settings = profile.settings
        error = next((f", left-out MAPE {regressor.mape_pct:.1f} %" for regressor in profile.compared
                      if regressor.regressor == profile.regressor), "")  # fmt: skip
        yield (
            f"{nf}: {len(settings)} settings, noise {100 * settings.spread:.1f} %, {settings.left_out} outliers left "
            f"out; {profile.regressor}{error}"
        )
    rules = [] if model.correction is None else model.correction.rules[:SHOWN_RULES]
    likely = [f"{rule} ({100 * chance:.0f} %)" for rule, chance in rules if chance >= LEAST_SHOWN_CHANCE]
    yield f"composition: {', or '.join(likely) if likely else model.rule}"
    if model.runs is None:
        return
    if model.correction is None:
        yield f"no correction: {len(model.runs)} measured settings of the chain show no need of one"
    else:
        how_far = ", half way: they do not show that it helps" if model.doubt else ""
        kept = int(model.correction.kept.sum())
        yield f"corrected by {kept} of {len(model.runs)} measured settings of the chain{how_far}"


def predictions(model: ChainModel, asked: CsvTable, predicted: ChainPredictions, measure: str, form: str) -> str:
    """The rows that were asked for, with what is predicted."""
    kept = [at for at, column in enumerate(asked.header) if column not in ADDED_COLUMNS]
    marked = bool(predicted.extrapolated.any())
    header = [*(asked.header[at] for at in kept), *(ADDED_COLUMNS if marked else ADDED_COLUMNS[:-1])]
    rows = [
        [*(row[at] for at in kept), *added[: len(header) - len(kept)]]
        for row, added in zip(asked.rows, _add(predicted), strict=True)
    ]
    if form == "table":
        return text_table(header, rows, words=0)
    if form == "json":
        return _as_json(model, predicted, measure, [dict(zip(header[: len(kept)], row, strict=False)) for row in rows])
    return csv_text(header, rows)


def comparison(errors: Mapping[str, Sequence[RegressorError]], form: str) -> str:
    """The error of every regressor for every profile."""
    from predictor.chains.profiled_nf import best_of

    header = ["profile", "regressor", "mape_pct", "rmse", "chosen"]
    rows = [
        [
            nf,
            regressor.regressor,
            f"{regressor.mape_pct:.4g}",
            f"{regressor.rmse:.4g}",
            "yes" if regressor is best_of(compared) else "",
        ]
        for nf, compared in errors.items()
        for regressor in compared
    ]
    if form == "table":
        return text_table(header, rows, words=2)
    if form == "json":
        return json.dumps([dict(zip(header, row, strict=True)) for row in rows]) + "\n"
    return csv_text(header, rows)


def _add(predicted: ChainPredictions) -> Iterator[list[str]]:
    columns = (predicted.predicted, predicted.low, predicted.high, predicted.weakest, predicted.extrapolated)
    for value, low, high, weakest, outside in zip(*columns, strict=True):
        yield [f"{value:.6g}", f"{low:.6g}", f"{high:.6g}", weakest, str(bool(outside)).lower()]


def _as_json(model: ChainModel, predicted: ChainPredictions, measure: str, asked: Sequence[Mapping[str, str]]) -> str:
    rows = [
        {**row, "predicted": float(value), "low": float(low), "high": float(high), "weakest": weakest,
         "extrapolated": outside == "true"}
        for row, (value, low, high, weakest, outside) in zip(asked, _add(predicted), strict=True)
    ]  # fmt: skip
    profiles = {
        nf: {"regressor": one.regressor, "settings": len(one.settings), "noise_pct": 100 * one.settings.spread,
             "outliers": one.settings.left_out}
        for nf, one in model.profiles.items()
    }  # fmt: skip
    answer = {
        "y": measure, "rule": model.rule.name, "corrected": model.correction is not None, "profiles": profiles,
        "measured": 0 if model.runs is None else len(model.runs), "rows": rows,
    }  # fmt: skip
    return json.dumps(answer) + "\n"


# Allocations of a chain as a text table and JSON.


def scaling_report(
    model: ChainModel, target: ScalingTarget, smallest: ScalingResult, greedy: ScalingResult, measure: str, form: str
) -> str:
    """The smallest allocation beside that of the greedy procedure, with what each reaches as predicted."""
    found = {"one-shot": smallest, "greedy": greedy}
    predicted = {name: _predict(model, target, result) for name, result in found.items()}
    if form == "json":
        answer = {
            "y": measure, "target": target.measure, "resource": target.resource, "workload": dict(target.workload),
            "rule": model.rule.name, "corrected": model.correction is not None,
            **{name.replace("-", "_"): _scaling_as_json(result, predicted[name]) for name, result in found.items()},
        }  # fmt: skip
        return json.dumps(answer) + "\n"
    nfs = list(dict.fromkeys(stage.nf for stage in model.chain.stages))
    headings = ["method", *(f"{nf}.{target.resource}" for nf in nfs), "total", f"predicted {measure}", "90 % interval",
                "chain runs"]  # fmt: skip
    rows = [
        [name, *_amounts(result, nfs), *_format_reached(predicted[name]), str(len(result.tried))]
        for name, result in found.items()
    ]
    limit = "at least" if model.higher_is_better else "at most"
    how = "as predicted" if target.safe or model.runs is None else "with a probability of 70 %"
    text = text_table(headings, rows, words=1) + f"\nTarget: {measure} {limit} {target.measure:g}, {how}.\n"
    if smallest.allocation is None:
        text += "No profiled allocation meets it.\n"
    return text


def _predict(model: ChainModel, target: ScalingTarget, result: ScalingResult) -> ChainPredictions | None:
    from predictor.chains.scaling import predict_allocations

    if result.allocation is None:
        return None
    return predict_allocations(model, target, {nf: np.array([amount]) for nf, amount in result.allocation.items()})


def _amounts(result: ScalingResult, nfs: list[str]) -> list[str]:
    if result.allocation is None:
        return ["-"] * (len(nfs) + 1)
    return [*(f"{result.allocation[nf]:g}" for nf in nfs), f"{result.total:g}"]


def _format_reached(predicted: ChainPredictions | None) -> list[str]:
    if predicted is None:
        return ["-", "-"]
    return [f"{predicted.predicted[0]:.4g}", f"{predicted.low[0]:.4g} to {predicted.high[0]:.4g}"]


def _scaling_as_json(result: ScalingResult, predicted: ChainPredictions | None) -> dict[str, object]:
    if result.allocation is None or predicted is None:
        return {"allocation": None, "chain_runs": len(result.tried)}
    return {
        "allocation": dict(result.allocation), "total": result.total,
        "predicted": float(f"{predicted.predicted[0]:.6g}"), "low": float(f"{predicted.low[0]:.6g}"),
        "high": float(f"{predicted.high[0]:.6g}"), "chain_runs": len(result.tried),
    }  # fmt: skip
