"""Grus exactly as the paper prints it (003, Algorithm 1), mistakes included.

Kept to show what they cost: what this admits may violate the model, in its latencies and its orders.

- Line 2: the batch is all packets that arrive within the latency, so that batching takes the whole latency, unless the
  SLO fixes its batch.
- Line 11: the wait sums up the transfers of SLOs that came first, whether they were accepted or not.
- Line 13: an accepted SLO is charged neither its own transfer nor its wait.
- Line 16: `accepted` is never reset, so after the first SLO all are accepted.
- Lines 19 to 21: the shift begins behind the new order and includes the new SLO.

Workers are no part of the algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from placer.gpu.device import GpuDevice
from placer.gpu.greedy.admit import Placed, answered
from placer.gpu.greedy.gpu import longest_stage
from placer.gpu.greedy.layout import BatchLayout, split
from placer.gpu.greedy.tenants import GpuJob, GpuTenant, SmTable
from placer.gpu.plan import Admission, Admitted, Rejected
from placer.gpu.registry import MethodSetting, register
from placer.gpu.slo import LatencySlo


@register("grus-printed")
def grus_printed(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What the printed algorithm accepts. The bound is that of the model, and may be below what is accepted."""
    return answered(device, slos, lambda: _admit(device, slos))


@dataclass
class _Term:
    """The variables of the algorithm for one SLO."""

    slo: LatencySlo
    batch: int
    hdr: float
    t2: float
    cause: str = "pcie"
    order: int = 0
    on: GpuTenant | None = None


def _admit(device: GpuDevice, slos: Sequence[LatencySlo]) -> Placed:
    terms = sorted((_term(device, slo) for slo in slos), key=lambda one: one.hdr)  # lines 1 to 5
    table, accepted = SmTable(device), False
    for i, term in enumerate(terms):
        if not _select(table, i, term, device):  # line 7
            continue
        assert term.on is not None
        term.hdr -= term.on.kernel_us  # line 8
        order = i
        for order in range(i, -1, -1):  # lines 9 to 15
            waits = sum(one.t2 for one in terms[:order])
            if term.hdr - term.t2 - waits >= 0 and _no_violations(terms[order : i + 1], term.t2):
                accepted = True
                break
        if not accepted:
            term.cause = longest_stage(device, term.on.job)
            term.on = None
            continue
        table.add(term.on)
        term.order = order
        for one in terms[order + 1 : i + 1]:  # lines 19 to 21
            one.order += 1
            one.hdr -= term.t2
    return _placed(slos, terms)


def _term(device: GpuDevice, slo: LatencySlo) -> _Term:
    batch = slo.batch or max(1, ceil(slo.rate_kpps * slo.latency_us / 1000.0))
    hdr = slo.latency_us - device.batching_us(batch, slo.rate_kpps) - device.nfs[slo.nf].pre_post_us
    return _Term(slo, batch, hdr, device.transfer(slo.nf, batch))


def _select(table: SmTable, number: int, term: _Term, device: GpuDevice) -> bool:
    """One SM, or if the batch is too large for any, as few as possible, those of the least penalty first."""
    if device.executors(term.batch) > device.sms * device.executors_per_sm:
        term.cause = "executors"
        return False
    for executors in range(device.executors_per_sm, 0, -1):
        layout: BatchLayout = split(device, term.batch, executors)
        free = [sm for sm in range(device.sms) if table.free[sm] >= device.executors(layout.minibatches[0])]
        if len(free) >= len(layout.minibatches):
            job = GpuJob.of(device, term.slo, layout)
            least = sorted(free, key=lambda sm: device.penalty(term.slo.nf, [one.job.slo.nf for one in table.on[sm]]))
            term.on = table.joined(number, job, least[: len(layout.minibatches)])
            return True
    term.cause = "executors"
    return False


def _no_violations(terms: Sequence[_Term], wait: float) -> bool:
    return all(one.hdr - wait >= 0 for one in terms)


def _placed(slos: Sequence[LatencySlo], terms: Sequence[_Term]) -> Placed:
    by_id = {term.slo.id: term for term in terms}
    admitted: list[Admitted] = [one.on.admitted(one.order) for one in terms if one.on is not None]
    rejected = tuple(Rejected(slo, by_id[slo.id].cause) for slo in slos if by_id[slo.id].on is None)
    return tuple(sorted(admitted, key=lambda one: one.order)), rejected
