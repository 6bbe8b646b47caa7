"""The GPU of `placer admit --models`: a device with an NF for each rate and promise, each right for its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from placer.gpu.device import GpuDevice
from placer.gpu.slo import LatencySlo
from placer.inputs.slos import device_of
from predictor.gpu.device import LONGEST_US, DeviceEntry
from predictor.gpu.models import GpuModels


def described_by(models: GpuModels, slos: Sequence[LatencySlo]) -> tuple[GpuDevice, list[LatencySlo]]:
    """The GPU at default traffic, and the SLOs with the names that its NFs have there.

    A conservative latency in the form of a device is closer to the models the fewer rates and latencies it covers.

    Parameters
    ----------
    models
        Of every NF of the SLOs.
    slos
        As they were read.
    """
    named = [replace(slo, nf=f"{slo.nf} at {slo.rate_kpps:g} kpps in {slo.latency_us:g} us") for slo in slos]
    entries = {
        name.nf: DeviceEntry(
            slo.nf, models.default_traffic, (slo.rate_kpps, slo.rate_kpps), min(slo.latency_us, LONGEST_US)
        )
        for name, slo in zip(named, slos, strict=True)
    }
    return device_of(models.device_with(entries), "models"), named
