"""What a predictor answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prediction:
    """The throughput of one workload in its company, taken apart.

    Parameters
    ----------
    throughput_kpps
        In this company.
    solo_kpps
        Alone on the NIC. A baseline that extrapolates may expect more in company.
    drops
        Per resource, the throughput (kpps) that contention for it alone would cost.
    bottleneck
        The resource that binds: `cpu`, `memory` or the accelerator's name.
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
class Demand:
    """What a workload takes of a NIC when it runs alone.

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
