"""Table 5: accuracy with memory contention alone and changing traffic."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from experiments.methodology.accuracy import METRICS_NOTE, draw_scores, errors_pct, score_table
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology import bluefield2
from experiments.tomur.methodology.benches import mem_bench, run_with_benches
from experiments.tomur.methodology.co_locations import random_traffics
from experiments.tomur.methodology.slomo import predictors

TRAFFIC_COUNT = 100
WORKING_SET_MB = 10
ACCESS_LEVELS = {"simulated, realistic": 40, "simulated, stronger": 100}
"""Million accesses/s of mem-bench: as many as three co-located NFs make at most, and more than that."""
COMPARED_PREDICTORS = ("slomo", "tomur")

PUBLISHED_ACCURACY = {
    "NIDS": {"slomo": (2.5, 90.0, 100.0), "tomur": (1.1, 98.0, 100.0)},
    "FlowClassifier": {"slomo": (10.4, 52.0, 66.0), "tomur": (2.9, 80.0, 100.0)},
    "NAT": {"slomo": (9.5, 28.0, 64.0), "tomur": (3.1, 82.0, 96.0)},
    "FlowTracker": {"slomo": (4.0, 70.0, 92.0), "tomur": (3.5, 74.0, 96.0)},
    "FlowStats": {"slomo": (9.5, 44.0, 66.0), "tomur": (4.7, 72.0, 92.0)},
    "FlowMonitor": {"slomo": (11.9, 20.0, 44.0), "tomur": (4.8, 62.0, 88.0)},
    "IPTunnel": {"slomo": (88.0, 24.0, 52.0), "tomur": (5.6, 80.0, 94.0)},
}


@experiment(PAPER, "table5", "Prediction accuracy with changing traffic and memory contention alone")
def run(setting: Setting) -> Result:
    """Each of seven traffic-sensitive NFs with random traffic, co-located with mem-bench at two fixed levels."""
    by_name, errors = predictors(setting), {}
    for level, access_mops in ACCESS_LEVELS.items():
        bench = mem_bench(WORKING_SET_MB, access_mops)
        for nf in PUBLISHED_ACCURACY:
            traffics = random_traffics(setting.count(TRAFFIC_COUNT), setting.rng(f"table5 {nf}"))
            measured = run_with_benches(nf, [(traffic, (bench,)) for traffic in traffics], setting)
            for name in COMPARED_PREDICTORS:
                errors[nf, name, level] = errors_pct(measured.predicted(by_name[name]), measured.truth)
    real = bluefield2.measurements(setting)
    if real:
        errors |= _on_bluefield2(real, setting)
    published = {(nf, name): scores for nf, of in PUBLISHED_ACCURACY.items() for name, scores in of.items()}
    table = score_table(errors, published)
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: seven NFs, training and ground truth.",
            f"{HARDWARE_CARD}: FlowMonitor with mem-bench at every measured flow count, in five-fold cross-validation; "
            "its packet size and match rate do not change."
            if real
            else bluefield2.MISSING_NOTE,
        ),
        partial(draw_scores, table=table),
        (
            METRICS_NOTE,
            "Traffic is drawn uniformly: 1 to 500K flows, packets of 64 to 1500 B, 0 to 1100 matches/MB.",
            "mem-bench has a working set of 10 MB and makes 40 million accesses/s ('realistic': most random triples "
            "of NFs make fewer) or 100 million ('stronger': more than any random triple). The paper does not publish "
            "its level.",
        ),
    )


def _on_bluefield2(
    real: bluefield2.FlowMonitorRuns, setting: Setting
) -> Mapping[tuple[str, str, str], NDArray[np.float64]]:
    """Errors on FlowMonitor at flow counts other than the default, of models that were not trained on these runs."""
    held = real.memory["flows"].to_numpy() != real.profile.default_traffic().flows
    errors: dict[str, list[NDArray[np.float64]]] = {name: [] for name in COMPARED_PREDICTORS}
    for models, rows in real.folds(held, setting.rng("table5 folds")):
        for name in COMPARED_PREDICTORS:
            predicted = models.predictors[name].predict_contention(bluefield2.MEASURED_NF, rows)
            errors[name].append(errors_pct(predicted, bluefield2.throughput(rows)))
    return {(bluefield2.MEASURED_NF, name, bluefield2.CARD_NAME): np.concatenate(of) for name, of in errors.items()}
