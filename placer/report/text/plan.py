"""Plan files: where every strategy placed every instance, as CSV (docs/formats.md)."""

from __future__ import annotations

import csv
import io

from placer.run import Comparison

COLUMNS = (
    "strategy", "predictor", "id", "nic", "nic_model", "time", "predicted_kpps", "solo_kpps", "true_kpps", "sla_met",
    "reason",
)  # fmt: skip


def plans_csv(comparison: Comparison) -> str:
    """All plans. Throughputs are the lowest of the stay, empty where the arrival was rejected or they are unknown."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for evaluation in comparison.evaluations:
        for placement in evaluation.plan.placements:
            identity = placement.arrival.id
            true = (evaluation.stays or {}).get(identity)
            expected = (evaluation.expected or {}).get(identity)
            solo = true or expected
            writer.writerow(
                [
                    evaluation.plan.strategy,
                    evaluation.plan.predictor or "",
                    identity,
                    placement.nic or "",
                    placement.kind.model if placement.kind else "",
                    f"{placement.arrival.time:.10g}",
                    _kpps(expected.throughput_kpps if expected else None),
                    _kpps(solo.solo_kpps if solo else None),
                    _kpps(true.throughput_kpps if true else None),
                    "" if true is None else str(true.sla_met).lower(),
                    placement.reason,
                ]
            )
    return text.getvalue()


def _kpps(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
