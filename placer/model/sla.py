"""Service level agreements: the largest throughput drop, or the smallest throughput, that an NF instance accepts.

And the kinds of latency SLA, which are part of its workload.
"""

from dataclasses import dataclass
from math import inf

from profiles import Workload
from profiles.workload import P99

SLA_TOLERANCE = 1e-9
"""Relative tolerance of every comparison of a throughput with an SLA, so that rounding decides nothing."""

OFFERED_TOLERANCE = 0.005
"""The same of instances at an offered rate: a run that ends loses packets that are on their way."""

LEAST_KPPS = 1e-9
"""Every SLA requires more than nothing: an oracle answers 0 where packets miss the latency that they are promised."""


@dataclass(frozen=True, slots=True)
class LatencySla:
    """A kind of latency SLA. `column`: its column in a trace. `statistic`: what it limits of the latency of packets, by
    its name in the testbed protocol. `name`: what messages call that."""

    column: str
    statistic: str
    name: str

    @property
    def figure(self) -> str:
        """What columns of results call the latency that it limits, us."""
        return self.column.removeprefix("sla_")


LATENCY_SLAS = (LatencySla("sla_latency_us", P99, "latency"), LatencySla("sla_mean_latency_us", "mean", "mean latency"))
"""The first is that of running fleets and GPUs."""


def latency_sla_of(workload: Workload) -> LatencySla:
    """The kind of latency SLA of a workload that is promised a latency."""
    return next(kind for kind in LATENCY_SLAS if kind.statistic == workload.latency_statistic)


@dataclass(frozen=True, slots=True)
class Sla:
    """The lowest throughput that an NF instance must keep in any co-location. `max_drop`: largest allowed throughput
    drop against running alone on the same NIC model, as a fraction in [0, 1); of an instance at an offered rate, the
    largest share of that which may be lost. `min_kpps`: smallest allowed throughput. Exactly one of the two is
    given."""

    max_drop: float | None = None
    min_kpps: float | None = None

    def __post_init__(self) -> None:
        if (self.max_drop is None) == (self.min_kpps is None):
            raise ValueError(
                f"An SLA is a drop or a throughput, got max_drop={self.max_drop}, min_kpps={self.min_kpps}."
            )

    def scale(self, factor: float) -> "Sla":
        """The SLA for a load that is so many times as large."""
        return self if self.min_kpps is None else Sla(min_kpps=self.min_kpps * factor)

    def required_kpps(self, solo_kpps: float, offered_kpps: float = inf) -> float:
        """The least throughput (kpps) that is acceptable, tolerance included, where running alone gives `solo_kpps`.

        `offered_kpps` is what is offered to the instance; infinite for more than it can carry.
        """
        reference, tolerance = solo_kpps, SLA_TOLERANCE
        if offered_kpps < inf:
            reference, tolerance = offered_kpps, OFFERED_TOLERANCE
        floor = self.min_kpps if self.min_kpps is not None else (1.0 - (self.max_drop or 0.0)) * reference
        return max(floor * (1.0 - tolerance), LEAST_KPPS)
