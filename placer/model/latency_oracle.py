"""Latency on NICs and servers: promised where a curve over utilisation is known, and measured where a testbed does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Protocol

from placer.model.offered import OfferedWorkload, plain_of, promised_us
from placer.model.oracle import CoLocation, Oracle, as_plain
from profiles import Workload

LATENCY = "latency"
"""The bottleneck of a workload that keeps its throughput and not its latency."""


class LatencyCurve(Protocol):
    """The latency of an NF against its utilisation: the offered rate, as a share of its throughput in a co-location.

    Where it estimates its errors, the longer the latency the smaller `risk` is, the probability that it is exceeded.
    """

    def latency_us(self, workload: OfferedWorkload, kpps: float, risk: float | None = None) -> float:
        """What 99 of 100 packets stay within where the NF could have this throughput (kpps).

        Infinite at utilisations beyond what was measured.
        """

    def least_kpps(self, workload: OfferedWorkload, risk: float | None = None) -> float:
        """The smallest throughput at which the promised latency is kept; infinite where there is none."""


class LatencyOracle(Oracle):
    """The throughputs of another oracle, 0 where a workload misses the latency that it is promised.

    An NF is slowed down by its neighbours, so the same rate uses more of what is left to it. What latency follows from
    that utilisation is taken to be the same, whatever the neighbours.

    Parameters
    ----------
    oracle
        The throughputs.
    curves
        By NF.
    risk
        The probability that a latency is exceeded, beside what the throughputs risk; None: the median prediction.
    """

    def __init__(self, oracle: Oracle, curves: Mapping[str, LatencyCurve], risk: float | None = None) -> None:
        super().__init__()
        self.oracle = oracle
        self.curves = curves
        self.risk = risk

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        answers = self.oracle.throughput([as_plain(co_location) for co_location in co_locations])
        return [
            [
                0.0 if misses_latency(workload, self._latency(workload, kpps)) else kpps
                for workload, kpps in zip(co_location, answer, strict=True)
            ]
            for co_location, answer in zip(co_locations, answers, strict=True)
        ]

    def latency(self, co_location: CoLocation) -> tuple[float | None, ...]:
        answer = self.oracle.throughput([as_plain(co_location)])[0]
        return tuple(self._latency(workload, kpps) for workload, kpps in zip(co_location, answer, strict=True))

    def _latency(self, workload: Workload, kpps: float) -> float | None:
        """The latency of a workload that has this throughput; None where it is not known."""
        if not isinstance(workload, OfferedWorkload):
            return None
        if workload.nf not in self.curves:
            return inf if workload.promises_latency else None
        return self.curves[workload.nf].latency_us(workload, kpps, self.risk) if kpps > 0 else inf

    def bottleneck(self, co_location: CoLocation, workload: Workload) -> str:
        if self.by_workload(co_location)[workload] == 0 and workload != plain_of(workload):
            return LATENCY
        return self.oracle.bottleneck(as_plain(co_location), plain_of(workload))


def least_kpps(workload: Workload, curves: Mapping[str, LatencyCurve], risk: float | None = None) -> float:
    """The throughput that the workload must be able to have for its promised latency; 0 without a promise."""
    if not isinstance(workload, OfferedWorkload) or not workload.promises_latency:
        return 0.0
    return curves[workload.nf].least_kpps(workload, risk) if workload.nf in curves else inf


def promised_latencies(oracle: Oracle, co_location: CoLocation) -> dict[Workload, float | None]:
    """The latency of each workload that is promised one, us; of equal ones the longest, None where it is not known."""
    found: dict[Workload, float | None] = {}
    if any(promised_us(workload) < inf for workload in co_location):
        for workload, latency in zip(co_location, oracle.latency(co_location), strict=True):
            if promised_us(workload) < inf:
                found[workload] = longer(latency, found.get(workload, 0.0))
    return found


def longer(one: float | None, other: float | None) -> float | None:
    """The longer of two latencies; None where either is not known."""
    return None if one is None or other is None else max(one, other)


def misses_latency(workload: Workload, latency_us: float | None) -> bool:
    """Whether a latency is above what is promised; false where it is not known."""
    return latency_us is not None and latency_us > promised_us(workload)
