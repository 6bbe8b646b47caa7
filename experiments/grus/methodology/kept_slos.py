"""SLOs that NFs keep on the simulated server: as Grus admits them, and as many as the GPU's own schedulers can keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from experiments.grus.methodology.simulated_server import latency_of, measure, stages_of
from experiments.grus.methodology.slo_sets import SET_TRAFFIC, SloCoLocation
from placer.gpu.plan import LatencySlo
from profiler.testbed import Measurement
from profiles import GpuSettings, PacedWorkload, Workload

SCHEDULER_OF_METHOD = {"g-net": "spatial", "baymax": "temporal"}
"""NFs side by side on SMs of their own, or one kernel at a time; transfers in no order."""
BATCHES_TRIED = (128, 192, 256)
"""Of the schedulers, the same for all SLOs; the best one counts."""
CARRIED_SHARE = 0.99
"""The share of the offered packets that must come back."""


class KeptSlos(NamedTuple):
    """How many SLOs run, how many of them are kept, and the rates of these, kpps."""

    admitted: int
    kept: int
    goodput_kpps: float


def judge_kept(co_location: SloCoLocation) -> KeptSlos:
    """Run what Grus admitted."""
    loads = co_location.loads
    if not loads:
        return KeptSlos(0, 0, 0.0)
    runs = zip(loads, co_location.slos_us, measure(loads), strict=True)
    rates = [load.rate_kpps for load, slo, one in runs if _is_kept(load, slo, one)]
    return KeptSlos(len(loads), len(rates), sum(rates))


def most_kept(slos: Sequence[LatencySlo], scheduler: str) -> KeptSlos:
    """The most SLOs found that a scheduler keeps all at once: as if its admission knew the server itself."""
    plans = [_all_kept(slos, scheduler, batch) for batch in BATCHES_TRIED]
    best = max(plans, key=len)
    return KeptSlos(len(best), len(best), sum(slo.rate_kpps for slo in best))


def _all_kept(slos: Sequence[LatencySlo], scheduler: str, batch: int) -> list[LatencySlo]:
    """Take away SLOs until the others are kept: the longest kernel first, as Moore and Hodgson do."""
    left = list(slos)
    while left:
        loads = [_load(slo, scheduler, batch) for slo in left]
        runs = measure(loads)
        if all(_is_kept(load, slo.latency_us, one) for load, slo, one in zip(loads, left, runs, strict=True)):
            break
        kernels = [stages_of(run).kernel for run in runs]
        del left[kernels.index(max(kernels))]
    return left


def _load(slo: LatencySlo, scheduler: str, batch: int) -> PacedWorkload:
    return PacedWorkload(Workload(slo.nf, SET_TRAFFIC), slo.rate_kpps, GpuSettings(batch, None, scheduler=scheduler))


def _is_kept(load: PacedWorkload, slo_us: float, one: Measurement) -> bool:
    return latency_of(one).p99 <= slo_us and one.throughput_kpps >= CARRIED_SHARE * load.rate_kpps
