"""Admission by the latency of whole plans: a greedy insertion that needs no formula for the latency.

SLOs come with the shortest headroom first, and so are their transfers ordered (paper 003, Algorithm 1, line 5). Each is
tried with those of its batches that keep its promise when it runs alone, the fastest first. It is admitted with the
first batch with which all that are admitted keep theirs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from placer.gpu.device import GpuDevice
from placer.gpu.latencies import PlanLatencies
from placer.gpu.plan import Admitted, Rejected, SmShare
from placer.gpu.slo import LatencySlo

TRIED = 4
"""Batches of an SLO that are tried beside others: the fastest, and others evenly over its sizes."""


@dataclass(frozen=True)
class AloneLatency:
    """A batch with which an SLO keeps its promise when it runs alone, and its latency then, us."""

    batch: int
    latency_us: float


def admit_whole_plans(
    device: GpuDevice, slos: Sequence[LatencySlo], latencies: PlanLatencies
) -> tuple[tuple[Admitted, ...], tuple[Rejected, ...]]:
    """What is admitted, so that every plan on the way keeps all promises, and what is rejected.

    Parameters
    ----------
    device
        Its size; its times are not used.
    latencies
        Of plans.
    """
    alone = {slo.id: batches_alone(device, slo, latencies) for slo in slos}
    ranked = sorted(slos, key=lambda slo: _headroom_us(slo, alone[slo.id]))
    search = _Search(device, latencies)
    rejected = []
    for slo in ranked:
        if not alone[slo.id]:
            rejected.append(Rejected(slo, _cause_alone(device, slo)))
        elif cause := search.insert(slo, alone[slo.id]):
            rejected.append(Rejected(slo, cause))
    return tuple(search.plan), tuple(rejected)


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
    return [size for size in sizes if size <= most and device.batching_us(size, slo.rate_kpps) / 2 < slo.latency_us]


def _headroom_us(slo: LatencySlo, alone: Sequence[AloneLatency]) -> float:
    return slo.latency_us - alone[0].latency_us if alone else inf


def _cause_alone(device: GpuDevice, slo: LatencySlo) -> str:
    """Packets wait too long for a batch, or the server is too slow for any."""
    return "kernel" if _batches(device, slo) else "batching"


class _Search:
    """The plan so far."""

    def __init__(self, device: GpuDevice, latencies: PlanLatencies) -> None:
        self.device = device
        self.latencies = latencies
        self.plan: list[Admitted] = []

    def insert(self, slo: LatencySlo, alone: Sequence[AloneLatency]) -> str | None:
        """Add the SLO where all promises are kept; or why not."""
        if len(self.plan) >= self.device.workers:
            return "workers"
        fits = False
        for one in _spread(alone):
            sm = self._sm(one.batch)
            if sm is None:
                continue
            fits = True
            wanted = [*self.plan, Admitted(slo, one.batch, len(self.plan), (SmShare(sm, one.batch),))]
            if all(
                found <= each.slo.latency_us for found, each in zip(self.latencies.p99_us(wanted), wanted, strict=True)
            ):
                self.plan = wanted
                return None
        return "pcie" if fits else "executors"

    def _sm(self, packets: int) -> int | None:
        """The SM with the most free executors that has room."""
        used: Counter[int] = Counter()
        for one in self.plan:
            used.update({share.sm: self.device.executors(share.packets) for share in one.minibatches})
        sm = min(range(self.device.sms), key=lambda at: (used[at], at))
        fits = used[sm] + self.device.executors(packets) <= self.device.executors_per_sm
        return sm if fits else None


def _spread(alone: Sequence[AloneLatency]) -> list[AloneLatency]:
    """The fastest batch, then others evenly over the list."""
    step = max((len(alone) - 1) / (TRIED - 1), 1.0)
    places = sorted({round(step * at) for at in range(TRIED) if round(step * at) < len(alone)})
    return [alone[at] for at in places]
