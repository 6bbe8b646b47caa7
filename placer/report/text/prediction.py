"""Predictions as JSON Lines, CSV and text tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.report.text.table import text_table
from profiles import ATTRIBUTES, GpuWorkload, Workload

if TYPE_CHECKING:
    import pandas as pd

    from predictor import Prediction
if TYPE_CHECKING:
    from predictor.gpu.prediction import GpuPrediction, Interval


def json_lines(co_locations: Sequence[Sequence[Workload]], predictions: Sequence[Sequence[Prediction]]) -> str:
    """One object per co-location, in order."""
    pairs = zip(co_locations, predictions, strict=True)
    return "".join(json.dumps(_as_json(co_location, predicted)) + "\n" for co_location, predicted in pairs)


def scenario_table(
    co_locations: Sequence[Sequence[Workload]], predictions: Sequence[Sequence[Prediction]], coverage: float
) -> str:
    """One row per workload, as a text table."""
    members = [workload for co_location in co_locations for workload in co_location]
    rates, cores = not all(member.is_saturated for member in members), any(member.cores for member in members)
    headings = [
        "scenario", "nf", *ATTRIBUTES, *["cores"] * cores, *["rate kpps"] * rates, "kpps",
        *["capacity kpps", "headroom %"] * rates, "solo kpps", "drop %", f"{100 * coverage:g} % interval", "bottleneck",
        "drop by resource (kpps)",
    ]  # fmt: skip
    rows = [
        (str(number), workload.nf, *(f"{value:g}" for value in workload.traffic.as_tuple()),
         *[str(workload.cores or "default")] * cores,
         *["saturated" if workload.is_saturated else f"{workload.rate_kpps:g}"] * rates,
         f"{p.throughput_kpps:.1f}",
         *[f"{p.capacity_kpps:.1f}", "-" if workload.is_saturated else f"{_headroom_pct(workload, p):.1f}"] * rates,
         f"{p.solo_kpps:.1f}", f"{100 * (1 - p.throughput_kpps / min(p.solo_kpps, workload.rate_kpps)):.1f}",
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
        interval=[_interval(prediction) for prediction in predictions],
        bottleneck=[prediction.bottleneck for prediction in predictions],
        calibrated=["yes" if prediction.calibrated else "no" for prediction in predictions],
    )
    return text_table(list(table.columns), table.itertuples(index=False, name=None))


def _with_predictions(
    written: pd.DataFrame, predictions: Sequence[Prediction], mark_extrapolated: bool
) -> pd.DataFrame:
    table = written.assign(predicted_kpps=[f"{prediction.throughput_kpps:.6g}" for prediction in predictions])
    if mark_extrapolated:
        table = table.assign(extrapolated=[str(prediction.extrapolated).lower() for prediction in predictions])
    return table


def _interval(prediction: Prediction) -> str:
    return "-" if prediction.low_kpps is None else f"{prediction.low_kpps:.0f} to {prediction.high_kpps:.0f}"


def _headroom_pct(workload: Workload, prediction: Prediction) -> float:
    """How much more it could carry than is offered to it, in % of that; below 0 where it loses packets."""
    return 100.0 * (prediction.capacity_kpps / workload.rate_kpps - 1.0)


def _as_json(co_location: Sequence[Workload], predicted: Sequence[Prediction]) -> dict[str, object]:
    headroom = [
        None if workload.is_saturated else round(_headroom_pct(workload, prediction), 2)
        for workload, prediction in zip(co_location, predicted, strict=True)
    ]
    return {
        "throughput_kpps": [_round(p.throughput_kpps) for p in predicted],
        "capacity_kpps": [_round(p.capacity_kpps) for p in predicted],
        **({"headroom_pct": headroom} if any(share is not None for share in headroom) else {}),
        "solo_kpps": [_round(p.solo_kpps) for p in predicted],
        "bottleneck": [p.bottleneck for p in predicted],
        "drop_kpps": [{name: _round(drop) for name, drop in p.drops.items()} for p in predicted],
        "low_kpps": [None if p.low_kpps is None else _round(p.low_kpps) for p in predicted],
        "high_kpps": [None if p.high_kpps is None else _round(p.high_kpps) for p in predicted],
        "extrapolated": [p.extrapolated for p in predicted],
        "calibrated": [p.calibrated for p in predicted],
    }


def _round(value: float) -> float:
    return float(f"{value:.6g}")


# Predicted latencies on a GPU server as JSON Lines and text tables.


SHOWN_STAGES = {"transfer_wait": "bus wait", "transfer": "transfer", "kernel": "kernel", "return": "return"}


@dataclass(frozen=True)
class PredictedScenario:
    """A co-location with its predictions, or with the causes for which the server does not carry it."""

    loads: Sequence[GpuWorkload]
    predictions: Sequence[GpuPrediction] | None
    overload: Sequence[str] = ()


def gpu_json_lines(scenarios: Sequence[PredictedScenario]) -> str:
    """One object per scenario, in order."""
    return "".join(json.dumps(_gpu_as_json(scenario)) + "\n" for scenario in scenarios)


def gpu_scenario_table(scenarios: Sequence[PredictedScenario], coverage: float) -> str:
    """One row per workload, as a text table."""
    interval = f"{100 * coverage:g} % interval"
    headings = [
        "scenario", "nf", "kpps", "batch", "mean us", interval, "p99 us", interval, "batching", "pre/post",
        *SHOWN_STAGES.values(),
    ]  # fmt: skip
    rows = []
    for number, scenario in enumerate(scenarios, start=1):
        for at, load in enumerate(scenario.loads):
            batch = load.gpu.batch if load.gpu else 0
            known = (str(number), load.nf, f"{load.rate_kpps:g}", str(batch))
            if scenario.predictions is None:
                rows.append((*known, "overload", *["-"] * (len(headings) - 5)))
                continue
            one = scenario.predictions[at]
            stages = (one.stages_us[name] for name in ("batching", "pre_post", *SHOWN_STAGES))
            mean, p99 = _range(one.mean_interval_us), _range(one.p99_interval_us)
            times = (f"{one.mean_us:.1f}", mean, f"{one.p99_us:.1f}", p99, *(f"{stage:.1f}" for stage in stages))
            rows.append((*known, *times))
    return text_table(headings, rows)


def _gpu_as_json(scenario: PredictedScenario) -> dict[str, object]:
    if scenario.predictions is None:
        return {"latency_us": None, "stages_us": None, "overload": list(scenario.overload)}
    return {
        "latency_us": [_latency(prediction) for prediction in scenario.predictions],
        "stages_us": [{name: _round(one) for name, one in p.stages_us.items()} for p in scenario.predictions],
        "overload": [],
        "extrapolated": [prediction.extrapolated for prediction in scenario.predictions],
    }


def _latency(one: GpuPrediction) -> dict[str, float | None]:
    return {
        "mean": _round(one.mean_us), "mean_low": _end(one.mean_interval_us, 0),
        "mean_high": _end(one.mean_interval_us, 1), "p50": _round(one.p50_us), "p99": _round(one.p99_us),
        "p99_low": _end(one.p99_interval_us, 0), "p99_high": _end(one.p99_interval_us, 1),
    }  # fmt: skip


def _end(interval: Interval | None, at: int) -> float | None:
    return None if interval is None else _round(interval[at])


def _range(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval[0]:.0f} to {interval[1]:.0f}"
