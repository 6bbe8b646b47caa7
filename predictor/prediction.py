"""What a predictor returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prediction:
    """The throughput of one workload in its co-location, with its parts.

    Parameters
    ----------
    throughput_kpps
        In this co-location.
    solo_kpps
        Alone on the NIC.
    drops
        Per resource, the drop of throughput (kpps) that contention for it alone would cause.
    bottleneck
        The resource that limits throughput: `cpu`, `memory` or the accelerator's name.
    low_kpps, high_kpps
        Ends of the prediction interval; None when the models hold none.
    extrapolated
        Whether the traffic lies outside what was measured.
    calibrated
        Whether measured co-runs corrected the prediction.
    """

    throughput_kpps: float
    solo_kpps: float
    drops: Mapping[str, float]
    bottleneck: str
    low_kpps: float | None = None
    high_kpps: float | None = None
    extrapolated: bool = False
    calibrated: bool = False


@dataclass(frozen=True, slots=True)
class ResourceDemand:
    """The resources that a workload takes of a NIC when it runs alone.

    Parameters
    ----------
    cores
        Dedicated cores.
    wss_mb
        Working set, MB.
    accelerators
        Per accelerator, the share of its time, between 0 and 1.
    """

    cores: int
    wss_mb: float
    accelerators: Mapping[str, float]
