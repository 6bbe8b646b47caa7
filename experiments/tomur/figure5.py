"""Figure 5: two resources at once, beside a pipeline and beside run-to-completion."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.methodology.accuracy import errors_pct
from experiments.methodology.benches import PACKET_SIZE, accelerator_bench, beside_benches, cache_access_rate, mem_bench
from experiments.methodology.card import DEFAULT
from experiments.methodology.synthetic import CARD, PATTERNS, name_of, trained_synthetic
from experiments.methodology.workloads import Fact, fact_table
from experiments.registry import Result, Setting, experiment
from profiler.simulated.card import HEADER_BYTES
from profiler.simulated.nfs import Pattern

SPEEDS = (1.0, 180.0, 12)
RATES = (20.0, 400.0, 8)
"""Lowest, highest, and how many: million accesses/s of mem-bench, and requests (kpps) of regex-bench."""
BENCH_MTBR = 1100.0
WORKING_SET_MB = 10
SHORT_NAMES = {"pipeline": "p-NF", "run-to-completion": "r-NF"}
MILD_CAR = 100.0
ROUNDING = 1e-4
"""A smaller relative rise is the six digits of a measurement, not a rise."""


@experiment("figure5", "Pipeline and run-to-completion under contention for memory and regex")
def run(setting: Setting) -> Result:
    """NF1 in both versions beside mem-bench and regex-bench, each from light to heavy."""
    predictor, surfaces = trained_synthetic(setting).predictors["tomur"], {}
    grid = list(itertools.product(_steps(RATES, setting), _steps(SPEEDS, setting)))
    for pattern in PATTERNS:
        runs = [
            (DEFAULT, (mem_bench(WORKING_SET_MB, speed), accelerator_bench("regex", rate, BENCH_MTBR)))
            for rate, speed in grid
        ]
        beside = beside_benches(name_of("NF1", pattern), runs, setting, CARD)
        surfaces[pattern] = pd.DataFrame(
            {
                "pattern": pattern,
                "access_mops": [speed for _, speed in grid],
                "car_mref": cache_access_rate(beside.table),
                "kmatches_per_s": [rate * (PACKET_SIZE - HEADER_BYTES) * BENCH_MTBR / 1e6 for rate, _ in grid],
                "throughput_kpps": beside.truth,
                "predicted_kpps": beside.predicted(predictor),
            }
        )
    facts = [*_pipeline_facts(surfaces["pipeline"]), *_serial_facts(surfaces["run-to-completion"])]
    for pattern, of in surfaces.items():
        errors = errors_pct(of["predicted_kpps"].to_numpy(), of["throughput_kpps"].to_numpy())
        facts.append(Fact(f"{SHORT_NAMES[pattern]}: MAPE of Tomur on these runs", errors.mean(), kind="error"))
    return Result(
        fact_table(facts),
        (
            "the simulated BlueField-2: NF1 of table 4 in both versions stands for p-NF and r-NF.",
            "BlueField-2: nothing; its measurements hold one NF and three levels of regex contention.",
        ),
        lambda figure: _draw(figure, surfaces),
        (
            "what the paper's p-NF computes is not published: its level is told for the record.",
            "the paper's match rates reach 2500 Kmatches/s; one match takes 1.45 us on this card, as FlowMonitor's do "
            "on BlueField-2, so the accelerator cannot do more than 688 Kmatches/s in any unit we know of.",
        ),
        {"throughput": pd.concat(surfaces.values(), ignore_index=True)},
    )


def _steps(span: tuple[float, float, int], setting: Setting) -> list[float]:
    low, high, count = span
    steps: list[float] = np.linspace(low, high, setting.count(count, least=4)).tolist()
    return steps


def _pipeline_facts(surface: pd.DataFrame) -> list[Fact]:
    """Where regex binds, memory contention costs nothing."""
    heavy = surface[surface["kmatches_per_s"] == surface["kmatches_per_s"].max()]
    mild = heavy.loc[heavy["car_mref"] < MILD_CAR, "throughput_kpps"]
    return [
        Fact("p-NF at the highest match rate and CAR below 100 Mref/s", mild.mean(), 400.0, "kpps"),
        Fact("p-NF there: lost to memory", 100 * (1 - mild.min() / mild.max()), 0.0),
    ]


def _serial_facts(surface: pd.DataFrame) -> list[Fact]:
    """More of either contention always costs."""
    rates = surface.pivot_table(index="kmatches_per_s", columns="access_mops", values="throughput_kpps").to_numpy()
    steps = np.concatenate([(rates[1:] / rates[:-1]).ravel(), (rates[:, 1:] / rates[:, :-1]).ravel()])
    return [Fact("r-NF: steps of either contention that cost throughput", 100 * (steps < 1 + ROUNDING).mean(), 100.0)]


def _draw(figure: Figure, surfaces: Mapping[Pattern, pd.DataFrame]) -> None:
    for axes, (pattern, surface) in zip(figure.subplots(1, 2, sharey=True), surfaces.items(), strict=True):
        for at, (rate, rows) in enumerate(surface.groupby("kmatches_per_s")):
            axes.plot(rows["car_mref"], rows["throughput_kpps"], color=f"C{at}", label=f"{rate:.0f}")
            axes.plot(rows["car_mref"], rows["predicted_kpps"], "x", color=f"C{at}", markersize=3)
        axes.set_title(f"{SHORT_NAMES[pattern]} (x: Tomur)")
        axes.set_xlabel("competing cache access rate (Mref/s)")
        axes.set_ylabel("throughput (kpps)")
        axes.set_ylim(bottom=0)
    axes.legend(title="Kmatches/s", ncols=2)
