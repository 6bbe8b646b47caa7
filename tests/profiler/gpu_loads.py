"""A described GPU of two SMs, and workloads for it and for the simulated GPU."""

from collections.abc import Sequence

from profiles import GpuSettings, GpuWorkload, Minibatch, TestbedDescription, TrafficProfile, Workload
from tests.profiler.toy_testbed import description

TRAFFIC = TrafficProfile(1000, 512)
GPU = {"model": "toy-gpu", "cores": 3, "kind": "gpu", "sms": 2, "executors_per_sm": 4, "packets_per_executor": 32}


def gpu_description(**changes: object) -> TestbedDescription:
    """Two SMs of four executors, each for 32 packets; three workers, one NF."""
    nfs = [{"name": "counter", "cores": 1, "moves": "header"}]
    return description(**({"nic": GPU, "nfs": nfs, "benches": [], "workers": 2, "arbitration": "sporadic"} | changes))


def paced(
    minibatches: dict[int, int], *, order: int | None = 0, batch: int | None = None, rate_kpps: float = 100.0
) -> GpuWorkload:
    """An NF with these packets per SM; the batch is their sum unless given."""
    split = tuple(Minibatch(sm, packets) for sm, packets in minibatches.items())
    return GpuWorkload(
        Workload("counter", TRAFFIC, rate_kpps), GpuSettings(batch or sum(minibatches.values()), order, split)
    )


def scheduled(batch: int, scheduler: str | None = None) -> GpuWorkload:
    """An NF whose threads the scheduler of the GPU places."""
    return GpuWorkload(Workload("counter", TRAFFIC, 100.0), GpuSettings(batch, None, (), None, scheduler))


USUAL_TRAFFIC = TrafficProfile(16_000, 850, 100)
FOUR = ("IPRouter", "ACL", "NIDS", "IPSec")


def on_sms(
    nf: str,
    minibatches: Sequence[tuple[int, int]] = ((0, 256),),
    *,
    order: int | None = 0,
    rate_kpps: float = 294.0,
    flush_us: float | None = None,
    traffic: TrafficProfile = USUAL_TRAFFIC,
) -> GpuWorkload:
    """The NF with these (SM, packets)."""
    settings = GpuSettings.of(minibatches, order=order, flush_us=flush_us)
    return GpuWorkload(Workload(nf, traffic, rate_kpps), settings)


def at_two_gbps(nf: str, scheduler: str, batch: int = 256, traffic: TrafficProfile = USUAL_TRAFFIC) -> GpuWorkload:
    """The NF at 2 Gb/s, as the scheduler of the GPU places it."""
    rate_kpps = 2e6 / 8 / traffic.packet_size
    return GpuWorkload(Workload(nf, traffic, rate_kpps), GpuSettings(batch, None, (), None, scheduler))


def crowd(number: int, *, sharers: int = 3, ordered: bool = True, rate_kpps: float = 294.0) -> list[GpuWorkload]:
    """So many NFs of all four kinds, some of which share SMs; later ones have smaller orders."""
    return [
        on_sms(
            FOUR[at % 4],
            [(at // sharers, 200), (at // sharers + 1, 56)],
            order=number - at if ordered else None,
            rate_kpps=rate_kpps,
        )
        for at in range(number)
    ]
