"""NFs beside mem-bench and regex-bench together, at default traffic (Tomur, section 7.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.methodology import bluefield2
from experiments.methodology.accuracy import errors_pct
from experiments.methodology.benches import beside_benches, random_accelerator_bench, random_mem_bench
from experiments.methodology.card import DEFAULT
from experiments.methodology.slomo import predictors
from experiments.registry import Setting

Array = NDArray[np.float64]

RUNS = 300
PREDICTORS = ("slomo", "tomur")


@dataclass(frozen=True)
class MultiResourceErrors:
    """Errors (%) per predictor, and for each run regex-bench's matches/MB, NaN where it is not known."""

    errors: Mapping[str, Array]
    bench_mtbr: Array


def errors_on_card(nf: str, setting: Setting) -> MultiResourceErrors:
    """Beside both benches at random levels on the simulated card."""
    rng = setting.rng(f"memory and regex {nf}")
    runs = [
        (DEFAULT, (random_mem_bench(rng), random_accelerator_bench("regex", rng))) for _ in range(setting.count(RUNS))
    ]
    beside = beside_benches(nf, runs, setting)
    by_name = predictors(setting)
    return MultiResourceErrors(
        {name: errors_pct(beside.predicted(by_name[name]), beside.truth) for name in PREDICTORS},
        np.array([dict(regex.parameters)["mtbr"] for _, (_, regex) in runs]),
    )


def errors_on_bluefield2(setting: Setting) -> MultiResourceErrors | None:
    """FlowMonitor beside both benches as measured; None where the measurements are not there."""
    measured = bluefield2.measurements(setting)
    if measured is None:
        return None
    by_name, truth = measured.trained.predictors, bluefield2.throughput(measured.runs)
    return MultiResourceErrors(
        {
            name: errors_pct(by_name[name].predict_contention(bluefield2.NF, measured.runs), truth)
            for name in PREDICTORS
        },
        np.full(len(truth), np.nan),
    )


def ran_on(real: MultiResourceErrors | None) -> tuple[str, str]:
    """What ran where."""
    return (
        "the simulated BlueField-2: NIDS and FlowMonitor, models and truth.",
        f"BlueField-2: {len(real.bench_mtbr)} measured runs of FlowMonitor, trained on none of them."
        if real
        else bluefield2.SKIPPED,
    )
