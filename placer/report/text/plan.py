"""Plan files: where every strategy placed every instance, as CSV (docs/formats/plan.md)."""

import csv
import io
from collections.abc import Iterator, Sequence

from placer.evaluate.checks import peak_nics
from placer.evaluate.evaluation import Evaluation
from placer.model.fleet import Fleet
from placer.model.nic import Nic, number_in
from placer.model.nic_kind import NicKind
from placer.model.sla import LATENCY_SLAS
from placer.run import Comparison

PLAN_COLUMNS = (
    "strategy", "predictor", "id", "nic", "nic_model", "time", "predicted_kpps", "solo_kpps", "true_kpps", "sla_met",
    "reason",
)  # fmt: skip
SPARE_REASON = "spare"  # the reason of rows without an instance, whose NICs stay empty for failures
RATE_COLUMN, CORES_COLUMN = "rate_kpps", "cores"
"""Further columns, where an arrival has an offered rate, and where one has that or a number of cores.

Before them are two for each kind of latency SLA that an arrival has: `predicted_latency_us` and `true_latency_us`.
"""


def plans_csv(comparison: Comparison) -> str:
    """All plans. Throughputs are the lowest of the stay, empty where the arrival was rejected or they are unknown.
    Latencies are the longest of the stay, cores those that the strategy gave. Each spare NIC has a row of its own."""
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
        names = (evaluation.plan.strategy, evaluation.plan.predictor or "", "")
        for nic in _spare_nics(evaluation, comparison.catalogue.kinds):
            row = dict.fromkeys((*PLAN_COLUMNS, *further), "")
            row |= {"nic": nic.id, "nic_model": nic.kind.model, "reason": SPARE_REASON}
            writer.writerow([*names, *list(row.values())[len(names) :]])
    return text.getvalue()


def _spare_nics(evaluation: Evaluation, kinds: Sequence[NicKind]) -> Iterator[Nic]:
    """The spare NICs beside all NICs of the plan, by the names that they have in the fleet. Where NICs of the plan are
    idle when most are in use, those are spare already."""
    fleet = Fleet(kinds)
    found = {placement.nic: placement.kind for placement in evaluation.plan.placed}
    for name, kind in sorted(found.items(), key=lambda item: number_in(str(item[0])) is None):
        if kind is not None:
            fleet.open(kind, name)
    added = (evaluation.spare.added if evaluation.spare else None) or ()
    for kind in kinds:
        idle = fleet.in_use(kind) - peak_nics(evaluation.plan, kind)
        for _ in range(added.count(kind) - idle):
            yield fleet.open(kind)


def _kpps(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
