"""Predictions as JSON Lines, CSV and text tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placer.report.text.table import text_table
from profiles import ATTRIBUTES, Workload

if TYPE_CHECKING:
    import pandas as pd

    from predictor import Prediction


def json_lines(predictions: Sequence[Sequence[Prediction]]) -> str:
    """One object per co-location, in order."""
    return "".join(json.dumps(_as_json(co_location)) + "\n" for co_location in predictions)


def scenario_table(
    co_locations: Sequence[Sequence[Workload]], predictions: Sequence[Sequence[Prediction]], coverage: float
) -> str:
    """One row per workload, as a text table."""
    headings = [
        "scenario", "nf", *ATTRIBUTES, "kpps", "solo kpps", "drop %", f"{100 * coverage:g} % interval", "bottleneck",
        "drop by resource (kpps)",
    ]  # fmt: skip
    rows = [
        (str(number), workload.nf, *(f"{value:g}" for value in workload.traffic.as_tuple()),
         f"{p.throughput_kpps:.1f}", f"{p.solo_kpps:.1f}", f"{100 * (1 - p.throughput_kpps / p.solo_kpps):.1f}",
         _interval(p), p.bottleneck,
         ", ".join(f"{name} {drop:.1f}" for name, drop in p.drops.items() if drop) or "-")
        for number, (co_location, predicted) in enumerate(zip(co_locations, predictions, strict=True), start=1)
        for workload, p in zip(co_location, predicted, strict=True)
    ]  # fmt: skip
    return text_table(headings, rows)


def contention_csv(written: pd.DataFrame, predictions: Sequence[Prediction], *, mark_extrapolated: bool) -> str:
    """The rows as they were written, with `predicted_kpps` and, where asked for, `extrapolated`."""
    return _with_predictions(written, predictions, mark_extrapolated).to_csv(index=False, lineterminator="\n")


def contention_table(written: pd.DataFrame, predictions: Sequence[Prediction], *, mark_extrapolated: bool) -> str:
    """The columns of `contention_csv`, interval, bottleneck and whether co-runs corrected it, as a text table."""
    table = _with_predictions(written, predictions, mark_extrapolated).assign(
        interval=[_interval(one) for one in predictions],
        bottleneck=[one.bottleneck for one in predictions],
        calibrated=["yes" if one.calibrated else "no" for one in predictions],
    )
    return text_table(list(table.columns), table.itertuples(index=False, name=None))


def _with_predictions(
    written: pd.DataFrame, predictions: Sequence[Prediction], mark_extrapolated: bool
) -> pd.DataFrame:
    table = written.assign(predicted_kpps=[f"{one.throughput_kpps:.6g}" for one in predictions])
    if mark_extrapolated:
        table = table.assign(extrapolated=[str(one.extrapolated).lower() for one in predictions])
    return table


def _interval(prediction: Prediction) -> str:
    return "-" if prediction.low_kpps is None else f"{prediction.low_kpps:.0f} to {prediction.high_kpps:.0f}"


def _as_json(predicted: Sequence[Prediction]) -> dict[str, object]:
    return {
        "throughput_kpps": [_rounded(p.throughput_kpps) for p in predicted],
        "solo_kpps": [_rounded(p.solo_kpps) for p in predicted],
        "bottleneck": [p.bottleneck for p in predicted],
        "drop_kpps": [{name: _rounded(drop) for name, drop in p.drops.items()} for p in predicted],
        "low_kpps": [None if p.low_kpps is None else _rounded(p.low_kpps) for p in predicted],
        "high_kpps": [None if p.high_kpps is None else _rounded(p.high_kpps) for p in predicted],
        "extrapolated": [p.extrapolated for p in predicted],
        "calibrated": [p.calibrated for p in predicted],
    }


def _rounded(kpps: float) -> float:
    return float(f"{kpps:.6g}")
