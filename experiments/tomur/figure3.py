"""Figure 3: throughput drops depend on the traffic, which a model of one traffic profile misses."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import box_table, errors_pct, flatten
from experiments.methodology.findings import Finding, findings_table
from experiments.methodology.plots import boxes, curves
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.benches import cache_access_rate, mem_bench, run_with_benches
from experiments.tomur.methodology.co_locations import random_traffics
from experiments.tomur.methodology.simulated_card import DEFAULT_TRAFFIC, tomur
from experiments.tomur.methodology.slomo import slomo
from profiles import TrafficProfile
from profiles.arrays import Floats

PUBLISHED_MAPES = {"FlowStats": 1.2, "FlowClassifier": 1.1, "FlowTracker": 1.6}
"""NFs and the published MAPE of SLOMO at default traffic (table 11)."""
FLOW_COUNTS = (4000.0, 16000.0, 64000.0)
SPEED_COUNT = 24
WORKING_SET_MB = 10
TRAFFIC_COUNT = 100


@experiment(PAPER, "figure3", "Throughput drops and errors of SLOMO at different flow counts")
def run(setting: Setting) -> Result:
    """FlowStats with mem-bench at three flow counts (a); errors of models of 16K flows at other flow counts (b)."""
    speeds = np.linspace(1, 180, setting.count(SPEED_COUNT)).tolist()
    runs = [
        (TrafficProfile(flows, DEFAULT_TRAFFIC.packet_size, DEFAULT_TRAFFIC.mtbr), (mem_bench(WORKING_SET_MB, speed),))
        for flows in FLOW_COUNTS
        for speed in speeds
    ]
    measured = run_with_benches("FlowStats", runs, setting)
    over_car = pd.DataFrame(
        {
            "flows": measured.table["flows"],
            "car_mref": cache_access_rate(measured.table),
            "throughput_kpps": measured.truth,
            "predicted_kpps": measured.predicted(tomur(setting)),
        }
    )
    errors = _errors(setting)
    lost = over_car.groupby("flows")["throughput_kpps"].agg(lambda rates: 100 * (1 - rates.min() / rates.max()))
    findings = [
        Finding(f"largest drop of FlowStats with mem-bench, {flows:,.0f} flows", drop) for flows, drop in lost.items()
    ]
    for nf, published in PUBLISHED_MAPES.items():
        findings.append(
            Finding(f"MAPE of SLOMO, {nf}, 16K flows", errors[nf, "default"].mean(), published, kind="error")
        )
        findings.append(Finding(f"median error of SLOMO, {nf}, other flow counts", np.median(errors[nf, "random"])))

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        curves(left, over_car, "car_mref", "flows", "competing cache access rate (Mref/s)")
        left.legend(title="flows (x: predicted by Tomur)")
        boxes(right, {f"{nf}\n{traffic}": values for (nf, traffic), values in errors.items()}, "error of SLOMO (%)")

    return Result(
        findings_table(findings),
        (f"{SIMULATED_CARD}: all runs.", f"{HARDWARE_CARD}: no runs; the measurements contain none of these NFs."),
        draw,
        (
            "The paper draws these errors; it gives numbers only for default traffic (table 11). Ours are with "
            f"mem-bench at a working set of {WORKING_SET_MB} MB.",
        ),
        {
            "throughput": over_car,
            "errors": box_table(errors, ("nf", "traffic")),
            "every-error": flatten(errors, ("nf", "traffic"), "error_pct"),
        },
    )


def _errors(setting: Setting) -> dict[tuple[str, str], Floats]:
    errors = {}
    for nf in PUBLISHED_MAPES:
        rng = setting.rng(f"figure3 {nf}")
        count = setting.count(TRAFFIC_COUNT)
        benches = [mem_bench(WORKING_SET_MB, float(speed)) for speed in rng.uniform(1, 180, size=count)]
        for traffic, traffics in (
            ("default", [DEFAULT_TRAFFIC] * count),
            ("random", random_traffics(count, rng, vary=["flows"])),
        ):
            runs = [(one, (bench,)) for one, bench in zip(traffics, benches, strict=True)]
            measured = run_with_benches(nf, runs, setting)
            errors[nf, traffic] = errors_pct(measured.predicted(slomo(setting)), measured.truth)
    return errors
