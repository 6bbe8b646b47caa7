"""Exact admission: as many SLOs as a GPU can serve, and a bound on how many any plan could.

    SLOs -> their best cases -> bounds, each from one resource -> plans by insertion, improved -> bound from the demand
    on the bus -> proof by all plans where there are few SLOs, else more improvement

A plan is held as a layout (`sm_layout`): minibatches on SMs, from which everything else follows."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.exact.bound import BestCases, best_cases
from placer.gpu.exact.search import AdmissionSearch
from placer.gpu.exact.sm_layout import plan_of, problem_of
from placer.gpu.latency import at_most, latency_of
from placer.gpu.plan import Admission, Admitted, LatencySlo, Rejected, SmShare

__all__ = ["admit_exactly", "rejections"]


def admit_exactly(device: GpuDevice, slos: Sequence[LatencySlo], time_limit_s: float = 1.0) -> Admission:
    """Admit as many SLOs as possible. `time_limit_s`: after this, the best plan so far is returned with its bound.
    Loading compiled code does not count. Returns what is admitted, what is rejected with its cause, and an upper bound;
    proven where the bound is reached. Without the time limit in the way, equal calls return equal plans."""
    _load()
    started = time.monotonic()
    problem = problem_of(device, slos)
    cases = best_cases(problem)
    search = AdmissionSearch(problem, cases, started + time_limit_s)
    search.run()
    admitted = plan_of(device, slos, problem, search.best)
    rejected = rejections(device, slos, admitted, cases)
    return Admission(admitted, rejected, search.bound, len(admitted) == search.bound, time.monotonic() - started)


@cache
def _load() -> None:
    """Load the compiled code, with two SLOs of which the GPU serves only one."""
    nf = GpuNf("class", 0.0, (1.0, 1.0))
    device = GpuDevice(1, 2, 64, 2, Arbitration.SPORADIC, {"class": (0.0, 1.5)}, {"nf": nf}, {"nf": {"nf": 1.0}})
    problem = problem_of(device, [LatencySlo(name, "nf", 100.0, 5.0) for name in ("a", "b")])
    search = AdmissionSearch(problem, best_cases(problem), time.monotonic() + 60.0)
    search.bound = 2
    search.run()


def rejections(
    device: GpuDevice, slos: Sequence[LatencySlo], admitted: Sequence[Admitted], cases: BestCases
) -> tuple[Rejected, ...]:
    """The SLOs that are not admitted, each with its cause. Where the GPU cannot serve an SLO even alone, the cause is
    the stage that takes too long there. Otherwise it is the first in the way beside the admitted ones: no worker, no
    free executors, kernels that get too slow on shared SMs, or else the bus."""
    served = {tenant.slo.id for tenant in admitted}
    return tuple(
        Rejected(slo, cases.cause[at] or _beside(device, slo, int(cases.batch[at]), int(cases.size[at]), admitted))
        for at, slo in enumerate(slos)
        if slo.id not in served
    )


def _beside(device: GpuDevice, slo: LatencySlo, batch: int, size: int, admitted: Sequence[Admitted]) -> str:
    if len(admitted) >= device.workers:
        return "workers"
    free = Counter(dict.fromkeys(range(device.sms), device.executors_per_sm))
    for tenant in admitted:
        for share in tenant.minibatches:
            free[share.sm] -= device.executors(share.packets)
    needed = device.executors(batch)
    if sum(free.values()) < needed:
        return "executors"
    cause = "executors"
    for largest in range(size, device.executors_per_sm + 1):
        shares = _spread(device, slo, batch, largest, free, admitted)
        if shares:
            joined = [*admitted, Admitted(slo, batch, len(admitted), shares)]
            if _without_bus(device, joined):
                return "pcie"
            cause = "kernel"
        if largest >= needed:
            break
    return cause


def _spread(
    device: GpuDevice, slo: LatencySlo, batch: int, largest: int, free: Counter[int], admitted: Sequence[Admitted]
) -> tuple[SmShare, ...]:
    """Minibatches on the SMs with the least penalties; none where executors lack."""
    tenants: dict[int, list[str]] = {sm: [] for sm in free}
    for tenant in admitted:
        for share in tenant.minibatches:
            tenants[share.sm].append(tenant.slo.nf)

    def cost(sm: int) -> tuple[float, int]:
        there = tenants[sm]
        return device.penalty(slo.nf, there) + sum(device.penalty(other, [slo.nf]) for other in there), sm

    left, shares = batch, []
    for sm in sorted(free, key=cost):
        packets = min(left, min(largest, free[sm]) * device.packets_per_executor)
        if packets > 0:
            shares.append(SmShare(sm, packets))
            left -= packets
    return tuple(shares) if left == 0 else ()


def _without_bus(device: GpuDevice, joined: Sequence[Admitted]) -> bool:
    """Whether all would keep their latency if nobody waited for the bus; each with the smallest batch that keeps up."""
    parts = latency_of(device, joined)
    for tenant in joined:
        part = replace(parts[tenant.slo.id], transfer_wait=0.0)
        period_us = device.period_us(tenant.batch, tenant.slo.rate_kpps)
        if not at_most(part.kernel, period_us) or not at_most(part.total, tenant.slo.latency_us):
            return False
    return True
