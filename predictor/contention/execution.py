"""How an NF uses cores and accelerators: its execution pattern, queues and service times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from predictor.contention.accelerators import AcceleratorUse, time_next_to_bench
from predictor.regression.compiled import compile_kernel
from profiles.arrays import Floats


@dataclass(frozen=True)
class Execution:
    """How an NF uses cores and accelerators, and the throughput that results."""

    pattern: Pattern
    uses: tuple[AcceleratorUse, ...] = ()

    def service_ms(self, traffic: Floats) -> Floats:
        """Service time per accelerator at each row of `traffic`, shape (N, accelerators)."""
        times = [use.service(traffic) for use in self.uses]
        return np.column_stack(times) if times else np.zeros((len(traffic), 0))

    def match_ms(self, traffic: Floats) -> Floats:
        """Time that matches take on all accelerators, at each row of `traffic`."""
        unmatched = traffic * np.array([1.0, 1.0, 0.0])
        total: Floats = (self.service_ms(traffic) - self.service_ms(unmatched)).sum(axis=1)
        return total

    def unqueued(self, base: Floats, traffic: Floats) -> Floats:
        """Throughput without queueing when the cores reach `base` with the least accelerator work.

        A pipeline's cores do not wait; in run to completion the time of every match is added (Tomur, equation 4).
        """
        if self.pattern == PIPELINE or not self.uses:
            return base
        rates: Floats = 1.0 / (1.0 / base + self.match_ms(traffic))
        return rates

    def drops(self, rate: Floats, traffic: Floats, competitor_ms: Floats, competitor_kpps: Floats) -> Floats:
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
            times[:, at] = time_next_to_bench(
                service[:, at], use.queues, competitor_ms[:, at], competitor_kpps[:, at], use.slice_ms
            )
        return drops_on_accelerators(self.pattern, rate, service, 1.0 / np.maximum(times, 1e-12))

    def throughput(self, base: Floats, traffic: Floats, competitor_ms: Floats, competitor_kpps: Floats) -> Floats:
        """Throughput when the cores reach `base` with the least accelerator work, shape (N,); the rest as `drops`."""
        rate = self.unqueued(base, traffic)
        if not self.uses:
            return rate
        return COMPOSITIONS[self.pattern](rate, self.drops(rate, traffic, competitor_ms, competitor_kpps))


# How the drops on single resources add up: by the NF's execution pattern (Tomur, section 4.2).


Pattern = Literal["pipeline", "run-to-completion"]
PIPELINE: Pattern = "pipeline"
RUN_TO_COMPLETION: Pattern = "run-to-completion"
EXECUTION_PATTERNS: tuple[Pattern, ...] = (PIPELINE, RUN_TO_COMPLETION)

SLOWEST_STAGE, ADDED_WAITS, SUMMED_DROPS = range(3)
"""How compiled code numbers the compositions."""


@dataclass(frozen=True)
class Composition:
    """A function of solo throughput and the drop on each resource alone to throughput.

    `number` is one of `SLOWEST_STAGE`, `ADDED_WAITS` and `SUMMED_DROPS`.
    """

    number: int

    def __call__(self, solo: Floats, drops: Floats) -> Floats:
        """Throughput, shape (N,), of solo throughput, shape (N,), and drops, shape (N, resources)."""
        throughput = np.empty(len(solo))
        _write_composed(self.number, solo, np.ascontiguousarray(drops), throughput)
        return throughput


COMPOSITIONS: dict[str, Composition] = {
    PIPELINE: Composition(SLOWEST_STAGE),
    RUN_TO_COMPLETION: Composition(ADDED_WAITS),
    "sum": Composition(SUMMED_DROPS),
    "min": Composition(SLOWEST_STAGE),
}
"""By name. The strawman `min`, the lowest of the single-resource predictions, equals the composition of a pipeline."""


@compile_kernel
def compose(composition, solo, drops):  # type: ignore[no-untyped-def]  # pragma: no cover - runs compiled
    """Throughput that these drops leave of `solo`.

    In a pipeline the slowest stage decides: T = T_solo - max(dT_k) (Tomur, equations 3 and 7). In run to completion
    every added wait counts: T = 1 / (sum_k 1/(T_solo - dT_k) - (r-1)/T_solo) (equations 4 and 7). The strawman adds
    every resource's loss (section 2.2).
    """
    if composition == SLOWEST_STAGE:
        largest = 0.0
        for drop in drops:
            largest = max(largest, drop)
        return solo - largest
    if composition == ADDED_WAITS:
        times = 0.0
        for drop in drops:
            times += 1.0 / (solo - drop)
        return 1.0 / (times - (len(drops) - 1) / solo)
    total = 0.0
    for drop in drops:
        total += drop
    return max(solo - total, 0.0)


@compile_kernel
def _write_composed(composition, solo, drops, throughput):  # type: ignore[no-untyped-def]  # pragma: no cover
    for row in range(len(solo)):
        throughput[row] = compose(composition, solo[row], drops[row])


def drops_on_accelerators(pattern: Pattern, rate: Floats, service_ms: Floats, limited: Floats) -> Floats:
    """The drop that contention for each accelerator alone causes to an NF that runs at `rate` without it.

    Parameters
    ----------
    pattern
        The execution pattern.
    rate
        Throughput (kpps) without that contention, shape (N,).
    service_ms, limited
        Service time, and throughput if only that accelerator limited it (inf where it is not used); shape (N,
        accelerators).
    """
    drops = np.empty(limited.shape)
    _write_drops(pattern == PIPELINE, rate, service_ms, limited, drops)
    return drops


@compile_kernel
def drop_on_accelerator(staged, rate, service_ms, limited):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The drop from `rate` of one NF on one accelerator.

    A pipeline drops to the accelerator's limit. In run to completion every packet waits in the accelerator's queues,
    by the time that the limit implies beyond the service time.
    """
    if staged:
        return max(rate - limited, 0.0)
    wait = 0.0 if limited == np.inf else max(1.0 / limited - service_ms, 0.0)
    return rate - 1.0 / (1.0 / rate + wait)


@compile_kernel
def _write_drops(staged, rate, service_ms, limited, drops):  # type: ignore[no-untyped-def]  # pragma: no cover
    for row in range(drops.shape[0]):
        for at in range(drops.shape[1]):
            drops[row, at] = drop_on_accelerator(staged, rate[row], service_ms[row, at], limited[row, at])
