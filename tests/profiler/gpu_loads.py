"""A described GPU of two SMs, and workloads for it."""

from __future__ import annotations

from profiles import GpuSettings, Minibatch, PacedWorkload, TestbedDescription, TrafficProfile, Workload
from tests.profiler.toy_testbed import description

TRAFFIC = TrafficProfile(1000, 512)
GPU = {"model": "toy-gpu", "cores": 3, "kind": "gpu", "sms": 2, "executors_per_sm": 4, "packets_per_executor": 32}


def gpu_description(**changes: object) -> TestbedDescription:
    """Two SMs of four executors, each for 32 packets; three workers, one NF."""
    nfs = [{"name": "counter", "cores": 1, "moves": "header"}]
    return description(**({"nic": GPU, "nfs": nfs, "benches": [], "workers": 2, "arbitration": "sporadic"} | changes))


def paced(
    minibatches: dict[int, int], *, order: int | None = 0, batch: int | None = None, rate_kpps: float = 100.0
) -> PacedWorkload:
    """An NF with these packets per SM; the batch is their sum unless given."""
    split = tuple(Minibatch(sm, packets) for sm, packets in minibatches.items())
    return PacedWorkload(
        Workload("counter", TRAFFIC), rate_kpps, GpuSettings(batch or sum(minibatches.values()), order, split)
    )


def scheduled(batch: int, scheduler: str | None = None) -> PacedWorkload:
    """An NF whose threads the scheduler of the GPU places."""
    return PacedWorkload(Workload("counter", TRAFFIC), 100.0, GpuSettings(batch, None, (), None, scheduler))
