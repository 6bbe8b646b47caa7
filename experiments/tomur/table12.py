"""Table 12: the queue model of the regex accelerator alone, at default traffic."""

from __future__ import annotations

from functools import partial

from experiments.methodology.accuracy import draw_scores, errors_pct, score_table
from experiments.methodology.benches import beside_benches, random_accelerator_bench
from experiments.methodology.card import DEFAULT, TESTBED, tomur
from experiments.registry import Result, Setting, experiment
from profiles import COUNTERS

RUNS = 200
REGEX = "regex model"
PUBLISHED = {("FlowMonitor", REGEX): (1.3, 94.1, 100.0), ("NIDS", REGEX): (1.2, 100.0, 100.0)}


@experiment("table12", "Accuracy of the regex model, regex contention alone, traffic fixed")
def run(setting: Setting) -> Result:
    """FlowMonitor and NIDS at default traffic beside regex-bench at random match and request rates."""
    predictor, errors = tomur(setting), {}
    for nf, name in PUBLISHED:
        rng = setting.rng(f"table12 {nf}")
        runs = [(DEFAULT, (random_accelerator_bench("regex", rng),)) for _ in range(setting.count(RUNS))]
        beside = beside_benches(nf, runs, setting)
        # no memory access of the bench is told, so that the queue model answers alone
        table = beside.table.assign(**dict.fromkeys(COUNTERS, 0.0))
        errors[nf, name, TESTBED] = errors_pct(predictor.predict_contention(nf, table), beside.truth)
    table = score_table(errors, PUBLISHED)
    return Result(
        table,
        (
            "the simulated BlueField-2: FlowMonitor and NIDS, models and truth.",
            "BlueField-2: nothing; its measurements with regex-bench have mem-bench running, too.",
        ),
        partial(draw_scores, table=table),
    )
