"""Plan files: where every strategy placed every instance, as CSV (docs/formats/plan.md)."""

import csv
import io

from placer.model.sla import LATENCY_SLAS
from placer.run import Comparison

PLAN_COLUMNS = (
    "strategy", "predictor", "id", "nic", "nic_model", "time", "predicted_kpps", "solo_kpps", "true_kpps", "sla_met",
    "reason",
)  # fmt: skip
RATE_COLUMN, CORES_COLUMN = "rate_kpps", "cores"
"""Further columns, where an arrival has an offered rate, and where one has that or a number of cores.

Before them are two for each kind of latency SLA that an arrival has: `predicted_latency_us` and `true_latency_us`.
"""


def plans_csv(comparison: Comparison) -> str:
    """All plans. Throughputs are the lowest of the stay, empty where the arrival was rejected or they are unknown.
    Latencies are the longest of the stay, cores those that the strategy gave."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    workloads = [arrival.workload for arrival in comparison.arrivals]
    given = {workload.latency_statistic for workload in workloads if workload.promises_latency}
    promised = [kind for kind in LATENCY_SLAS if kind.statistic in given]
    offered = not all(workload.is_saturated for workload in workloads)
    sized = offered or any(workload.cores for workload in workloads)
    latencies = [f"{source}_{kind.figure}" for kind in promised for source in ("predicted", "true")]
    further = [*latencies, *[RATE_COLUMN] * offered, *[CORES_COLUMN] * sized]
    writer.writerow((*PLAN_COLUMNS, *further))
    for evaluation in comparison.evaluations:
        for placement in evaluation.plan.placements:
            identity, workload, kind = placement.arrival.id, placement.arrival.workload, placement.kind
            true = (evaluation.stays or {}).get(identity)
            expected = (evaluation.expected or {}).get(identity)
            solo = true or expected
            writer.writerow(
                [
                    evaluation.plan.strategy,
                    evaluation.plan.predictor or "",
                    identity,
                    placement.nic or "",
                    kind.model if kind else "",
                    f"{placement.arrival.time:.10g}",
                    _kpps(expected.throughput_kpps if expected else None),
                    _kpps(solo.solo_kpps if solo else None),
                    _kpps(true.throughput_kpps if true else None),
                    "" if true is None or true.sla_met is None else str(true.sla_met).lower(),
                    placement.reason,
                    *(
                        _kpps(stay.latency_us if stay and workload.latency_statistic == kind.statistic else None)
                        for kind in promised
                        for stay in (expected, true)
                    ),
                    *["" if workload.is_saturated else repr(workload.rate_kpps)] * offered,
                    *[str(kind.cores_for(workload)) if kind else ""] * sized,
                ]
            )
    return text.getvalue()


def _kpps(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
