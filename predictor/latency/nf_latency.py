"""The latency of one NF: the law, the NF's own factor, and how far predictions are from measurements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.gpu.latency_errors import LatencyErrors
from predictor.latency.law import LatencyLaw
from profiles import TrafficProfile

Array = NDArray[np.float64]

COVERAGE = 0.9
"""Of intervals."""
STEPS, IDLE_STEPS = 240, 60
"""Utilisations of a curve, from the least measured one up and below it."""
IDLE = 1e-4
"""The smallest utilisation of a curve."""


@dataclass(frozen=True)
class PredictedLatency:
    """Mean and p99 of the latency of an NF's packets, us, each with the ends of its 90 % interval."""

    mean_us: float
    p99_us: float
    mean_interval: tuple[float, float] | None
    p99_interval: tuple[float, float] | None


@dataclass(frozen=True)
class NfLatency:
    """The latency model of an NF.

    Parameters
    ----------
    law
        What it shares with the other NFs.
    factors
        By which its mean and its p99 are above the law's.
    errors
        Logarithms of measured over predicted latencies at left-out settings, by utilisation.
    settings
        Co-locations in which the NF itself was measured.
    """

    law: LatencyLaw
    factors: tuple[float, float]
    errors: LatencyErrors
    settings: int

    def predict(self, traffic: TrafficProfile, rate_kpps: float, capacity_kpps: float) -> PredictedLatency | None:
        """The latency at a rate, where the NF could have a throughput of `capacity_kpps` in its co-location.

        None beyond the utilisation up to which traffic of this kind was carried.
        """
        used = rate_kpps / capacity_kpps if capacity_kpps > 0 else np.inf
        if used > self.law.most(traffic):
            return None
        mean, p99 = (self._packets(traffic, np.array([used]))[0] * 1e3 / capacity_kpps).tolist()
        return PredictedLatency(
            mean,
            p99,
            *(self.errors.interval(what, value, used, COVERAGE) for what, value in (("mean", mean), ("p99", p99))),
        )

    def p99_curve(self, traffic: TrafficProfile, rate_kpps: float, risk: float | None = None) -> tuple[Array, Array]:
        """The p99 at a rate against utilisation: the smaller the throughput that is left, the longer.

        Parameters
        ----------
        traffic, rate_kpps
            Of the packets.
        risk
            The share of measured p99s that are above, for predictions of similar utilisation; None: the prediction.

        Returns
        -------
        utilisations, latencies_us
            Rising, and never falling; the last utilisation is the largest that is predicted.
        """
        least, most = self.law.least, self.law.most(traffic)
        used = np.concatenate([
            np.geomspace(IDLE, least, IDLE_STEPS, endpoint=False),
            1.0 - np.geomspace(1.0 - least, 1.0 - most, STEPS) if most > least else [least],
        ])  # fmt: skip
        latencies = self._packets(traffic, used)[:, 1] * 1e3 * used / rate_kpps
        if risk is not None:
            latencies *= self.errors.exceeded("p99", used, risk)
        return used, np.maximum.accumulate(latencies)

    def _packets(self, traffic: TrafficProfile, used: Array) -> Array:
        value: Array = self.law.packets(traffic, used) * self.factors
        return value
