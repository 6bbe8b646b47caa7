"""Figure 5: a pipeline NF and a run-to-completion NF under contention for two resources at once."""

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import errors_pct
from experiments.methodology.findings import Finding, findings_table
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.benches import (
    PACKET_SIZE,
    accelerator_bench,
    cache_access_rate,
    mem_bench,
    run_with_benches,
)
from experiments.tomur.methodology.simulated_card import DEFAULT_TRAFFIC
from experiments.tomur.methodology.synthetic_nfs import EXECUTION_PATTERNS, SYNTHETIC_CARD, name_of, train_synthetic
from profiler.simulated.card import HEADER_BYTES, ExecutionPattern

ACCESS_SPEEDS = (1.0, 180.0, 12)
REQUEST_RATES = (20.0, 400.0, 8)
"""Lowest, highest, and how many: million accesses/s of mem-bench, and requests (kpps) of regex-bench."""
BENCH_MTBR = 1100.0
WORKING_SET_MB = 10
SHORT_NAMES = {"pipeline": "p-NF", "run-to-completion": "r-NF"}
MILD_CAR = 100.0
ROUNDING_SHARE = 1e-4  # relative rises below this are rounding: measurements have six digits


@experiment(PAPER, "figure5", "Pipeline and run-to-completion NFs under contention for memory and regex")
def run(setting: Setting) -> Result:
    """NF1 with both execution patterns, co-located with mem-bench and regex-bench, each from light to heavy."""
    predictor, surfaces = train_synthetic(setting).predictors["tomur"], {}
    grid = list(itertools.product(_steps(REQUEST_RATES, setting), _steps(ACCESS_SPEEDS, setting)))
    for pattern in EXECUTION_PATTERNS:
        runs = [
            (DEFAULT_TRAFFIC, (mem_bench(WORKING_SET_MB, speed), accelerator_bench("regex", rate, BENCH_MTBR)))
            for rate, speed in grid
        ]
        measured = run_with_benches(name_of("NF1", pattern), runs, setting, SYNTHETIC_CARD)
        surfaces[pattern] = pd.DataFrame(
            {
                "pattern": pattern,
                "access_mops": [speed for _, speed in grid],
                "car_mref": cache_access_rate(measured.table),
                "kmatches_per_s": [rate * (PACKET_SIZE - HEADER_BYTES) * BENCH_MTBR / 1e6 for rate, _ in grid],
                "throughput_kpps": measured.truth,
                "predicted_kpps": measured.predicted(predictor),
            }
        )
    findings = [*_pipeline_findings(surfaces["pipeline"]), *_serial_findings(surfaces["run-to-completion"])]
    for pattern, of in surfaces.items():
        errors = errors_pct(of["predicted_kpps"].to_numpy(), of["throughput_kpps"].to_numpy())
        findings.append(Finding(f"{SHORT_NAMES[pattern]}, MAPE of Tomur on these runs", errors.mean(), kind="error"))
    return Result(
        findings_table(findings),
        (
            f"{SIMULATED_CARD}: NF1 of table 4 with both execution patterns, in place of the paper's p-NF and r-NF.",
            f"{HARDWARE_CARD}: no runs; the measurements contain one NF and three levels of regex contention.",
        ),
        lambda figure: _draw(figure, surfaces),
        (
            "The paper does not publish what p-NF computes, so the absolute throughput of p-NF is not comparable.",
            "The paper's match rates reach 2500 Kmatches/s. On the simulated card a match takes 1.45 us, as measured "
            "for FlowMonitor on the hardware, which limits the accelerator to 688 Kmatches/s.",
        ),
        {"throughput": pd.concat(surfaces.values(), ignore_index=True)},
    )


def _steps(span: tuple[float, float, int], setting: Setting) -> list[float]:
    low, high, count = span
    steps: list[float] = np.linspace(low, high, setting.count(count, least=4)).tolist()
    return steps


def _pipeline_findings(surface: pd.DataFrame) -> list[Finding]:
    """Where regex is the bottleneck of the pipeline, memory contention causes no drop."""
    heavy = surface[surface["kmatches_per_s"] == surface["kmatches_per_s"].max()]
    mild = heavy.loc[heavy["car_mref"] < MILD_CAR, "throughput_kpps"]
    return [
        Finding("p-NF at the highest match rate and CAR below 100 Mref/s", mild.mean(), 400.0, "kpps"),
        Finding("p-NF there, drop by memory contention", 100 * (1 - mild.min() / mild.max()), 0.0),
    ]


def _serial_findings(surface: pd.DataFrame) -> list[Finding]:
    """More contention for either resource always lowers the throughput of run-to-completion."""
    rates = surface.pivot_table(index="kmatches_per_s", columns="access_mops", values="throughput_kpps").to_numpy()
    steps = np.concatenate([(rates[1:] / rates[:-1]).ravel(), (rates[:, 1:] / rates[:, :-1]).ravel()])
    share = 100 * (steps < 1 + ROUNDING_SHARE).mean()
    return [Finding("r-NF, steps of more contention that lower the throughput", share, 100.0)]


def _draw(figure: Figure, surfaces: Mapping[ExecutionPattern, pd.DataFrame]) -> None:
    for axes, (pattern, surface) in zip(figure.subplots(1, 2, sharey=True), surfaces.items(), strict=True):
        for at, (rate, rows) in enumerate(surface.groupby("kmatches_per_s")):
            axes.plot(rows["car_mref"], rows["throughput_kpps"], color=f"C{at}", label=f"{rate:.0f}")
            axes.plot(rows["car_mref"], rows["predicted_kpps"], "x", color=f"C{at}", markersize=3)
        axes.set(
            title=f"{SHORT_NAMES[pattern]} (x: predicted by Tomur)",
            xlabel="competing cache access rate (Mref/s)",
            ylabel="throughput (kpps)",
            ylim=(0, None),
        )
    axes.legend(title="Kmatches/s", ncols=2)
