"""NFs co-located with mem-bench and regex-bench together, at default traffic (Tomur, section 7.3)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from experiments.methodology.accuracy import errors_pct
from experiments.registry import Setting
from experiments.tomur import HARDWARE_CARD
from experiments.tomur.methodology import bluefield2
from experiments.tomur.methodology.benches import random_accelerator_bench, random_mem_bench, run_with_benches
from experiments.tomur.methodology.simulated_card import DEFAULT_TRAFFIC
from experiments.tomur.methodology.slomo import predictors
from profiles.arrays import Floats

RUNS_PER_NF = 300
COMPARED_PREDICTORS = ("slomo", "tomur")


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
