"""An arrival: an NF instance that needs a NIC from some time on, or already runs on one."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from placer.model.fleet import Tenant
from placer.model.sla import Sla
from profiles import Workload


@dataclass(frozen=True, slots=True)
class Arrival:
    """An NF instance that is to be placed, or that already runs and stays where it is.

    Parameters
    ----------
    id
        The instance.
    time
        When it arrives, seconds; of an instance that already runs it has no effect.
    workload
        What it runs, with the rate that is offered to it and the latency that its packets are promised, if any.
    sla
        Its SLA.
    departure
        When it leaves, seconds; None for never.
    nic
        The NIC on which it already runs, from before the first arrival; None where it is to be placed.
    day
        Per part of the day, the share of its rate that is offered to it; empty for the whole rate all day.
    """

    id: str
    time: float
    workload: Workload
    sla: Sla
    departure: float | None = None
    nic: str | None = None
    day: tuple[float, ...] = ()

    @property
    def begins(self) -> float:
        """When its stay begins, seconds: at its arrival, or before all events."""
        return self.time if self.nic is None else -math.inf

    def required_kpps(self, solo_kpps: float) -> float:
        """As of `Tenant`."""
        return self.sla.required_kpps(solo_kpps, self.workload.rate_kpps)

    def is_met(self, throughput_kpps: float, solo_kpps: float) -> bool:
        """As of `Tenant`."""
        return throughput_kpps >= self.required_kpps(solo_kpps)

    @property
    def tenant(self) -> Tenant:
        """The instance as a tenant of a NIC."""
        return Tenant(self.id, self.workload, self.sla, day=self.day)


def have_loads(arrivals: Iterable[Arrival]) -> bool:
    """Whether an instance has an offered rate."""
    return any(not arrival.workload.is_saturated for arrival in arrivals)
