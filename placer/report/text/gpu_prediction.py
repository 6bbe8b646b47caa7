"""Predicted latencies on a GPU server as JSON Lines and text tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placer.report.text.table import text_table
from profiles import PacedWorkload

if TYPE_CHECKING:
    from predictor.gpu.prediction import GpuPrediction, Interval

SHOWN_STAGES = {"transfer_wait": "bus wait", "transfer": "transfer", "kernel": "kernel", "return": "return"}


@dataclass(frozen=True)
class PredictedScenario:
    """A co-location with its predictions, or with the causes for which the server does not carry it."""

    loads: Sequence[PacedWorkload]
    predictions: Sequence[GpuPrediction] | None
    overload: Sequence[str] = ()


def gpu_json_lines(scenarios: Sequence[PredictedScenario]) -> str:
    """One object per scenario, in order."""
    return "".join(json.dumps(_as_json(one)) + "\n" for one in scenarios)


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


def _as_json(scenario: PredictedScenario) -> dict[str, object]:
    if scenario.predictions is None:
        return {"latency_us": None, "stages_us": None, "overload": list(scenario.overload)}
    return {
        "latency_us": [_latency(one) for one in scenario.predictions],
        "stages_us": [{name: _rounded(one) for name, one in p.stages_us.items()} for p in scenario.predictions],
        "overload": [],
        "extrapolated": [one.extrapolated for one in scenario.predictions],
    }


def _latency(one: GpuPrediction) -> dict[str, float | None]:
    return {
        "mean": _rounded(one.mean_us),
        "mean_low": _end(one.mean_interval_us, 0),
        "mean_high": _end(one.mean_interval_us, 1),
        "p50": _rounded(one.p50_us),
        "p99": _rounded(one.p99_us),
        "p99_low": _end(one.p99_interval_us, 0),
        "p99_high": _end(one.p99_interval_us, 1),
    }


def _end(interval: Interval | None, at: int) -> float | None:
    return None if interval is None else _rounded(interval[at])


def _range(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval[0]:.0f} to {interval[1]:.0f}"


def _rounded(us: float) -> float:
    return float(f"{us:.6g}")
