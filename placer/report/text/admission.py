"""What a GPU admits, as text tables and JSON (CONTRACTS 10)."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from placer.gpu.device import GpuDevice
from placer.gpu.enough import RejectionReason
from placer.gpu.latency import LatencyParts, latency_of
from placer.gpu.plan import Admission, Admitted, Rejected, SmShare
from placer.report.text.table import text_table

ADMITTED_HEADINGS = [
    "admitted", "NF", "rate kpps", "SLO us", "latency", "batching", "pre/post", "wait", "transfer", "kernel",
    "batch", "order", "packets on SMs",
]  # fmt: skip
REJECTED_HEADINGS = ["rejected", "NF", "rate kpps", "SLO us", "cause"]
EXPLAINED_HEADINGS = [
    "rejected", "SLO us", "latency", "batching", "pre/post", "wait", "transfer", "kernel", "cause", "enough would be"
]  # fmt: skip
CAUSE_TEXTS = {
    "batching": "batching",
    "pcie": "PCIe bus",
    "executors": "executors",
    "kernel": "kernel",
    "workers": "workers",
}
"""Causes in words."""


def admission_report(
    device: GpuDevice, admission: Admission, method: str, form: str, reasons: Sequence[RejectionReason] | None = None
) -> str:
    """An admission for people (`table`) or programs (`json`). `reasons`: of the rejected SLOs; None: causes alone are
    shown."""
    if form == "json":
        return json.dumps(answer(admission, reasons)) + "\n"
    parts = [_admit(device, admission.admitted)] if admission.admitted else []
    if reasons:
        parts.append(_explain(reasons))
    elif admission.rejected:
        parts.append(format_rejected(admission.rejected))
    admitted, total = len(admission.admitted), len(admission.admitted) + len(admission.rejected)
    lines = [f"{admitted:,} of {total:,} SLOs admitted by {method} in {_seconds(admission.seconds)}."]
    if admission.proven:
        lines.append(f"Optimal, proven: no plan admits more than {admission.bound:,}.")
    else:
        lines.append(f"Not proven optimal: no plan admits more than {admission.bound:,}.")
    latencies = latency_of(device, admission.admitted)
    over = sum(
        latencies[admitted_slo.slo.id].total > admitted_slo.slo.latency_us * (1 + 1e-9)
        for admitted_slo in admission.admitted
    )
    if over:
        lines.append(f"! {over:,} of the admitted SLOs violate their latency in the model.")
    return "\n".join([*parts, ("\n".join(lines) + "\n")])


def answer(admission: Admission, reasons: Sequence[RejectionReason] | None = None) -> dict[str, Any]:
    """The admission as JSON; with `reasons`, a key `explanations` more."""
    found: dict[str, Any] = {
        "admitted": [
            {
                "id": admitted_slo.slo.id,
                "batch": admitted_slo.batch,
                "order": admitted_slo.order,
                "minibatches": [{"sm": share.sm, "packets": share.packets} for share in admitted_slo.minibatches],
            }
            for admitted_slo in admission.admitted
        ],
        "rejected": [{"id": rejection.slo.id, "cause": rejection.cause} for rejection in admission.rejected],
        "bound": admission.bound,
        "proven": admission.proven,
        "seconds": admission.seconds,
    }
    if reasons is not None:
        found["explanations"] = [_explanation(reason) for reason in reasons]
    return found


def _explanation(reason: RejectionReason) -> dict[str, Any]:
    parts = reason.parts
    return {
        "id": reason.rejected.slo.id,
        "cause": reason.rejected.cause,
        "latency_us": None if parts is None else parts.total,
        "stages_us": None if parts is None else dict(stages(parts)),
        "enough": [{"kind": change.kind, "to": change.to} for change in reason.enough],
    }


def stages(parts: LatencyParts) -> Mapping[str, float]:
    """A latency by stage, us, under the names of the testbed protocol."""
    return {name: getattr(parts, name) for name in ("batching", "pre_post", "transfer_wait", "transfer", "kernel")}


def _admit(device: GpuDevice, admitted: Sequence[Admitted]) -> str:
    latencies = latency_of(device, admitted)
    rows = []
    for entry in sorted(admitted, key=lambda one: one.order):
        parts = latencies[entry.slo.id]
        slo = [entry.slo.id, entry.slo.nf, f"{entry.slo.rate_kpps:,.1f}", f"{entry.slo.latency_us:,.1f}"]
        exceeds = "" if parts.total <= entry.slo.latency_us * (1 + 1e-9) else " !"
        rows.append(
            [*slo, f"{parts.total:,.1f}{exceeds}", *_us(parts), entry.batch, entry.order, sms_text(entry.minibatches)]
        )
    return text_table(ADMITTED_HEADINGS, rows, words=2)


def _us(parts: LatencyParts) -> list[str]:
    return [f"{time:,.1f}" for time in stages(parts).values()]


def sms_text(shares: Sequence[SmShare]) -> str:
    """Packets per SM; `64 on 3-5` is 64 on each of them."""
    found = []
    ordered = sorted(shares, key=lambda one: one.sm)
    for _, run in groupby(enumerate(ordered), key=lambda one: (one[1].packets, one[1].sm - one[0])):
        sms = [share for _, share in run]
        names = f"{sms[0].sm}" if len(sms) == 1 else f"{sms[0].sm}-{sms[-1].sm}"
        found.append(f"{sms[0].packets} on {names}")
    return ", ".join(found)


def format_rejected(rejected: Sequence[Rejected]) -> str:
    """What is rejected, with its causes."""
    rows = [
        [entry.slo.id, entry.slo.nf, f"{entry.slo.rate_kpps:,.1f}", f"{entry.slo.latency_us:,.1f}", _cause(entry)]
        for entry in rejected
    ]
    return text_table(REJECTED_HEADINGS, rows, words=2)


def _cause(rejected: Rejected) -> str:
    return CAUSE_TEXTS.get(rejected.cause, rejected.cause)


def _explain(reasons: Sequence[RejectionReason]) -> str:
    rows = []
    for reason in reasons:
        slo, parts = reason.rejected.slo, reason.parts
        times = ["-"] * 6 if parts is None else [f"{parts.total:,.1f}", *_us(parts)]
        enough = " or ".join(_change(change.kind, change.to) for change in reason.enough)
        rows.append([slo.id, f"{slo.latency_us:,.1f}", *times, _cause(reason.rejected), enough or "-"])
    note = "Each beside all that are admitted, at its best place; what would be enough is enough alone.\n"
    return text_table(EXPLAINED_HEADINGS, rows, words=1) + note


def _change(kind: str, to: float) -> str:
    words = {"latency_us": f"{to:,.6g} us", "rate_kpps": f"{to:,.6g} kpps", "workers": f"{to:,.0f} workers"}
    return words.get(kind, f"{kind} {to:g}")


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f} s"


# What a GPU admits by predictions of whole plans, as a text table.


PREDICTED_HEADINGS = ["admitted", "NF", "rate kpps", "SLO us", "p99", "batch", "order", "packets on SMs"]


def format_predicted(admission: Admission, p99_us: Sequence[float]) -> str:
    """The plan with the p99 of each admitted SLO, margin included, then what is rejected."""
    rows = [
        [
            *(one.slo.id, one.slo.nf, f"{one.slo.rate_kpps:,.1f}", f"{one.slo.latency_us:,.1f}"),
            *(f"{latency:,.1f}", one.batch, one.order, sms_text(one.minibatches)),
        ]
        for one, latency in zip(admission.admitted, p99_us, strict=True)
    ]
    parts = [text_table(PREDICTED_HEADINGS, rows, words=2)] if rows else []
    parts += [format_rejected(admission.rejected)] if admission.rejected else []
    total = len(admission.admitted) + len(admission.rejected)
    verdict = f"{len(admission.admitted):,} of {total:,} SLOs admitted by predicted p99 in {admission.seconds:.3f} s.\n"
    return "\n".join([*parts, verdict])
