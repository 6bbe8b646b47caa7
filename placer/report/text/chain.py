"""Predictions of chains as CSV, text tables and JSON, and what their models found."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from placer.report.text.table import text_table

if TYPE_CHECKING:
    from placer.inputs.csv_table import CsvTable
    from predictor.chains.chain_model import ChainModel, ChainPredictions
    from predictor.chains.selection import RegressorError

ADDED = ("predicted", "low", "high", "weakest", "extrapolated")


def described(model: ChainModel) -> Iterator[str]:
    """What was learnt from the files, one line each."""
    for nf, profile in model.profiles.items():
        settings = profile.settings
        error = next((f", left-out MAPE {one.mape_pct:.1f} %" for one in profile.compared
                      if one.regressor == profile.regressor), "")  # fmt: skip
        yield (
            f"{nf}: {len(settings)} settings, noise {100 * settings.spread:.1f} %, {settings.left_out} outliers left "
            f"out; {profile.regressor}{error}"
        )
    yield f"composition: {model.rule}"
    if model.runs is None:
        return
    if model.correction is None:
        yield f"no correction: {len(model.runs)} measured settings of the chain show no need of one"
    else:
        yield f"corrected by {int(model.correction.kept.sum())} of {len(model.runs)} measured settings of the chain"


def predictions(model: ChainModel, asked: CsvTable, predicted: ChainPredictions, measure: str, form: str) -> str:
    """The rows that were asked for, with what is predicted."""
    kept = [at for at, column in enumerate(asked.header) if column not in ADDED]
    marked = bool(predicted.extrapolated.any())
    header = [*(asked.header[at] for at in kept), *(ADDED if marked else ADDED[:-1])]
    rows = [
        [*(row[at] for at in kept), *added[: len(header) - len(kept)]]
        for row, added in zip(asked.rows, _added(predicted), strict=True)
    ]
    if form == "table":
        return text_table(header, rows, words=0)
    if form == "json":
        return _as_json(model, predicted, measure, [dict(zip(header[: len(kept)], row, strict=False)) for row in rows])
    return _csv(header, rows)


def comparison(errors: Mapping[str, Sequence[RegressorError]], form: str) -> str:
    """The error of every regressor for every profile."""
    from predictor.chains.selection import best_of

    header = ["profile", "regressor", "mape_pct", "rmse", "chosen"]
    rows = [
        [nf, one.regressor, f"{one.mape_pct:.4g}", f"{one.rmse:.4g}", "yes" if one is best_of(compared) else ""]
        for nf, compared in errors.items()
        for one in compared
    ]
    if form == "table":
        return text_table(header, rows, words=2)
    if form == "json":
        return json.dumps([dict(zip(header, row, strict=True)) for row in rows]) + "\n"
    return _csv(header, rows)


def _added(predicted: ChainPredictions) -> Iterator[list[str]]:
    columns = (predicted.predicted, predicted.low, predicted.high, predicted.weakest, predicted.extrapolated)
    for value, low, high, weakest, outside in zip(*columns, strict=True):
        yield [f"{value:.6g}", f"{low:.6g}", f"{high:.6g}", weakest, str(bool(outside)).lower()]


def _csv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _as_json(model: ChainModel, predicted: ChainPredictions, measure: str, asked: Sequence[Mapping[str, str]]) -> str:
    rows = [
        {**row, "predicted": float(value), "low": float(low), "high": float(high), "weakest": weakest,
         "extrapolated": outside == "true"}
        for row, (value, low, high, weakest, outside) in zip(asked, _added(predicted), strict=True)
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
