"""Figure 6: which traffic attributes matter, and over which part of their range."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import errors_pct
from experiments.methodology.benches import beside_benches, mem_bench
from experiments.methodology.card import DEFAULT, tomur
from experiments.methodology.plots import curves
from experiments.methodology.workloads import Fact, fact_table
from experiments.registry import Result, Setting, experiment
from profiles import TrafficProfile

NF = "FlowStats"
WORKING_SETS_MB = (1.0, 5.0, 10.0)
PUBLISHED_AT_MB = 10.0
ACCESS_MOPS = 100.0
FLOWS = (1.0, *(1000.0 * step for step in range(2, 62, 2)))
PACKET_SIZES = tuple(float(size) for size in np.linspace(64, 1500, 13).round())


@experiment("figure6", "FlowStats over flow count and packet size")
def run(setting: Setting) -> Result:
    """FlowStats beside mem-bench of three working sets, over flows (a) and over packet size (b)."""
    over_flows = _swept("flows", FLOWS, setting)
    over_size = _swept("packet_size", PACKET_SIZES, setting)
    at_10_mb = over_flows[over_flows["competing_wss_mb"] == PUBLISHED_AT_MB].set_index("flows")["throughput_kpps"]
    sizes = over_size.loc[over_size["competing_wss_mb"] == PUBLISHED_AT_MB, "throughput_kpps"]
    both = pd.concat([over_flows, over_size])
    errors = errors_pct(both["predicted_kpps"].to_numpy(), both["throughput_kpps"].to_numpy())
    facts = [
        Fact("lost from 1 to 20K flows beside 10 MB", 100 * (1 - at_10_mb[20000.0] / at_10_mb[1.0]), 30.0),
        Fact("lost from 40K to 60K flows beside 10 MB", 100 * (1 - at_10_mb[60000.0] / at_10_mb[40000.0]), 0.0),
        Fact("spread over packet sizes beside 10 MB", 100 * (1 - sizes.min() / sizes.max()), 0.0),
        Fact("MAPE of Tomur on these runs", errors.mean(), kind="error"),
    ]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        curves(left, over_flows, "flows", "competing_wss_mb", "flows")
        curves(right, over_size, "packet_size", "competing_wss_mb", "packet size (B)")
        right.legend(title="competing MB (x: Tomur)")

    return Result(
        fact_table(facts),
        ("the simulated BlueField-2: every run.", "BlueField-2: nothing; its measurements are of FlowMonitor."),
        draw,
        (f"mem-bench makes {ACCESS_MOPS:.0f} million accesses/s; how many the paper's makes is not published.",),
        {"throughput": both},
    )


def _swept(attribute: str, values: tuple[float, ...], setting: Setting) -> pd.DataFrame:
    """FlowStats with other values of one attribute, the others at default."""
    points = [(size, value) for size in WORKING_SETS_MB for value in values]
    runs = [
        (TrafficProfile.from_mapping(DEFAULT.as_dict() | {attribute: value}), (mem_bench(size, ACCESS_MOPS),))
        for size, value in points
    ]
    beside = beside_benches(NF, runs, setting)
    return pd.DataFrame(
        {
            "swept": attribute,
            "competing_wss_mb": [size for size, _ in points],
            "flows": beside.table["flows"],
            "packet_size": beside.table["packet_size"],
            "throughput_kpps": beside.truth,
            "predicted_kpps": beside.predicted(tomur(setting)),
        }
    )
