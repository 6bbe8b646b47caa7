"""Figure 6: which traffic attributes affect throughput, and over which part of their range."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import errors_pct
from experiments.methodology.findings import Finding, findings_table
from experiments.methodology.plots import curves
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.benches import mem_bench, run_with_benches
from experiments.tomur.methodology.simulated_card import DEFAULT_TRAFFIC, tomur
from profiles import TrafficProfile

SWEPT_NF = "FlowStats"
WORKING_SETS_MB = (1.0, 5.0, 10.0)
PUBLISHED_AT_MB = 10.0
ACCESS_MOPS = 100.0
FLOW_COUNTS = (1.0, *(1000.0 * step for step in range(2, 62, 2)))
PACKET_SIZES = tuple(float(size) for size in np.linspace(64, 1500, 13).round())


@experiment(PAPER, "figure6", "Throughput of FlowStats over flow count and packet size")
def run(setting: Setting) -> Result:
    """FlowStats with mem-bench of three working sets, over flow count (a) and over packet size (b)."""
    over_flows = _sweep_attribute("flows", FLOW_COUNTS, setting)
    over_size = _sweep_attribute("packet_size", PACKET_SIZES, setting)
    at_10_mb = over_flows[over_flows["competing_wss_mb"] == PUBLISHED_AT_MB].set_index("flows")["throughput_kpps"]
    sizes = over_size.loc[over_size["competing_wss_mb"] == PUBLISHED_AT_MB, "throughput_kpps"]
    both = pd.concat([over_flows, over_size])
    errors = errors_pct(both["predicted_kpps"].to_numpy(), both["throughput_kpps"].to_numpy())
    from_1, from_40k = at_10_mb[20000.0] / at_10_mb[1.0], at_10_mb[60000.0] / at_10_mb[40000.0]
    findings = [
        Finding("drop from 1 to 20K flows, mem-bench of 10 MB", 100 * (1 - from_1), 30.0),
        Finding("drop from 40K to 60K flows, mem-bench of 10 MB", 100 * (1 - from_40k), 0.0),
        Finding("largest drop over packet sizes, mem-bench of 10 MB", 100 * (1 - sizes.min() / sizes.max()), 0.0),
        Finding("MAPE of Tomur on these runs", errors.mean(), kind="error"),
    ]

    def draw(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        curves(left, over_flows, "flows", "competing_wss_mb", "flows")
        curves(right, over_size, "packet_size", "competing_wss_mb", "packet size (B)")
        right.legend(title="working set, MB (x: predicted by Tomur)")

    return Result(
        findings_table(findings),
        (f"{SIMULATED_CARD}: all runs.", f"{HARDWARE_CARD}: no runs; the measurements contain only FlowMonitor."),
        draw,
        (f"mem-bench makes {ACCESS_MOPS:.0f} million accesses/s; the paper does not publish its access rate.",),
        {"throughput": both},
    )


def _sweep_attribute(attribute: str, values: tuple[float, ...], setting: Setting) -> pd.DataFrame:
    """Throughput of FlowStats over one attribute, the others at their default."""
    points = [(size, value) for size in WORKING_SETS_MB for value in values]
    runs = [
        (TrafficProfile.from_mapping(DEFAULT_TRAFFIC.as_dict() | {attribute: value}), (mem_bench(size, ACCESS_MOPS),))
        for size, value in points
    ]
    measured = run_with_benches(SWEPT_NF, runs, setting)
    return pd.DataFrame(
        {
            "swept": attribute,
            "competing_wss_mb": [size for size, _ in points],
            "flows": measured.table["flows"],
            "packet_size": measured.table["packet_size"],
            "throughput_kpps": measured.truth,
            "predicted_kpps": measured.predicted(tomur(setting)),
        }
    )
