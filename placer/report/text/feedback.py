"""What feedback has learnt, as text tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placer.online.feedback_summary import FeedbackSummary
from placer.report.text.counts import counted
from placer.report.text.table import text_table

VERSIONS = ["version", "status", "e-value", "error", "champion's error", "inside 90 %", "trained at event"]
DRIFT = ["NF", "NIC model", "factor", "since event"]


def feedback_table(summary: FeedbackSummary) -> str:
    """Measurements, drift and versions for people."""
    frozen = ", frozen" if summary.frozen else ""
    parts = [
        f"{counted(summary.measurements, 'reading')}, {summary.lower_bounds:,} of them lower bounds. "
        f"Version {summary.model} decides{frozen}."
    ]
    if summary.drift:
        rows = [[one["nf"], one["nic_model"], f"{one['factor']:.3f}", f"{one['since']:,}"] for one in summary.drift]
        parts.append(text_table(DRIFT, rows))
    parts.append(text_table(VERSIONS, [_row(one) for one in summary.versions]))
    return "\n\n".join(part.rstrip() for part in parts)


def _row(version: Mapping[str, Any]) -> list[str]:
    e_value = version["e_value"]
    return [
        str(version["version"]), version["status"], "-" if e_value is None else f"{e_value:.3g}",
        *(_percent(version[name]) for name in ("mape_pct", "champion_mape_pct", "coverage_90_pct")),
        f"{version['trained_at']:,}",
    ]  # fmt: skip


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"
