"""Readings: what instances did in production, each in the co-location that it ran in."""

from __future__ import annotations

from dataclasses import dataclass

from profiles import CoLocation, Workload

SATURATED = 1.02
"""How many times its throughput must be offered to an instance, at least, so that it is known to have lost packets."""


@dataclass(frozen=True, slots=True)
class ProductionReading:
    """What one instance did in one window.

    Parameters
    ----------
    nic_model
        The model of its NIC.
    co_location
        All workloads on the NIC, sorted.
    workload
        Its own.
    tenant
        Its id.
    kpps
        Its throughput.
    offered_kpps
        What was offered to it; None where that is not known.
    event
        The number of the event that brought it.
    below_sla
        Whether it is known to be below what the SLA of the tenant required.
    """

    nic_model: str
    co_location: CoLocation
    workload: Workload
    tenant: str
    kpps: float
    offered_kpps: float | None
    event: int
    below_sla: bool = False

    @property
    def is_capacity(self) -> bool:
        """Whether the instance did all it can; else its throughput is only a lower bound of that."""
        return self.offered_kpps is not None and self.offered_kpps >= SATURATED * self.kpps

    def is_below(self, required_kpps: float) -> bool | None:
        """Whether its throughput is below what its SLA requires; None unless at least that was offered."""
        if self.kpps >= required_kpps:
            return False
        return True if self.offered_kpps is not None and self.offered_kpps >= required_kpps else None


def competitors_of(co_location: CoLocation, workload: Workload) -> CoLocation:
    """The co-location without one instance of the workload."""
    at = co_location.index(workload)
    return co_location[:at] + co_location[at + 1 :]
