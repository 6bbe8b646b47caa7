"""How an NF uses cores and accelerators: its execution pattern, queues and service times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictor.contention.accelerators import AcceleratorUse, time_next_to_bench
from predictor.contention.composition import COMPOSITIONS, PIPELINE, Pattern, drops_on_accelerators

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
        if not self.uses:
            return rate
        return COMPOSITIONS[self.pattern](rate, self.drops(rate, traffic, competitor_ms, competitor_kpps))
