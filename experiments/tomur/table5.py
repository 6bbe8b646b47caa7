"""Table 5: memory contention alone, with changing traffic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from experiments.methodology import bluefield2
from experiments.methodology.accuracy import draw_scores, errors_pct, score_table
from experiments.methodology.benches import beside_benches, mem_bench
from experiments.methodology.co_locations import random_traffics
from experiments.methodology.slomo import predictors
from experiments.registry import Result, Setting, experiment

TRAFFICS = 100
WORKING_SET_MB = 10
LEVELS = {"simulated, NF-like": 40, "simulated, beyond": 100}
"""Million accesses/s of mem-bench: what company of NFs can exert, and more than that."""
PREDICTORS = ("slomo", "tomur")

PUBLISHED = {
    "NIDS": {"slomo": (2.5, 90.0, 100.0), "tomur": (1.1, 98.0, 100.0)},
    "FlowClassifier": {"slomo": (10.4, 52.0, 66.0), "tomur": (2.9, 80.0, 100.0)},
    "NAT": {"slomo": (9.5, 28.0, 64.0), "tomur": (3.1, 82.0, 96.0)},
    "FlowTracker": {"slomo": (4.0, 70.0, 92.0), "tomur": (3.5, 74.0, 96.0)},
    "FlowStats": {"slomo": (9.5, 44.0, 66.0), "tomur": (4.7, 72.0, 92.0)},
    "FlowMonitor": {"slomo": (11.9, 20.0, 44.0), "tomur": (4.8, 62.0, 88.0)},
    "IPTunnel": {"slomo": (88.0, 24.0, 52.0), "tomur": (5.6, 80.0, 94.0)},
}


@experiment("table5", "Accuracy with changing traffic, memory contention alone")
def run(setting: Setting) -> Result:
    """Each of seven traffic-sensitive NFs with random traffic profiles, beside mem-bench at two fixed levels."""
    by_name, errors = predictors(setting), {}
    for level, access_mops in LEVELS.items():
        bench = mem_bench(WORKING_SET_MB, access_mops)
        for nf in PUBLISHED:
            traffics = random_traffics(setting.count(TRAFFICS), setting.rng(f"table5 {nf}"))
            beside = beside_benches(nf, [(traffic, (bench,)) for traffic in traffics], setting)
            for name in PREDICTORS:
                errors[nf, name, level] = errors_pct(beside.predicted(by_name[name]), beside.truth)
    real = bluefield2.measurements(setting)
    if real:
        errors |= _on_bluefield2(real, setting)
    published = {(nf, name): scores for nf, of in PUBLISHED.items() for name, scores in of.items()}
    table = score_table(errors, published)
    return Result(
        table,
        (
            "the simulated BlueField-2: seven NFs, models and truth.",
            "BlueField-2: FlowMonitor beside mem-bench at every flow count measured, a fifth held out of training "
            "at a time; its packet size and match rate never change."
            if real
            else bluefield2.SKIPPED,
        ),
        partial(draw_scores, table=table),
        (
            "traffic is drawn evenly from up to 500K flows, 64 to 1500 B and 0 to 1100 matches/MB.",
            "mem-bench walks through 10 MB at 40 million accesses/s (NF-like: all but the rarest company of NFs exerts "
            "less) or at 100 (beyond); the level of the paper is not published.",
        ),
    )


def _on_bluefield2(real: bluefield2.Measured, setting: Setting) -> Mapping[tuple[str, str, str], NDArray[np.float64]]:
    """FlowMonitor at other flow counts than the default, by models that have not seen the run."""
    flows = real.memory["flows"].to_numpy()
    held = flows != real.profile.default_traffic().flows
    errors: dict[str, list[NDArray[np.float64]]] = {name: [] for name in PREDICTORS}
    for models, rows in real.folds(held, setting.rng("table5 folds")):
        for name in PREDICTORS:
            predicted = models.predictors[name].predict_contention(bluefield2.NF, rows)
            errors[name].append(errors_pct(predicted, bluefield2.throughput(rows)))
    return {(bluefield2.NF, name, bluefield2.TESTBED): np.concatenate(of) for name, of in errors.items()}
