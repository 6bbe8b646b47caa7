"""Figure 7: where the errors come from: regex contention, and flow counts unlike those of training."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments.methodology.accuracy import box_table, errors_pct, flattened
from experiments.methodology.benches import beside_benches, mem_bench
from experiments.methodology.card import DEFAULT
from experiments.methodology.multi_resource import PREDICTORS, errors_on_bluefield2, errors_on_card, ran_on
from experiments.methodology.plots import boxes
from experiments.methodology.slomo import predictors
from experiments.methodology.workloads import UNPUBLISHED, Fact, fact_table
from experiments.registry import Result, Setting, experiment
from profiles import TrafficProfile

Array = NDArray[np.float64]

NFS = ("FlowClassifier", "NAT", "FlowTracker", "FlowStats", "FlowMonitor")
RUNS = 100
SPLIT_MTBR = 600.0
SPLIT_SHARE = 0.2
MOST_FLOWS = 500000.0
ACCESS_MOPS, WORKING_SET_MB = 40.0, 10.0

PUBLISHED = {
    ("slomo", "regex, MTBR <= 600"): 2.5,
    ("slomo", "regex, MTBR > 600"): 24.4,
    ("tomur", "regex, MTBR <= 600"): 6.0,
    ("tomur", "regex, MTBR > 600"): 6.0,
    ("tomur", "flows within 20 %"): 4.7,
    ("tomur", "flows beyond 20 %"): 4.7,
    ("slomo", "flows beyond 20 %"): 13.4,
}
"""Median errors. Tomur's are told as a bound under regex contention, and for all flow counts together."""


@experiment("figure7", "Errors by regex contention and by change of the flow count")
def run(setting: Setting) -> Result:
    """FlowMonitor beside both benches (a); five NFs beside mem-bench, flow counts near the default or far (b)."""
    errors = {**_by_regex_contention(setting), **_by_flow_count(setting)}
    real = errors_on_bluefield2(setting)
    facts = [
        Fact(
            f"median error of {name}, {case}", np.median(values), PUBLISHED.get((name, case), UNPUBLISHED), kind="error"
        )
        for (name, case), values in errors.items()
    ]
    if real:
        facts += [
            Fact(f"median error of {name}, memory and regex, BlueField-2", np.median(real.errors[name]), kind="error")
            for name in PREDICTORS
        ]

    def draw(figure: Figure) -> None:
        for axes, part in zip(figure.subplots(1, 2), ("regex", "flows"), strict=True):
            boxes(
                axes,
                {f"{name}\n{case}": values for (name, case), values in errors.items() if case.startswith(part)},
                "error (%)",
            )

    return Result(
        fact_table(facts),
        (
            f"the simulated BlueField-2: FlowMonitor (a), {', '.join(NFS)} (b), models and truth.",
            ran_on(real)[1],
        ),
        draw,
        (
            "regex-bench offers 50 to 1000 kpps at any match rate; even with few matches the upper half of that "
            "contends with FlowMonitor, which fills nine tenths of the accelerator alone.",
        ),
        {
            "errors": box_table(errors, ("predictor", "case")),
            "every-error": flattened(errors, ("predictor", "case"), "error_pct"),
        },
    )


def _by_regex_contention(setting: Setting) -> dict[tuple[str, str], Array]:
    runs = errors_on_card("FlowMonitor", setting)
    low = runs.bench_mtbr <= SPLIT_MTBR
    return {
        (name, f"regex, MTBR {sign} {SPLIT_MTBR:.0f}"): runs.errors[name][rows]
        for sign, rows in (("<=", low), (">", ~low))
        for name in PREDICTORS
    }


def _by_flow_count(setting: Setting) -> dict[tuple[str, str], Array]:
    errors: dict[tuple[str, str], list[Array]] = {}
    bench = mem_bench(WORKING_SET_MB, ACCESS_MOPS)
    spans = {
        "flows within 20 %": (DEFAULT.flows * (1 - SPLIT_SHARE), DEFAULT.flows * (1 + SPLIT_SHARE)),
        "flows beyond 20 %": (DEFAULT.flows * (1 + SPLIT_SHARE), MOST_FLOWS),
    }
    for case, span in spans.items():
        for nf in NFS:
            flows = setting.rng(f"figure7 {nf} {case}").uniform(*span, size=setting.count(RUNS)).round().tolist()
            traffics = [TrafficProfile(count, DEFAULT.packet_size, DEFAULT.mtbr) for count in flows]
            beside = beside_benches(nf, [(traffic, (bench,)) for traffic in traffics], setting)
            for name, predictor in predictors(setting).items():
                errors.setdefault((name, case), []).append(errors_pct(beside.predicted(predictor), beside.truth))
    return {key: np.concatenate(of) for key, of in errors.items()}
