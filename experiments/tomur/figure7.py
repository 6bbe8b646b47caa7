"""Figure 7: sources of prediction errors: regex contention, and flow counts far from those of training."""

import numpy as np
from matplotlib.figure import Figure

from experiments.methodology.accuracy import box_table, errors_pct, flatten
from experiments.methodology.findings import NOT_PUBLISHED, Finding, findings_table
from experiments.methodology.plots import boxes
from experiments.registry import Result, Setting, experiment
from experiments.tomur import PAPER, SIMULATED_CARD
from experiments.tomur.methodology.benches import mem_bench, run_with_benches
from experiments.tomur.methodology.multi_resource import (
    BALANCED_KPPS,
    COMPARED_PREDICTORS,
    bluefield2_runs,
    errors_at_balance,
    errors_on_bluefield2,
)
from experiments.tomur.methodology.simulated_card import DEFAULT_TRAFFIC
from experiments.tomur.methodology.slomo import predictors
from profiles import TrafficProfile
from profiles.arrays import Floats

COMPARED_NFS = ("FlowClassifier", "NAT", "FlowTracker", "FlowStats", "FlowMonitor")
RUNS_PER_NF = 100
SPLIT_MTBR = 600.0
SPLIT_SHARE = 0.2
MOST_FLOWS = 500000.0
ACCESS_MOPS, WORKING_SET_MB = 40.0, 10.0

PUBLISHED_ERRORS = {
    ("slomo", "regex, MTBR <= 600"): 2.5,
    ("slomo", "regex, MTBR > 600"): 24.4,
    ("tomur", "regex, MTBR <= 600"): 6.0,
    ("tomur", "regex, MTBR > 600"): 6.0,
    ("tomur", "flows within 20 %"): 4.7,
    ("tomur", "flows beyond 20 %"): 4.7,
    ("slomo", "flows beyond 20 %"): 13.4,
}
"""Median errors. The paper gives Tomur's as an upper bound for regex contention, and for all flow counts together."""


@experiment(PAPER, "figure7", "Prediction errors by regex contention and by change of the flow count")
def run(setting: Setting) -> Result:
    """FlowMonitor with both benches (a); five NFs with mem-bench, at flow counts near and far from the default (b)."""
    errors = {**_by_regex_contention(setting), **_by_flow_count(setting)}
    real = errors_on_bluefield2(setting)
    findings = [
        Finding(
            f"median error of {name}, {case}",
            np.median(values),
            PUBLISHED_ERRORS.get((name, case), NOT_PUBLISHED),
            kind="error",
        )
        for (name, case), values in errors.items()
    ]
    if real:
        findings += [
            Finding(
                f"median error of {name}, memory and regex, BlueField-2", np.median(real.errors[name]), kind="error"
            )
            for name in COMPARED_PREDICTORS
        ]

    def draw(figure: Figure) -> None:
        for axes, part in zip(figure.subplots(1, 2), ("regex", "flows"), strict=True):
            boxes(
                axes,
                {f"{name}\n{case}": values for (name, case), values in errors.items() if case.startswith(part)},
                "error (%)",
            )

    return Result(
        findings_table(findings),
        (
            f"{SIMULATED_CARD}: on the contended card, FlowMonitor (a); {', '.join(COMPARED_NFS)} (b), training and "
            "ground truth.",
            bluefield2_runs(real),
        ),
        draw,
        (
            f"regex-bench requests {BALANCED_KPPS:g} kpps. With few matches, memory limits FlowMonitor, as SLOMO "
            "predicts; with many, regex does. The paper does not print the rate.",
            "MTBR is the match-to-byte ratio, in matches/MB.",
        ),
        {
            "errors": box_table(errors, ("predictor", "case")),
            "every-error": flatten(errors, ("predictor", "case"), "error_pct"),
        },
    )


def _by_regex_contention(setting: Setting) -> dict[tuple[str, str], Floats]:
    runs = errors_at_balance("FlowMonitor", setting)
    low = runs.bench_mtbr <= SPLIT_MTBR
    return {
        (name, f"regex, MTBR {sign} {SPLIT_MTBR:.0f}"): runs.errors[name][rows]
        for sign, rows in (("<=", low), (">", ~low))
        for name in COMPARED_PREDICTORS
    }


def _by_flow_count(setting: Setting) -> dict[tuple[str, str], Floats]:
    errors: dict[tuple[str, str], list[Floats]] = {}
    bench = mem_bench(WORKING_SET_MB, ACCESS_MOPS)
    spans = {
        "flows within 20 %": (DEFAULT_TRAFFIC.flows * (1 - SPLIT_SHARE), DEFAULT_TRAFFIC.flows * (1 + SPLIT_SHARE)),
        "flows beyond 20 %": (DEFAULT_TRAFFIC.flows * (1 + SPLIT_SHARE), MOST_FLOWS),
    }
    for case, span in spans.items():
        for nf in COMPARED_NFS:
            flows = setting.rng(f"figure7 {nf} {case}").uniform(*span, size=setting.count(RUNS_PER_NF)).round().tolist()
            traffics = [TrafficProfile(count, DEFAULT_TRAFFIC.packet_size, DEFAULT_TRAFFIC.mtbr) for count in flows]
            measured = run_with_benches(nf, [(traffic, (bench,)) for traffic in traffics], setting)
            for name, predictor in predictors(setting).items():
                errors.setdefault((name, case), []).append(errors_pct(measured.predicted(predictor), measured.truth))
    return {key: np.concatenate(of) for key, of in errors.items()}
