"""Table 11: accuracy of SLOMO in the case it is made for, memory contention alone at default traffic."""

from functools import partial

import numpy as np

from experiments.methodology.accuracy import METRICS_NOTE, draw_scores, errors_pct, score_table
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology import bluefield2
from experiments.tomur.methodology.benches import random_mem_bench, run_with_benches
from experiments.tomur.methodology.simulated_card import CARD_SPEC, DEFAULT_TRAFFIC
from experiments.tomur.methodology.slomo import slomo

RUNS_PER_NF = 200

PUBLISHED_ACCURACY = {
    ("IPRouter", "slomo"): (1.8, 90.0, 100.0),
    ("FlowStats", "slomo"): (1.2, 100.0, 100.0),
    ("NAT", "slomo"): (2.5, 88.0, 96.0),
    ("IPTunnel", "slomo"): (0.6, 98.0, 100.0),
    ("FlowMonitor", "slomo"): (0.9, 98.0, 100.0),
    ("NIDS", "slomo"): (0.7, 100.0, 100.0),
    ("FlowTracker", "slomo"): (1.6, 96.0, 100.0),
    ("ACL", "slomo"): (2.2, 100.0, 100.0),
    ("FlowClassifier", "slomo"): (1.1, 94.0, 100.0),
}


@experiment(PAPER, "table11", "Prediction accuracy of SLOMO with memory contention alone at default traffic")
def run(setting: Setting) -> Result:
    """Each of nine NFs at default traffic, co-located with mem-bench at random levels."""
    predictor, errors = slomo(setting), {}
    for nf, name in PUBLISHED_ACCURACY:
        rng = setting.rng(f"table11 {nf}")
        runs = [(DEFAULT_TRAFFIC, (random_mem_bench(rng),)) for _ in range(setting.count(RUNS_PER_NF))]
        measured = run_with_benches(nf, runs, setting)
        errors[nf, name, CARD_SPEC] = errors_pct(measured.predicted(predictor), measured.truth)
    real = bluefield2.measurements(setting)
    if real:
        held = real.memory["flows"].to_numpy() == real.profile.default_traffic().flows
        errors[bluefield2.MEASURED_NF, "slomo", bluefield2.CARD_NAME] = np.concatenate(
            [
                errors_pct(
                    models.predictors["slomo"].predict_contention(bluefield2.MEASURED_NF, rows),
                    bluefield2.throughput(rows),
                )
                for models, rows in real.folds(held, setting.rng("table11 folds"))
            ]
        )
    table = score_table(errors, PUBLISHED_ACCURACY)
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: nine NFs, training and ground truth.",
            f"{HARDWARE_CARD}: FlowMonitor at default traffic, in five-fold cross-validation."
            if real
            else bluefield2.MISSING_NOTE,
        ),
        partial(draw_scores, table=table),
        (METRICS_NOTE,),
    )
