"""Everything that training finds of one NF, and what it makes of a contention that is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from predictor.accelerators import AcceleratorUse, beside_bench
from predictor.composition import PIPELINE, Pattern
from predictor.memory import MemoryModel
from predictor.solo import SoloModel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Execution:
    """How an NF's work on cores and accelerators makes its throughput."""

    pattern: Pattern
    uses: tuple[AcceleratorUse, ...] = ()

    def service_ms(self, traffic: Array) -> Array:
        """Service time per accelerator at each row of `traffic`, shape (N, accelerators)."""
        return (
            np.column_stack([use.service(traffic) for use in self.uses]) if self.uses else np.zeros((len(traffic), 0))
        )

    def without_contention(self, base: Array, traffic: Array) -> Array:
        """Throughput when the cores alone would reach `base` with the least accelerator work, before any queueing.

        A pipeline's cores do not wait; run to completion spends the time of every match on top (Tomur, equation 4).
        """
        if self.pattern == PIPELINE or not self.uses:
            return base
        return 1.0 / (1.0 / base + self.match_ms(traffic))

    def match_ms(self, traffic: Array) -> Array:
        """Time that matches take on all accelerators, at each row of `traffic`."""
        unmatched = traffic * [1.0, 1.0, 0.0]
        total: Array = (self.service_ms(traffic) - self.service_ms(unmatched)).sum(axis=1)
        return total

    def own_ms(self, reached: Array, traffic: Array) -> Array:
        """Time between two requests of one packet stream, per accelerator, shape (N, accelerators).

        A pipeline keeps its queues filled; run to completion comes back only when the packet is done.
        """
        service = self.service_ms(traffic)
        return service if self.pattern == PIPELINE else np.repeat(1.0 / reached[:, None], service.shape[1], axis=1)

    def compose(self, reached: Array, limited: Array) -> Array:
        """End-to-end throughput (Tomur, equation 7) of what the cores reach and what each accelerator allows.

        Parameters
        ----------
        reached
            `without_contention`, shape (N,).
        limited
            Throughput with contention on one accelerator only, shape (N, accelerators).
        """
        if not self.uses:
            return reached
        if self.pattern == PIPELINE:
            return np.minimum(reached, limited.min(axis=1))
        waits = 1.0 / limited - 1.0 / reached[:, None]
        rates: Array = 1.0 / (1.0 / reached + waits.sum(axis=1))
        return rates

    def throughput(self, base: Array, traffic: Array, competitor_ms: Array, competitor_kpps: Array) -> Array:
        """Throughput beside competitors known by their sum per accelerator, shape (N,).

        Parameters
        ----------
        base
            What the cores reach with the least accelerator work (kpps), shape (N,).
        traffic
            Shape (N, 3).
        competitor_ms, competitor_kpps
            As `beside_bench` takes them, shape (N, accelerators).
        """
        reached = self.without_contention(base, traffic)
        return self.compose(reached, self.limited(reached, traffic, competitor_ms, competitor_kpps))

    def limited(self, reached: Array, traffic: Array, competitor_ms: Array, competitor_kpps: Array) -> Array:
        """What each accelerator allows beside competitors known by their sum, shape (N, accelerators)."""
        own = self.own_ms(reached, traffic)
        times = [
            beside_bench(own[:, at], use.queues, competitor_ms[:, at], competitor_kpps[:, at])
            for at, use in enumerate(self.uses)
        ]
        return 1.0 / np.maximum(np.column_stack(times), 1e-12) if times else np.zeros((len(reached), 0))


@dataclass(frozen=True)
class NfModel:
    """One NF, as training found it.

    Parameters
    ----------
    name
        The NF.
    cores
        Dedicated cores; None when the profile does not say.
    execution
        Pattern, queues and service times.
    solo
        Alone on the NIC; None when the profile holds no solo runs.
    memory
        Under memory contention. With `solo`, the logarithm of the ratio to it; else of the throughput (kpps).
    measured
        Per traffic attribute, the range that was measured.
    evidence
        Mean absolute percentage error under each execution pattern that was tried, and on how many rows.
    """

    name: str
    cores: int | None
    execution: Execution
    solo: SoloModel | None
    memory: MemoryModel
    measured: Mapping[str, tuple[float, float]]
    evidence: Mapping[str, float] = field(default_factory=dict)

    def base_kpps(self, traffic: Array) -> Array:
        """Throughput alone with the least accelerator work."""
        if self.solo:
            return self.solo.kpps(traffic)
        rates: Array = np.exp(self.memory(np.zeros((len(traffic), 7)), traffic))
        return rates

    def solo_kpps(self, traffic: Array) -> Array:
        """Throughput alone on the NIC."""
        nothing = np.zeros((len(traffic), len(self.execution.uses)))
        return self.execution.throughput(self.base_kpps(traffic), traffic, nothing, nothing)

    def memory_share(self, counters: Array, traffic: Array, base: Array) -> Array:
        """Share of `base` that memory contention leaves, between 0 and 1."""
        logarithm = self.memory(counters, traffic)
        if not self.solo:
            logarithm = logarithm - np.log(base)
        share: Array = np.exp(np.minimum(logarithm, 0.0))
        return share

    @cached_property
    def accelerators(self) -> tuple[str, ...]:
        """Names of the accelerators it uses."""
        return tuple(use.name for use in self.execution.uses)
