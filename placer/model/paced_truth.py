"""The ground truth where latency is promised: NFs run on a testbed at the rates that are offered to them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from placer.model.gpu_oracle import GpuOracle
from placer.model.latency_oracle import misses_latency
from placer.model.offered import OfferedWorkload, promised_us
from placer.model.oracle import CoLocation, Oracle, TestbedOracle
from profiler.testbed import Measurement, Testbed
from profiles import Workload
from profiles.gpu import GpuSettings
from profiles.workload import Load, PacedWorkload

CARRIED = 0.99
"""The share of the offered packets that must leave, for the rate to count: a run ends with packets on their way."""


class PacedTruth(Oracle):
    """What a testbed measures, noise-free where it can be.

    Throughput is measured as elsewhere, with every NF as fast as it goes; on a GPU, where all have their rates, it is
    what leaves. Latency is measured in a run where those that are promised one have their rates, and the others are as
    fast as they go.

    Parameters
    ----------
    testbed
        Of the kind.
    gpu
        What its admission test says, where the kind is one of GPUs: how each NF runs.
    """

    def __init__(self, testbed: Testbed, gpu: GpuOracle | None = None) -> None:
        super().__init__()
        self.testbed = testbed
        self.gpu = gpu
        self._closed_loop = TestbedOracle(testbed)
        self._latencies: dict[CoLocation, tuple[float | None, ...]] = {}

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        kpps = self._closed_loop.throughput(co_locations) if self.gpu is None else [()] * len(co_locations)
        return [self._kpps(co_location, fast) for co_location, fast in zip(co_locations, kpps, strict=True)]

    def _kpps(self, co_location: CoLocation, as_fast: Sequence[float]) -> list[float]:
        """The throughput that counts of each; a GPU cannot run what its admission test rejects."""
        if self.gpu is None and all(promised_us(workload) == inf for workload in co_location):
            return list(as_fast)
        if self.gpu is not None and not self.gpu.schedule(co_location).keeps_all:
            self._latencies[co_location] = (None,) * len(co_location)
            return [0.0] * len(co_location)
        run = self.testbed.run(self._loads(co_location), noise=False)
        found = run.measurements
        self._latencies[co_location] = tuple(one.latency_us.p99 if one.latency_us else None for one in found)
        return [
            _counts(workload, measured, fast)
            for workload, measured, fast in zip(co_location, found, as_fast or [inf] * len(found), strict=True)
        ]

    def _loads(self, co_location: CoLocation) -> list[Load]:
        settings: Sequence[GpuSettings | None] = [None] * len(co_location)
        if self.gpu is not None:
            settings = [one.settings for one in self.gpu.schedule(co_location).workloads]
        return [
            PacedWorkload(workload.plain, workload.rate_kpps, of_gpu)
            if isinstance(workload, OfferedWorkload) and (of_gpu or workload.promises_latency)
            else workload
            for workload, of_gpu in zip(co_location, settings, strict=True)
        ]

    def latency(self, co_location: CoLocation) -> tuple[float | None, ...]:
        self.throughput([co_location])
        return self._latencies.get(co_location, (None,) * len(co_location))


def _counts(workload: Workload, measured: Measurement, as_fast: float) -> float:
    """The throughput (kpps) that counts of a workload that reaches `as_fast` in a closed loop, infinite on a GPU."""
    if not isinstance(workload, OfferedWorkload):
        return as_fast
    if misses_latency(workload, measured.latency_us.p99 if measured.latency_us else None):
        return 0.0
    if measured.throughput_kpps < CARRIED * workload.rate_kpps:
        return min(measured.throughput_kpps, as_fast)
    return workload.rate_kpps if as_fast == inf else as_fast
