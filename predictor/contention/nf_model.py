"""The model of one NF, and its throughput under given contention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from predictor.contention.accelerators import AcceleratorUse, time_next_to_bench
from predictor.contention.calibration import Calibration, Conditions
from predictor.contention.composition import COMPOSITIONS, PIPELINE, Composition, Pattern, drops_on_accelerators
from predictor.contention.intervals import ErrorModel
from predictor.contention.memory import WORKING_SET, MemoryModel, MemoryRuns
from predictor.contention.solo import SoloModel
from profiles import ATTRIBUTES, COUNTERS, TrafficProfile

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Execution:
    """How an NF uses cores and accelerators, and the throughput that results."""

    pattern: Pattern
    uses: tuple[AcceleratorUse, ...] = ()

    def service_ms(self, traffic: Array) -> Array:
        """Service time per accelerator at each row of `traffic`, shape (N, accelerators)."""
        times = [use.service(traffic) for use in self.uses]
        return np.column_stack(times) if times else np.zeros((len(traffic), 0))

    def match_ms(self, traffic: Array) -> Array:
        """Time that matches take on all accelerators, at each row of `traffic`."""
        unmatched = traffic * np.array([1.0, 1.0, 0.0])
        total: Array = (self.service_ms(traffic) - self.service_ms(unmatched)).sum(axis=1)
        return total

    def unqueued(self, base: Array, traffic: Array) -> Array:
        """Throughput without queueing when the cores reach `base` with the least accelerator work.

        A pipeline's cores do not wait; in run to completion the time of every match is added (Tomur, equation 4).
        """
        if self.pattern == PIPELINE or not self.uses:
            return base
        rates: Array = 1.0 / (1.0 / base + self.match_ms(traffic))
        return rates

    def drops(self, rate: Array, traffic: Array, competitor_ms: Array, competitor_kpps: Array) -> Array:
        """The drop that competitors on each accelerator alone cause to an NF that runs at `rate` without them.

        Parameters
        ----------
        rate
            In kpps, shape (N,).
        traffic
            Shape (N, 3).
        competitor_ms, competitor_kpps
            As `time_next_to_bench` takes them, shape (N, accelerators).

        Returns
        -------
        kpps
            Shape (N, accelerators).
        """
        service = self.service_ms(traffic)
        times = np.empty_like(service)
        for at, use in enumerate(self.uses):
            times[:, at] = time_next_to_bench(service[:, at], use.queues, competitor_ms[:, at], competitor_kpps[:, at])
        return drops_on_accelerators(self.pattern, rate, service, 1.0 / np.maximum(times, 1e-12))

    def throughput(self, base: Array, traffic: Array, competitor_ms: Array, competitor_kpps: Array) -> Array:
        """Throughput when the cores reach `base` with the least accelerator work, shape (N,); the rest as `drops`."""
        rate = self.unqueued(base, traffic)
        return COMPOSITIONS[self.pattern](rate, self.drops(rate, traffic, competitor_ms, competitor_kpps))


@dataclass(frozen=True)
class NfModel:
    """The model of one NF.

    Parameters
    ----------
    name
        The NF.
    cores
        Dedicated cores; None when the profile does not state them.
    execution
        Pattern, queues and service times.
    solo
        Alone on the NIC; None when the profile holds no solo runs.
    memory
        Under memory contention. With `solo`, the logarithm of the ratio to it; else of the throughput (kpps).
    measured
        Per traffic attribute, the range that was measured.
    evidence
        Mean absolute percentage error next to benches under each execution pattern that was tried.
    evidence_in_co_location
        The same of all NFs in measured co-locations, where benches did not distinguish the patterns.
    calibration
        Correction by measured co-runs; None when there are none, or they do not help.
    error_model
        How far predictions err.
    """

    name: str
    cores: int | None
    execution: Execution
    solo: SoloModel | None
    memory: MemoryModel
    measured: Mapping[str, tuple[float, float]]
    evidence: Mapping[str, float] = field(default_factory=dict)
    evidence_in_co_location: Mapping[str, float] = field(default_factory=dict)
    calibration: Calibration | None = None
    error_model: ErrorModel = field(default_factory=ErrorModel.unknown)

    @cached_property
    def accelerators(self) -> tuple[str, ...]:
        """Names of the accelerators it uses."""
        return tuple(use.name for use in self.execution.uses)

    def is_extrapolated(self, traffic: TrafficProfile) -> bool:
        """Whether the traffic lies outside what was measured."""
        values = traffic.as_dict()
        return any(not self.measured[name][0] <= values[name] <= self.measured[name][1] for name in ATTRIBUTES)

    def base_kpps(self, traffic: Array) -> Array:
        """Throughput alone with the least accelerator work."""
        if self.solo:
            return self.solo.kpps(traffic)
        return kpps_without_contention(self.memory, traffic, with_matches=not self.execution.uses)

    def solo_kpps(self, traffic: Array) -> Array:
        """Throughput alone on the NIC."""
        nothing = np.zeros((len(traffic), len(self.execution.uses)))
        return self.execution.throughput(self.base_kpps(traffic), traffic, nothing, nothing)

    def memory_share(self, runs: MemoryRuns, base: Array) -> Array:
        """Share of `base` that memory contention leaves, between 0 and 1."""
        logarithm = self.memory(runs)
        if not self.solo:
            logarithm = logarithm - np.log(base)
        share: Array = np.exp(np.minimum(logarithm, 0.0))
        return share

    def memory_runs(self, counters: Array, traffic: Array, own_wss: Array | None = None) -> MemoryRuns:
        """The inputs of the memory model for competitors with these counters; `own_wss` (MB) where already known."""
        return memory_runs(counters, traffic, self.solo, own_wss, with_matches=not self.execution.uses)

    def throughput(
        self,
        counters: Array,
        traffic: Array,
        competitor_ms: Array,
        competitor_kpps: Array,
        composition: Composition | None = None,
    ) -> Array:
        """Throughput under contention of which only the sums are known, shape (N,).

        Parameters
        ----------
        counters
            The competitors', shape (N, 7).
        traffic, competitor_ms, competitor_kpps
            As `Execution.drops` takes them.
        composition
            How drops on single resources are composed; by the NF's pattern when None.
        """
        solo = self.solo_kpps(traffic)
        drops = self.drops(counters, traffic, competitor_ms, competitor_kpps)
        return np.minimum((composition or COMPOSITIONS[self.execution.pattern])(solo, drops), solo)

    def drops(self, counters: Array, traffic: Array, competitor_ms: Array, competitor_kpps: Array) -> Array:
        """The drop that contention for memory, then for each accelerator, causes alone, shape (N, 1 + accelerators)."""
        solo, base = self.solo_kpps(traffic), self.base_kpps(traffic)
        share = self.memory_share(self.memory_runs(counters, traffic), base)
        memory = np.maximum(solo - self.execution.unqueued(base * share, traffic), 0.0)
        return np.column_stack([memory, self.execution.drops(solo, traffic, competitor_ms, competitor_kpps)])

    def conditions(self, traffic: Array, predicted: Array, competitor_ms: Array) -> Conditions:
        """The conditions of `predicted` throughput, shape (N,); the rest as `throughput` takes it."""
        own = self.execution.service_ms(traffic)
        return Conditions.of(traffic, predicted, self.solo_kpps(traffic), competitor_ms, own)


def memory_runs(
    counters: Array, traffic: Array, solo: SoloModel | None, own_wss: Array | None = None, *, with_matches: bool
) -> MemoryRuns:
    """The inputs of a memory model.

    Parameters
    ----------
    counters
        The competitors', shape (N, 7).
    traffic
        Shape (N, 3).
    solo
        From which the NF's own working set is computed; without it, that is taken as 0.
    own_wss
        The NF's own working set (MB) where already known, shape (N,).
    with_matches
        Whether the model depends on matches: where the NF uses accelerators, matches affect these, not memory.
    """
    if own_wss is None:
        own_wss = solo.own_counters(traffic)[:, WORKING_SET] if solo else np.zeros(len(traffic))
    return MemoryRuns(counters, traffic * np.array([1.0, 1.0, 1.0 if with_matches else 0.0]), own_wss)


def kpps_without_contention(memory: MemoryModel, traffic: Array, *, with_matches: bool = True) -> Array:
    """Throughput (kpps) without competitors, by a memory model that was trained without a solo model."""
    nothing = np.zeros((len(traffic), len(COUNTERS)))
    rates: Array = np.exp(memory(memory_runs(nothing, traffic, None, with_matches=with_matches)))
    return rates
