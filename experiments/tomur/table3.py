"""Table 3: accuracy with contention for memory and regex together, at default traffic."""

from functools import partial

from experiments.methodology.accuracy import METRICS_NOTE, draw_scores, score_table
from experiments.registry import Result, Setting, experiment
from experiments.tomur import PAPER, SIMULATED_CARD
from experiments.tomur.methodology.multi_resource import (
    COMPARED_PREDICTORS,
    bluefield2_runs,
    errors_on_bluefield2,
    errors_on_card,
)

PUBLISHED_ACCURACY = {
    ("NIDS", "slomo"): (21.4, 60.0, 71.2),
    ("NIDS", "tomur"): (4.3, 55.6, 95.6),
    ("FlowMonitor", "slomo"): (49.3, 18.5, 33.3),
    ("FlowMonitor", "tomur"): (5.1, 59.3, 88.9),
}


@experiment(PAPER, "table3", "Prediction accuracy with several contended resources at default traffic")
def run(setting: Setting) -> Result:
    """NIDS and FlowMonitor co-located with mem-bench and regex-bench at varying levels."""
    on_card = {nf: errors_on_card(nf, setting) for nf in ("NIDS", "FlowMonitor")}
    errors = {
        (nf, name, "simulated"): runs.errors[name] for nf, runs in on_card.items() for name in COMPARED_PREDICTORS
    }
    real = errors_on_bluefield2(setting)
    if real:
        errors |= {("FlowMonitor", name, "BlueField-2"): real.errors[name] for name in COMPARED_PREDICTORS}
    table = score_table(errors, PUBLISHED_ACCURACY)
    return Result(
        table,
        (f"{SIMULATED_CARD}: NIDS and FlowMonitor, training and ground truth.", bluefield2_runs(real)),
        partial(draw_scores, table=table),
        (METRICS_NOTE, "The contention levels are random; the paper does not publish its levels."),
    )
