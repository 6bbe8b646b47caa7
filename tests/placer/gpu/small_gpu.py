"""A small GPU whose times are whole numbers, SLOs for it, and what an admission violates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from placer.gpu.device import Arbitration, GpuDevice, GpuNf
from placer.gpu.latency import latency_of
from placer.gpu.plan import Admission, LatencySlo

NFS = {"acl": GpuNf("header", 5.0, (2.0, 8.0)), "ids": GpuNf("payload", 10.0, (6.0, 24.0))}
NEAR = 1.0 + 1e-9


def small_gpu(
    arbitration: Arbitration = Arbitration.ONE_SHOT, *, sms: int = 2, executors: int = 4, workers: int = 10
) -> GpuDevice:
    """Two SMs of four executors for 10 packets each; an ids beside another takes 3 us longer."""
    transfer = {"header": (0.0, 4.0), "payload": (0.5, 4.0)}
    return GpuDevice(sms, executors, 10, workers, arbitration, transfer, NFS, {"ids": {"ids": 3.0, "acl": 1.0}})


def random_gpu(rng: Random, arbitration: Arbitration) -> GpuDevice:
    """A GPU of up to four SMs, with and without penalties."""
    names = ("acl", "ids", "vpn")[: rng.randint(1, 3)]
    classes = ("header", "payload")
    return GpuDevice(
        rng.randint(1, 4),
        rng.randint(1, 5),
        rng.choice((1, 4, 16)),
        rng.randint(0, 40),
        arbitration,
        {name: (rng.choice((0.0, rng.uniform(0, 0.6))), rng.choice((0.0, rng.uniform(0, 8)))) for name in classes},
        {
            name: GpuNf(rng.choice(classes), rng.uniform(0, 12), (rng.uniform(0, 6), rng.uniform(0, 30)))
            for name in names
        },
        {name: {other: rng.choice((0.0, rng.uniform(0, 6))) for other in names} for name in names},
    )  # fmt: skip


def random_slos(rng: Random, device: GpuDevice, count: int) -> list[LatencySlo]:
    """SLOs of which some have a fixed batch, some cannot be kept by anything."""
    longest = rng.choice((60.0, 200.0, 1000.0))
    return [
        LatencySlo(
            f"s{number}",
            rng.choice(list(device.nfs)),
            rng.choice((0.01, 10.0, rng.uniform(1, 400), rng.uniform(100, 3000))),
            rng.uniform(5.0, longest),
            rng.choice((None, None, None, rng.randint(1, 40))),
        )
        for number in range(count)
    ]


def violations(device: GpuDevice, slos: Sequence[LatencySlo], admission: Admission) -> Iterator[str]:
    """What an admission violates of the model (CONTRACTS 10)."""
    admitted = admission.admitted
    answered = [one.slo.id for one in (*admitted, *admission.rejected)]
    if sorted(answered) != sorted(slo.id for slo in slos):
        yield "each SLO has one answer"
    if len(admitted) > device.workers:
        yield "workers"
    if len({one.order for one in admitted}) < len(admitted):
        yield "orders are distinct"
    executors: Counter[int] = Counter()
    latencies = latency_of(device, admitted)
    for one in admitted:
        sms = [share.sm for share in one.minibatches]
        if len(set(sms)) < len(sms) or not all(0 <= sm < device.sms for sm in sms):
            yield f"{one.slo.id}: SMs"
        if sum(share.packets for share in one.minibatches) != one.batch or one.batch < 1:
            yield f"{one.slo.id}: minibatches"
        if one.slo.batch not in (None, one.batch):
            yield f"{one.slo.id}: fixed batch"
        for share in one.minibatches:
            executors[share.sm] += device.executors(share.packets)
        period, parts = device.period_us(one.batch, one.slo.rate_kpps) * NEAR, latencies[one.slo.id]
        if max(parts.kernel, parts.pre_post) > period or parts.total > one.slo.latency_us * NEAR:
            yield f"{one.slo.id}: {parts}"
    if any(count > device.executors_per_sm for count in executors.values()):
        yield "executors"
    if admission.bound < len(admitted) or admission.proven != (admission.bound == len(admitted)):
        yield "bound"
