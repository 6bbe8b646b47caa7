"""Workloads with a rate that is offered to them, and the latency that their packets are promised."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from profiles import TrafficProfile, Workload


@dataclass(frozen=True)
class OfferedWorkload(Workload):
    """A network function under a traffic profile, at an offered rate.

    Rate and promise belong to what runs: a GPU chooses batch, order and minibatches by them. Among plain workloads it
    is sorted behind the one of the same NF and traffic.

    Parameters
    ----------
    rate_kpps
        What arrives, in thousands of packets per second.
    latency_us
        What 99 of 100 packets must stay within; infinite where nothing is promised.
    """

    __slots__ = ("latency_us", "rate_kpps")

    rate_kpps: float
    latency_us: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.nf, self.traffic, self.rate_kpps, self.latency_us)))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __reduce__(self) -> tuple[type[Workload], tuple[str, TrafficProfile]]:
        return OfferedWorkload, (self.nf, self.traffic, self.rate_kpps, self.latency_us)  # type: ignore[return-value]

    @property
    def plain(self) -> Workload:
        """The workload at as many packets as it takes."""
        return Workload(self.nf, self.traffic)

    @property
    def promises_latency(self) -> bool:
        """Whether its packets are promised a latency."""
        return self.latency_us < inf

    def __lt__(self, other: Workload) -> bool:
        return sort_key(self) < sort_key(other)

    def __le__(self, other: Workload) -> bool:
        return sort_key(self) <= sort_key(other)

    def __gt__(self, other: Workload) -> bool:
        return sort_key(self) > sort_key(other)

    def __ge__(self, other: Workload) -> bool:
        return sort_key(self) >= sort_key(other)


def offered_of(workload: Workload, rate_kpps: float | None, latency_us: float | None) -> Workload:
    """The workload at this rate with this promise; unchanged without a rate."""
    if rate_kpps is None:
        return workload
    return OfferedWorkload(workload.nf, workload.traffic, rate_kpps, inf if latency_us is None else latency_us)


def plain_of(workload: Workload) -> Workload:
    """The workload without rate and promise."""
    return workload.plain if isinstance(workload, OfferedWorkload) else workload


def promised_us(workload: Workload) -> float:
    """The latency that its packets are promised, us; infinite for none."""
    return workload.latency_us if isinstance(workload, OfferedWorkload) else inf


def sort_key(workload: Workload) -> tuple[str | float, ...]:
    """By which workloads are sorted: NF, traffic, rate and promise."""
    if isinstance(workload, OfferedWorkload):
        return workload.nf, *workload.traffic.as_tuple(), workload.rate_kpps, workload.latency_us
    return workload.nf, *workload.traffic.as_tuple(), 0.0, 0.0
