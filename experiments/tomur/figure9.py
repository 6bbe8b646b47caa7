"""Figure 9: throughput of FlowStats by the working set and the access rate of mem-bench (appendix B)."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.findings import Finding, findings_table
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.benches import mem_bench
from experiments.tomur.methodology.simulated_card import DEFAULT_TRAFFIC, truth
from profiles import Workload

WORKING_SETS_MB = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0)
CACHE_MB = 6.0  # the last-level cache, up to which the paper's working set counts, and beyond which the access rate
ACCESS_MOPS = (20.0, 40.0, 60.0, 80.0, 100.0, 140.0, 180.0)


@experiment(PAPER, "figure9", "Throughput of FlowStats by working set and access rate of mem-bench")
def run(setting: Setting) -> Result:
    """FlowStats at default traffic with mem-bench at every working set and access rate, without noise."""
    alone = Workload("FlowStats", DEFAULT_TRAFFIC)
    kpps = truth([[alone, mem_bench(size, rate)] for size in WORKING_SETS_MB for rate in ACCESS_MOPS])
    drops = 100 * (1 - kpps.reshape(len(WORKING_SETS_MB), len(ACCESS_MOPS)) / truth([[alone]])[0])
    sizes = np.array(WORKING_SETS_MB)
    findings = [
        Finding(f"drop by {cause}, working sets {where} {CACHE_MB:g} MB", np.ptp(drops[rows], axis=axis).mean())
        for where, rows in (("up to", sizes <= CACHE_MB), ("from", sizes >= CACHE_MB))
        for axis, cause in enumerate(("the working set", "the access rate"))
    ]
    remaining = (drops[-1] - drops).mean(axis=1)  # what a larger working set adds
    at = int(np.argmax(np.ptp(drops, axis=1) > remaining))
    findings.append(Finding("working set from which the access rate counts more", sizes[at], CACHE_MB, "MB"))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for rate, values in zip(ACCESS_MOPS, drops.T, strict=True):
            axes.plot(sizes, values, marker=".", label=f"{rate:g}")
        axes.set(xlabel="working set of mem-bench (MB)", ylabel="drop of FlowStats (%)")
        axes.legend(title="million accesses/s")

    return Result(
        findings_table(findings),
        (f"{SIMULATED_CARD}: all runs.", f"{HARDWARE_CARD}: no runs; the measurements contain only FlowMonitor."),
        draw,
        (
            "The paper draws this figure without numbers: up to 6 MB, the size of its cache, the throughput follows "
            "the working set of mem-bench, and beyond it the access rate. A drop by the working set is the difference "
            "between its ends at one access rate, in points, the mean over access rates; likewise the other. On the "
            "simulated card, packets take 40 % of the cache, so that the cores have 3.6 MB.",
        ),
        {"drops": pd.DataFrame(drops, index=pd.Index(sizes, name="wss_mb"), columns=ACCESS_MOPS).reset_index()},
    )
