"""Latency on NICs and servers: promised where a curve over utilisation is known, and measured where a testbed does."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Protocol

from placer.model.gpu_oracle import GpuOracle, run_on_gpu
from placer.model.oracle import Oracle
from predictor.latency import LATENCY_STATISTICS, NfLatency
from profiler.testbed import Run, Testbed
from profiles import CoLocation, TrafficProfile, Workload
from profiles.workload import P99, GpuWorkload

LATENCY_BOTTLENECK = "latency"  # the bottleneck of a workload that keeps its throughput and not its latency


class LatencyCurve(Protocol):
    """The latency of an NF against its utilisation: the offered rate, as a share of its throughput in a co-location.

    Where it estimates its errors, the longer the latency the smaller `risk` is, the probability that it is exceeded.
    """

    @property
    def statistics(self) -> Collection[str]:
        """The statistics of latency that it knows."""

    def latency_us(self, workload: Workload, kpps: float, risk: float | None = None) -> float:
        """The statistic of the workload where the NF could have this throughput (kpps).

        Infinite at utilisations beyond what was measured.
        """

    def least_kpps(self, workload: Workload, risk: float | None = None) -> float:
        """The smallest throughput at which the promised latency is kept; infinite where there is none."""


class LatencyOracle(Oracle):
    """The throughputs of another oracle, 0 where a workload misses the latency that it is promised. An NF is slowed
    down by its neighbours, so the same rate uses more of what is left to it. What latency follows from that utilisation
    is taken to be the same, whatever the neighbours. `oracle`: the throughputs. `curves`: by NF. `risk`: the
    probability that a latency is exceeded, beside what the throughputs risk; None: the median prediction."""

    def __init__(self, oracle: Oracle, curves: Mapping[str, LatencyCurve], risk: float | None = None) -> None:
        super().__init__()
        self.oracle = oracle
        self.curves = curves
        self.risk = risk

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        answers = self.oracle.throughput(co_locations)
        return [
            [
                0.0 if misses_latency(workload, self._latency(workload, kpps)) else kpps
                for workload, kpps in zip(co_location, answer, strict=True)
            ]
            for co_location, answer in zip(co_locations, answers, strict=True)
        ]

    def latency(self, co_location: CoLocation) -> tuple[float | None, ...]:
        answer = self.oracle.throughput([co_location])[0]
        return tuple(self._latency(workload, kpps) for workload, kpps in zip(co_location, answer, strict=True))

    def _latency(self, workload: Workload, kpps: float) -> float | None:
        """The latency of a workload that has this throughput; None where it is not known."""
        if workload.is_saturated:
            return None
        if workload.latency_statistic not in _statistics(self.curves, workload.nf):
            return inf if workload.promises_latency else None
        return self.curves[workload.nf].latency_us(workload, kpps, self.risk) if kpps > 0 else inf

    def bottleneck(self, co_location: CoLocation, workload: Workload) -> str:
        if self.by_workload(co_location)[workload] == 0 and workload != workload.saturated:
            return LATENCY_BOTTLENECK
        return self.oracle.bottleneck(co_location, workload)


def least_kpps(workload: Workload, curves: Mapping[str, LatencyCurve], risk: float | None = None) -> float:
    """The throughput that the workload must be able to have for its promised latency; 0 without a promise."""
    if workload.is_saturated or not workload.promises_latency:
        return 0.0
    known = workload.latency_statistic in _statistics(curves, workload.nf)
    return curves[workload.nf].least_kpps(workload, risk) if known else inf


def known_latencies(curves: Mapping[str, LatencyCurve]) -> dict[str, frozenset[str]]:
    """By statistic of latency, the NFs whose curve knows it."""
    statistics = {statistic for curve in curves.values() for statistic in curve.statistics}
    return {statistic: frozenset(nf for nf in curves if statistic in curves[nf].statistics) for statistic in statistics}


def _statistics(curves: Mapping[str, LatencyCurve], nf: str) -> Collection[str]:
    return curves[nf].statistics if nf in curves else ()


def find_promised_latencies(oracle: Oracle, co_location: CoLocation) -> dict[Workload, float | None]:
    """The latency of each workload that is promised one, us; of equal ones the longest, None where it is not known."""
    found: dict[Workload, float | None] = {}
    if any(workload.promises_latency for workload in co_location):
        for workload, latency in zip(co_location, oracle.latency(co_location), strict=True):
            if workload.promises_latency:
                found[workload] = longer(latency, found.get(workload, 0.0))
    return found


def longer(one: float | None, other: float | None) -> float | None:
    """The longer of two latencies; None where either is not known."""
    return None if one is None or other is None else max(one, other)


def misses_latency(workload: Workload, latency_us: float | None) -> bool:
    """Whether a latency is above what is promised; false where it is not known."""
    return latency_us is not None and latency_us > workload.latency_us


# The ground truth where latency is promised: NFs run on a testbed at the rates that are offered to them.


CARRIED_SHARE = 0.99
"""The share of the offered packets that must leave, for the rate to count: a run ends with packets on their way."""


class PacedTruth(Oracle):
    """What a testbed measures, noise-free where it can be: throughput and latency of one run. NFs have the rates that
    are offered to them; the others are as fast as they go. `testbed`: of the kind. `gpu`: what its admission test says,
    where the kind is one of GPUs: how each NF runs."""

    def __init__(self, testbed: Testbed, gpu: GpuOracle | None = None) -> None:
        super().__init__()
        self.testbed = testbed
        self.gpu = gpu
        self._latencies: dict[CoLocation, tuple[float | None, ...]] = {}

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        if self.gpu is not None:
            return [self._on_gpu(self.gpu, co_location) for co_location in co_locations]
        runs = self.testbed.run_many([list(map(_without_promise, one)) for one in co_locations], noise=False)
        return [
            [
                0.0 if misses_latency(workload, latency) else measured.throughput_kpps
                for workload, measured, latency in zip(
                    co_location, run.measurements, self._note_latencies(co_location, run), strict=True
                )
            ]
            for co_location, run in zip(co_locations, runs, strict=True)
        ]

    def _on_gpu(self, gpu: GpuOracle, co_location: CoLocation) -> list[float]:
        """The throughput that counts of each; a GPU cannot run what its admission test rejects."""
        schedule = gpu.schedule(co_location)
        if not schedule.keeps_all:
            self._latencies[co_location] = (None,) * len(co_location)
            return [0.0] * len(co_location)
        loads = [
            GpuWorkload(_without_promise(workload), scheduled.settings) if scheduled.settings else workload
            for workload, scheduled in zip(map(run_on_gpu, co_location), schedule.workloads, strict=True)
        ]
        run = self.testbed.run(loads, noise=False)
        return [
            0.0
            if misses_latency(workload, latency)
            else measured.throughput_kpps
            if measured.throughput_kpps < CARRIED_SHARE * workload.rate_kpps
            else workload.rate_kpps
            for workload, measured, latency in zip(
                co_location, run.measurements, self._note_latencies(co_location, run), strict=True
            )
        ]

    def _note_latencies(self, co_location: CoLocation, run: Run) -> tuple[float | None, ...]:
        """The statistic of each, us; None where it was not measured."""
        found = self._latencies[co_location] = tuple(
            getattr(measured.latency_us, workload.latency_statistic) if measured.latency_us else None
            for workload, measured in zip(co_location, run.measurements, strict=True)
        )
        return found

    def latency(self, co_location: CoLocation) -> tuple[float | None, ...]:
        self.throughput([co_location])
        return self._latencies.get(co_location, (None,) * len(co_location))


def _without_promise(workload: Workload) -> Workload:
    """The workload as a testbed runs it, which knows no promises."""
    return replace(workload, latency_us=inf, latency_statistic=P99) if workload.promises_latency else workload


# Curves of latency against utilisation: fitted ones of users, and what training learned of an NF.


REMEMBERED_CURVES = 4096  # curves of an NF that are kept


@dataclass(frozen=True)
class SteppedCurve:
    """A curve that never falls: at each utilisation, its value at the next point. `utilisations`, `latencies_us`:
    ascending; a latency holds from the utilisation before to its own."""

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
    statistics: Collection[str] = (P99,)

    def latency_us(self, workload: Workload, kpps: float, risk: float | None = None) -> float:
        """As of `LatencyCurve`."""
        return self.curve.latency_us(workload.rate_kpps / kpps)

    def least_kpps(self, workload: Workload, risk: float | None = None) -> float:
        """As of `LatencyCurve`."""
        return _least(workload, self.curve)


class TrainedLatency:
    """What training learned of an NF: a curve for each statistic, traffic, rate and risk."""

    statistics: Collection[str] = LATENCY_STATISTICS

    def __init__(self, model: NfLatency) -> None:
        self._model = model
        self._curve = lru_cache(REMEMBERED_CURVES)(self._step)

    def latency_us(self, workload: Workload, kpps: float, risk: float | None = None) -> float:
        """As of `LatencyCurve`."""
        return self._curve_of(workload, risk).latency_us(workload.rate_kpps / kpps)

    def least_kpps(self, workload: Workload, risk: float | None = None) -> float:
        """As of `LatencyCurve`."""
        return _least(workload, self._curve_of(workload, risk))

    def _curve_of(self, workload: Workload, risk: float | None) -> SteppedCurve:
        return self._curve(workload.latency_statistic, workload.traffic, workload.rate_kpps, risk)

    def _step(self, statistic: str, traffic: TrafficProfile, rate_kpps: float, risk: float | None) -> SteppedCurve:
        used, latencies = self._model.curve(statistic, traffic, rate_kpps, risk)
        return SteppedCurve(tuple(used.tolist()), tuple(latencies.tolist()))


def _least(workload: Workload, curve: SteppedCurve) -> float:
    utilisation = curve.utilisation(workload.latency_us)
    return workload.rate_kpps / utilisation if utilisation > 0 else inf
