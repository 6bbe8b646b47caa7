"""Figure 3: how contention costs throughput depends on the traffic, and a model of one traffic misses the others."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.methodology.accuracy import box_table, errors_pct, flattened
from experiments.methodology.benches import beside_benches, cache_access_rate, mem_bench
from experiments.methodology.card import DEFAULT, tomur
from experiments.methodology.co_locations import random_traffics
from experiments.methodology.plots import boxes, curves
from experiments.methodology.slomo import slomo
from experiments.methodology.workloads import Fact, fact_table
from experiments.registry import Result, Setting, experiment
from profiles import TrafficProfile

Array = NDArray[np.float64]

NFS = {"FlowStats": 1.2, "FlowClassifier": 1.1, "FlowTracker": 1.6}
"""With SLOMO's published MAPE at default traffic (table 11)."""
FLOWS = (4000.0, 16000.0, 64000.0)
SPEEDS = 24
WORKING_SET_MB = 10
TRAFFICS = 100


@experiment("figure3", "Traffic changes what contention costs")
def run(setting: Setting) -> Result:
    """FlowStats beside mem-bench at three flow counts (a); errors of models of 16K flows at other flow counts (b)."""
    over_car = _over_access_rate(setting)
    errors = _errors(setting)
    lost = over_car.groupby("flows")["throughput_kpps"].agg(lambda rates: 100 * (1 - rates.min() / rates.max()))
    facts = [Fact(f"FlowStats loses to mem-bench at {flows:,.0f} flows", drop) for flows, drop in lost.items()]
    for nf, published in NFS.items():
        facts.append(Fact(f"MAPE of SLOMO, {nf}, 16K flows", errors[nf, "default"].mean(), published, kind="error"))
        facts.append(Fact(f"median error of SLOMO, {nf}, other flow counts", np.median(errors[nf, "random"])))

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        curves(left, over_car, "car_mref", "flows", "competing cache access rate (Mref/s)")
        left.legend(title="flows (x: Tomur)")
        boxes(right, {f"{nf}\n{traffic}": values for (nf, traffic), values in errors.items()}, "error of SLOMO (%)")

    return Result(
        fact_table(facts),
        ("the simulated BlueField-2: every run.", "BlueField-2: nothing; FlowMonitor is not among these NFs."),
        draw,
        (
            "the paper draws these errors and tells no number but those at default traffic (table 11), which we repeat "
            f"here with mem-bench in {WORKING_SET_MB} MB.",
        ),
        {
            "throughput": over_car,
            "errors": box_table(errors, ("nf", "traffic")),
            "every-error": flattened(errors, ("nf", "traffic"), "error_pct"),
        },
    )


def _over_access_rate(setting: Setting) -> pd.DataFrame:
    speeds = np.linspace(1, 180, setting.count(SPEEDS)).tolist()
    runs = [
        (TrafficProfile(flows, DEFAULT.packet_size, DEFAULT.mtbr), (mem_bench(WORKING_SET_MB, speed),))
        for flows in FLOWS
        for speed in speeds
    ]
    beside = beside_benches("FlowStats", runs, setting)
    return pd.DataFrame(
        {
            "flows": beside.table["flows"],
            "car_mref": cache_access_rate(beside.table),
            "throughput_kpps": beside.truth,
            "predicted_kpps": beside.predicted(tomur(setting)),
        }
    )


def _errors(setting: Setting) -> dict[tuple[str, str], Array]:
    errors = {}
    for nf in NFS:
        rng = setting.rng(f"figure3 {nf}")
        count = setting.count(TRAFFICS)
        benches = [mem_bench(WORKING_SET_MB, float(speed)) for speed in rng.uniform(1, 180, size=count)]
        for traffic, traffics in (
            ("default", [DEFAULT] * count),
            ("random", random_traffics(count, rng, vary=["flows"])),
        ):
            runs = [(one, (bench,)) for one, bench in zip(traffics, benches, strict=True)]
            beside = beside_benches(nf, runs, setting)
            errors[nf, traffic] = errors_pct(beside.predicted(slomo(setting)), beside.truth)
    return errors
