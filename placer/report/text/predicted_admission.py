"""What a GPU admits by predictions of whole plans, as a text table."""

from __future__ import annotations

from collections.abc import Sequence

from placer.gpu.plan import Admission
from placer.report.text.admission import rejected_table, sms_text
from placer.report.text.table import text_table

COLUMNS = ["admitted", "NF", "rate kpps", "SLO us", "p99", "batch", "order", "packets on SMs"]


def predicted_table(admission: Admission, p99_us: Sequence[float]) -> str:
    """The plan with the p99 of each admitted SLO, margin included, then what is rejected."""
    rows = [
        [
            *(one.slo.id, one.slo.nf, f"{one.slo.rate_kpps:,.1f}", f"{one.slo.latency_us:,.1f}"),
            *(f"{latency:,.1f}", one.batch, one.order, sms_text(one.minibatches)),
        ]
        for one, latency in zip(admission.admitted, p99_us, strict=True)
    ]
    parts = [text_table(COLUMNS, rows, words=2)] if rows else []
    parts += [rejected_table(admission.rejected)] if admission.rejected else []
    total = len(admission.admitted) + len(admission.rejected)
    verdict = f"{len(admission.admitted):,} of {total:,} SLOs admitted by predicted p99 in {admission.seconds:.3f} s.\n"
    return "\n".join([*parts, verdict])
