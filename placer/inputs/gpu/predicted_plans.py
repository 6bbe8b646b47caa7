"""The latency of whole plans as models of a GPU server predict it, with a margin for their errors."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from placer.gpu.device import GpuDevice
from placer.gpu.plan import Admitted, LatencySlo
from placer.inputs.gpu.slos import device_of
from predictor.gpu.device import LONGEST_US, DeviceEntry
from predictor.gpu.models import GpuModels
from predictor.gpu.prediction import Overload
from profiles import GpuSettings, GpuWorkload, TrafficProfile, Workload

KEPT_PREDICTIONS = 0.99  # the share of promises that are to be kept at a predicted latency


class PredictedPlans:
    """A `PlanLatencies` of models: the p99 that is exceeded in 1 of 100 co-locations. `models`: of the server. `nfs`:
    the modelled NF of each SLO, by its id; None: `LatencySlo.nf` names it."""

    def __init__(self, models: GpuModels, nfs: Mapping[str, str] | None = None) -> None:
        self.models = models
        self.nfs = nfs

    def p99_us(self, plan: Sequence[Admitted]) -> Sequence[float]:
        """As of `PlanLatencies`; infinite beyond what was measured, too."""
        loads = [self._load(running) for running in plan]
        if any(self.models.check(load) for load in loads):
            return [inf] * len(plan)
        try:
            predicted = self.models.predict(loads)
        except Overload:
            return [inf] * len(plan)
        kept = [self.models.errors.kept_p99(latency.p99_us, latency.mean_us, KEPT_PREDICTIONS) for latency in predicted]
        return [p99_us if p99_us is not None else inf for p99_us in kept]

    def _load(self, one: Admitted) -> GpuWorkload:
        return load_at_rate(one, self.nfs[one.slo.id] if self.nfs else one.slo.nf, self.models.default_traffic)


def load_at_rate(one: Admitted, nf: str, traffic: TrafficProfile) -> GpuWorkload:
    """What runs of an admitted SLO: this NF with this traffic."""
    settings = GpuSettings.of([(share.sm, share.packets) for share in one.minibatches], order=one.order)
    return GpuWorkload(Workload(nf, traffic, one.slo.rate_kpps), settings)


# The GPU of `placer admit --models`: a device with an NF for each rate and promise, each right for its own.


def describe_by(models: GpuModels, slos: Sequence[LatencySlo]) -> tuple[GpuDevice, list[LatencySlo]]:
    """The GPU at default traffic, and the SLOs with the names that its NFs have there. A conservative latency in the
    form of a device is closer to the models the fewer rates and latencies it covers. `models`: of every NF of the SLOs.
    `slos`: as they were read."""
    named = [replace(slo, nf=f"{slo.nf} at {slo.rate_kpps:g} kpps in {slo.latency_us:g} us") for slo in slos]
    entries = {
        name.nf: DeviceEntry(
            slo.nf, models.default_traffic, (slo.rate_kpps, slo.rate_kpps), min(slo.latency_us, LONGEST_US)
        )
        for name, slo in zip(named, slos, strict=True)
    }
    return device_of(models.device_with(entries), "models"), named
