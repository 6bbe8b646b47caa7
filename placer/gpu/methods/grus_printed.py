"""Grus exactly as the paper prints it (003, Algorithm 1), mistakes included.

Kept to show what they cost: what this admits may violate the model, in its latencies and its orders.

- Line 2: the batch is all packets that arrive within the latency, so that batching takes the whole latency, unless the
  SLO fixes its batch.
- Line 11: the wait sums up the transfers of SLOs that came first, whether they were accepted or not.
- Line 13: an accepted SLO is charged neither its own transfer nor its wait.
- Line 16: `accepted` is never reset, so after the first SLO all are accepted.
- Lines 19 to 21: the shift begins behind the new order and includes the new SLO.

Workers are no part of the algorithm."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

from placer.gpu.device import GpuDevice
from placer.gpu.greedy import Placed, time_admission
from placer.gpu.plan import Admission, Admitted, LatencySlo, Rejected, SmShare
from placer.gpu.registry import MethodSetting, register


@register("grus-printed")
def grus_printed(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What the printed algorithm accepts. The bound is that of the model, and may be below what is accepted."""
    return time_admission(device, slos, lambda: _admit(device, slos))


@dataclass
class _Term:
    """The variables of the algorithm for one SLO."""

    slo: LatencySlo
    batch: int
    hdr: float
    t2: float
    cause: str = "pcie"
    order: int = 0
    on: tuple[SmShare, ...] = ()


@dataclass
class _Sm:
    """An SM: its free executors, and the NFs on it."""

    free: int
    nfs: list[str] = field(default_factory=list)


def _admit(device: GpuDevice, slos: Sequence[LatencySlo]) -> Placed:
    terms = sorted((_term(device, slo) for slo in slos), key=lambda one: one.hdr)  # lines 1 to 5
    sms, accepted = [_Sm(device.executors_per_sm) for _ in range(device.sms)], False
    for i, term in enumerate(terms):
        term.on = _select(sms, term, device)  # line 7
        if not term.on:
            term.cause = "executors"
            continue
        nf = term.slo.nf
        term.hdr -= max(device.kernel(nf, on.packets) + device.penalty(nf, sms[on.sm].nfs) for on in term.on)  # line 8
        order = i
        for order in range(i, -1, -1):  # lines 9 to 15
            waits = sum(term.t2 for term in terms[:order])
            if term.hdr - term.t2 - waits >= 0 and _no_violations(terms[order : i + 1], term.t2):
                accepted = True
                break
        if not accepted:
            term.cause = _longest_stage(device, term)
            term.on = ()
            continue
        for on in term.on:
            sms[on.sm].free -= device.executors(on.packets)
            sms[on.sm].nfs.append(nf)
        term.order = order
        for later_term in terms[order + 1 : i + 1]:  # lines 19 to 21
            later_term.order += 1
            later_term.hdr -= term.t2
    return _collect(slos, terms)


def _term(device: GpuDevice, slo: LatencySlo) -> _Term:
    batch = slo.batch or max(1, ceil(slo.rate_kpps * slo.latency_us / 1000.0))
    hdr = slo.latency_us - device.batching_us(batch, slo.rate_kpps) - device.nfs[slo.nf].pre_post_us
    return _Term(slo, batch, hdr, device.transfer(slo.nf, batch))


def _select(sms: Sequence[_Sm], term: _Term, device: GpuDevice) -> tuple[SmShare, ...]:
    """One SM, or if the batch is too large for any, as few as possible, those of the least penalty first."""
    if device.executors(term.batch) > device.sms * device.executors_per_sm:
        return ()
    for executors in range(device.executors_per_sm, 0, -1):
        largest = min(executors, device.executors(term.batch))
        whole, rest = divmod(term.batch, largest * device.packets_per_executor)
        parts = [largest * device.packets_per_executor] * whole + [rest] * (rest > 0)
        free = [sm for sm in range(device.sms) if sms[sm].free >= device.executors(parts[0])]
        if len(free) >= len(parts):
            least = sorted(free, key=lambda sm: device.penalty(term.slo.nf, sms[sm].nfs))
            return tuple(SmShare(sm, packets) for sm, packets in zip(least, parts, strict=False))
    return ()


def _longest_stage(device: GpuDevice, term: _Term) -> str:
    slo, largest = term.slo, term.on[0].packets
    batching, pre_post = device.batching_us(term.batch, slo.rate_kpps), device.nfs[slo.nf].pre_post_us
    times = {"batching": batching, "pcie": term.t2, "kernel": device.kernel(slo.nf, largest) + pre_post}
    return max(times, key=lambda cause: times[cause])


def _no_violations(terms: Sequence[_Term], wait: float) -> bool:
    return all(term.hdr - wait >= 0 for term in terms)


def _collect(slos: Sequence[LatencySlo], terms: Sequence[_Term]) -> Placed:
    by_id = {term.slo.id: term for term in terms}
    admitted = [Admitted(term.slo, term.batch, term.order, term.on) for term in terms if term.on]
    rejected = tuple(Rejected(slo, by_id[slo.id].cause) for slo in slos if not by_id[slo.id].on)
    return tuple(sorted(admitted, key=lambda one: one.order)), rejected
