"""Table 12: accuracy of the queue model of the regex accelerator alone, at default traffic."""

from functools import partial

from experiments.methodology.accuracy import METRICS_NOTE, draw_scores, errors_pct, score_table
from experiments.registry import Result, Setting, experiment
from experiments.tomur import HARDWARE_CARD, PAPER, SIMULATED_CARD
from experiments.tomur.methodology.benches import random_accelerator_bench, run_with_benches
from experiments.tomur.methodology.simulated_card import CARD_SPEC, DEFAULT_TRAFFIC, tomur
from profiles import COUNTERS

RUNS_PER_NF = 200
REGEX_MODEL = "regex model"
PUBLISHED_ACCURACY = {("FlowMonitor", REGEX_MODEL): (1.3, 94.1, 100.0), ("NIDS", REGEX_MODEL): (1.2, 100.0, 100.0)}


@experiment(PAPER, "table12", "Prediction accuracy of the regex model with regex contention alone at default traffic")
def run(setting: Setting) -> Result:
    """FlowMonitor and NIDS at default traffic, co-located with regex-bench at random match and request rates."""
    predictor, errors = tomur(setting), {}
    for nf, name in PUBLISHED_ACCURACY:
        rng = setting.rng(f"table12 {nf}")
        runs = [(DEFAULT_TRAFFIC, (random_accelerator_bench("regex", rng),)) for _ in range(setting.count(RUNS_PER_NF))]
        measured = run_with_benches(nf, runs, setting)
        # without memory accesses of the bench, only the queue model predicts a drop
        regex_only = measured.table.assign(**dict.fromkeys(COUNTERS, 0.0))
        errors[nf, name, CARD_SPEC] = errors_pct(predictor.predict_contention(nf, regex_only), measured.truth)
    table = score_table(errors, PUBLISHED_ACCURACY)
    return Result(
        table,
        (
            f"{SIMULATED_CARD}: FlowMonitor and NIDS, training and ground truth.",
            f"{HARDWARE_CARD}: no runs; in the measurements, mem-bench always runs together with regex-bench.",
        ),
        partial(draw_scores, table=table),
        (METRICS_NOTE,),
    )
