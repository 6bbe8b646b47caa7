"""Curves of latency against utilisation: fitted ones of users, and what training learned of an NF."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from placer.model.offered import OfferedWorkload
from predictor.latency.nf_latency import NfLatency
from profiles import TrafficProfile

REMEMBERED = 4096
"""Curves of an NF that are kept."""


@dataclass(frozen=True)
class SteppedCurve:
    """A curve that never falls: at each utilisation, its value at the next point.

    Parameters
    ----------
    utilisations, latencies_us
        Ascending; a latency holds from the utilisation before to its own.
    """

    utilisations: tuple[float, ...]
    latencies_us: tuple[float, ...]

    def latency_us(self, utilisation: float) -> float:
        """The latency; infinite beyond the last point."""
        after = bisect_left(self.utilisations, utilisation)
        return self.latencies_us[after] if after < len(self.latencies_us) else inf

    def utilisation(self, latency_us: float) -> float:
        """The largest utilisation up to which the latency is kept; 0 where there is none."""
        within = bisect_right(self.latencies_us, latency_us)
        return self.utilisations[within - 1] if within else 0.0


@dataclass(frozen=True)
class FittedLatency:
    """One curve for whatever traffic and neighbours, whose errors are not known."""

    curve: SteppedCurve

    def latency_us(self, workload: OfferedWorkload, kpps: float, risk: float | None = None) -> float:
        """As of `LatencyCurve`."""
        return self.curve.latency_us(workload.rate_kpps / kpps)

    def least_kpps(self, workload: OfferedWorkload, risk: float | None = None) -> float:
        """As of `LatencyCurve`."""
        return _least(workload, self.curve)


class TrainedLatency:
    """What training learned of an NF: a curve for each traffic, rate and risk."""

    def __init__(self, model: NfLatency) -> None:
        self._model = model
        self._curve = lru_cache(REMEMBERED)(self._stepped)

    def latency_us(self, workload: OfferedWorkload, kpps: float, risk: float | None = None) -> float:
        """As of `LatencyCurve`."""
        return self._curve(workload.traffic, workload.rate_kpps, risk).latency_us(workload.rate_kpps / kpps)

    def least_kpps(self, workload: OfferedWorkload, risk: float | None = None) -> float:
        """As of `LatencyCurve`."""
        return _least(workload, self._curve(workload.traffic, workload.rate_kpps, risk))

    def _stepped(self, traffic: TrafficProfile, rate_kpps: float, risk: float | None) -> SteppedCurve:
        used, latencies = self._model.p99_curve(traffic, rate_kpps, risk)
        return SteppedCurve(tuple(used.tolist()), tuple(latencies.tolist()))


def _least(workload: OfferedWorkload, curve: SteppedCurve) -> float:
    utilisation = curve.utilisation(workload.latency_us)
    return workload.rate_kpps / utilisation if utilisation > 0 else inf
