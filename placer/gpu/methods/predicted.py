"""Predicted: SLOs come one by one, admitted where the predicted p99 of the whole plan keeps every promise."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from placer.gpu.device import GpuDevice
from placer.gpu.plan import Admission, Admitted, LatencySlo, PlanLatencies, Rejected, SmShare
from placer.gpu.registry import MethodSetting, register
from profiles import InputError


@register("predicted")
def admit_by_prediction(device: GpuDevice, slos: Sequence[LatencySlo], setting: MethodSetting) -> Admission:
    """What is admitted by models of the server; the bound is that of workers alone. Raises `InputError` without
    models."""
    if setting.latencies is None:
        hint = "`placer train` writes them from the profile of a GPU"
        raise InputError.of("--models", "is missing: --method predicted admits by models", hint=hint)
    begun = time.perf_counter()
    admitted, rejected = admit_whole_plans(device, slos, setting.latencies)
    bound = min(len(slos), device.workers)
    return Admission(admitted, rejected, bound, len(admitted) == bound, time.perf_counter() - begun)


# Admission by the latency of whole plans: a greedy insertion that needs no formula for the latency.
#
# Transfers are ordered by headroom, the shortest first (paper 003, Algorithm 1, line 5). Each SLO is tried with those
# of
# its batches that keep its promise when it runs alone, the fastest first. It is admitted with the first batch with
# which
# all that are admitted keep theirs. SLOs come with the shortest headroom first, then, unless all were admitted, with
# the
# longest first; the larger plan counts.


TRIED_BATCHES = 4
"""Batches of an SLO that are tried beside others: the fastest, and others evenly over those that are slower."""

Found = tuple[tuple[Admitted, ...], tuple[Rejected, ...]]


@dataclass(frozen=True)
class AloneLatency:
    """A batch with which an SLO keeps its promise when it runs alone, and its latency then, us."""

    batch: int
    latency_us: float


def admit_whole_plans(device: GpuDevice, slos: Sequence[LatencySlo], latencies: PlanLatencies) -> Found:
    """What is admitted, in a plan that keeps all promises, and what is rejected. `device`: its size; its times are not
    used."""
    alone = {slo.id: batches_alone(device, slo, latencies) for slo in slos}
    possible = sorted((slo for slo in slos if alone[slo.id]), key=lambda slo: _headroom_us(slo, alone[slo.id]))
    # packets wait too long for a batch, or the server is too slow for any
    never = tuple(Rejected(slo, "kernel" if _batches(device, slo) else "batching") for slo in slos if not alone[slo.id])
    best = _insert(device, latencies, possible, alone)
    if best[1]:
        best = max(best, _insert(device, latencies, possible[::-1], alone), key=lambda found: len(found[0]))
    return best[0], (*best[1], *never)


def batches_alone(device: GpuDevice, slo: LatencySlo, latencies: PlanLatencies) -> list[AloneLatency]:
    """The batches with which the SLO keeps its promise alone, the fastest first; at most a whole SM, powers of 2."""
    found = []
    for batch in _batches(device, slo):
        (latency,) = latencies.p99_us([Admitted(slo, batch, 0, (SmShare(0, batch),))])
        if latency <= slo.latency_us:
            found.append(AloneLatency(batch, latency))
    return sorted(found, key=lambda one: one.latency_us)


def _batches(device: GpuDevice, slo: LatencySlo) -> list[int]:
    most = device.executors_per_sm * device.packets_per_executor
    sizes = [1 << power for power in range(most.bit_length())] if slo.batch is None else [slo.batch]
    # packets wait half of this on average, and the p99 is longer than the average
    return [size for size in sizes if size <= most and device.batching_us(size, slo.rate_kpps) / 2 < slo.latency_us]


def _headroom_us(slo: LatencySlo, alone: Sequence[AloneLatency]) -> float:
    return slo.latency_us - alone[0].latency_us if alone else inf


def _insert(
    device: GpuDevice, latencies: PlanLatencies, slos: Sequence[LatencySlo], alone: Mapping[str, Sequence[AloneLatency]]
) -> Found:
    """What is admitted and rejected when SLOs come in this order."""
    search = _Search(device, latencies, alone)
    rejected = [Rejected(slo, cause) for slo in slos if (cause := search.insert(slo))]
    return tuple(search.plan), tuple(rejected)


class _Search:
    """The plan so far, in the order of its transfers."""

    def __init__(
        self, device: GpuDevice, latencies: PlanLatencies, alone: Mapping[str, Sequence[AloneLatency]]
    ) -> None:
        self.device = device
        self.latencies = latencies
        self.alone = alone
        self.plan: list[Admitted] = []

    def insert(self, slo: LatencySlo) -> str | None:
        """Add the SLO where all promises are kept; or why not."""
        if len(self.plan) >= self.device.workers:
            return "workers"
        fits = False
        for alone_latency in _spread(self.alone[slo.id]):
            sm = self._sm(alone_latency.batch)
            if sm is None:
                continue
            fits = True
            wanted = self._with(Admitted(slo, alone_latency.batch, 0, (SmShare(sm, alone_latency.batch),)))
            found = self.latencies.p99_us(wanted)
            if all(latency <= each.slo.latency_us for latency, each in zip(found, wanted, strict=True)):
                self.plan = wanted
                return None
        return "pcie" if fits else "executors"

    def _with(self, new: Admitted) -> list[Admitted]:
        """The plan with one more."""
        ranked = sorted([*self.plan, new], key=lambda one: _headroom_us(one.slo, self.alone[one.slo.id]))
        return [replace(one, order=order) for order, one in enumerate(ranked)]

    def _sm(self, packets: int) -> int | None:
        """The SM with the most free executors; None where it has no room."""
        used: Counter[int] = Counter()
        for tenant in self.plan:
            used.update({share.sm: self.device.executors(share.packets) for share in tenant.minibatches})
        sm = min(range(self.device.sms), key=lambda at: (used[at], at))
        fits = used[sm] + self.device.executors(packets) <= self.device.executors_per_sm
        return sm if fits else None


def _spread(alone: Sequence[AloneLatency]) -> list[AloneLatency]:
    """The fastest batch, then others evenly over the list."""
    step = max((len(alone) - 1) / (TRIED_BATCHES - 1), 1.0)
    places = sorted({round(step * at) for at in range(TRIED_BATCHES) if round(step * at) < len(alone)})
    return [alone[at] for at in places]
