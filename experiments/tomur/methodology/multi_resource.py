"""NFs co-located with mem-bench and regex-bench together, at default traffic (Tomur, section 7.3)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.methodology.accuracy import errors_pct
from experiments.registry import Setting
from experiments.tomur import HARDWARE_CARD
from experiments.tomur.methodology import bluefield2
from experiments.tomur.methodology.benches import (
    MATCH_RATES,
    accelerator_bench,
    random_accelerator_bench,
    random_mem_bench,
    run_with_benches,
)
from experiments.tomur.methodology.simulated_card import CARD_SPECS, DEFAULT_TRAFFIC, card_of
from experiments.tomur.methodology.slomo import predictors
from profiler.simulated import SimulatedTestbed
from profiles import COUNTERS, Workload
from profiles.arrays import Floats

RUNS_PER_NF = 300
COMPARED_PREDICTORS = ("slomo", "tomur")
REGEX_ONLY = "regex only"  # Tomur without memory contention

CONTENDED_CARD = CARD_SPECS[1]
BALANCED_KPPS = 170.0
"""Requests (kpps) of regex-bench that balance memory and regex for FlowMonitor on `CONTENDED_CARD`: at 600 matches/MB,
they leave it as much of the accelerator as heavy memory contention leaves of its cores, about 540 kpps."""
LIMITING_SHARE = 0.02  # a resource limits an NF if the NF would gain this share of its throughput without contention


@dataclass(frozen=True)
class MultiResourceErrors:
    """Errors (%) of each predictor over the runs, and the matches/MB of regex-bench in each run, NaN if unknown."""

    errors: Mapping[str, Floats]
    bench_mtbr: Floats


def errors_on_card(nf: str, setting: Setting) -> MultiResourceErrors:
    """Errors on the simulated card, with both benches at random levels."""
    rng = setting.rng(f"memory and regex {nf}")
    runs = [
        (DEFAULT_TRAFFIC, (random_mem_bench(rng), random_accelerator_bench("regex", rng)))
        for _ in range(setting.count(RUNS_PER_NF))
    ]
    measured = run_with_benches(nf, runs, setting)
    by_name = predictors(setting)
    return MultiResourceErrors(
        {name: errors_pct(measured.predicted(by_name[name]), measured.truth) for name in COMPARED_PREDICTORS},
        np.array([dict(regex.parameters)["mtbr"] for _, (_, regex) in runs]),
    )


@dataclass(frozen=True)
class BalancedErrors(MultiResourceErrors):
    """Errors of SLOMO, which knows memory alone, of regex alone, and of Tomur, where both are contended alike."""

    limiting: Mapping[str, NDArray[np.bool_]]  # by resource, the runs that it limits; both may limit a run


def errors_at_balance(nf: str, setting: Setting) -> BalancedErrors:
    """Errors on the contended card, with mem-bench at random levels, and regex-bench at `BALANCED_KPPS` and random
    match rates."""
    rng, card = setting.rng(f"balanced memory and regex {nf}"), card_of(CONTENDED_CARD)
    assert isinstance(card, SimulatedTestbed)
    runs = [
        (
            DEFAULT_TRAFFIC,
            (random_mem_bench(rng), accelerator_bench("regex", BALANCED_KPPS, float(rng.uniform(*MATCH_RATES)))),
        )
        for _ in range(setting.count(RUNS_PER_NF))
    ]
    measured, by_name = run_with_benches(nf, runs, setting, card), predictors(setting, CONTENDED_CARD)
    without_memory = measured.table.assign(**dict.fromkeys(COUNTERS, 0.0))
    predicted = {name: measured.predicted(by_name[name]) for name in COMPARED_PREDICTORS}
    predicted[REGEX_ONLY] = by_name["tomur"].predict_contention(nf, without_memory)
    accounts = [of[0] for of in card.account([[Workload(nf, traffic), *benches] for traffic, benches in runs])]
    return BalancedErrors(
        {name: errors_pct(rates, measured.truth) for name, rates in predicted.items()},
        np.array([dict(regex.parameters)["mtbr"] for _, (_, regex) in runs]),
        {
            resource: np.array([of.lost_kpps[resource] >= LIMITING_SHARE * of.throughput_kpps for of in accounts])
            for resource in ("memory", "regex")
        },
    )


def errors_on_bluefield2(setting: Setting) -> MultiResourceErrors | None:
    """Errors on measured runs of FlowMonitor; None when the measurements are missing."""
    measured = bluefield2.measurements(setting)
    if measured is None:
        return None
    by_name, truth = measured.trained.predictors, bluefield2.throughput(measured.runs)
    return MultiResourceErrors(
        {
            name: errors_pct(by_name[name].predict_contention(bluefield2.MEASURED_NF, measured.runs), truth)
            for name in COMPARED_PREDICTORS
        },
        np.full(len(truth), np.nan),
    )


def bluefield2_runs(real: MultiResourceErrors | None) -> str:
    """The entry of the measured card in the list of testbeds."""
    if real is None:
        return bluefield2.MISSING_NOTE
    return f"{HARDWARE_CARD}: {len(real.bench_mtbr)} measured runs of FlowMonitor, none used for training."
