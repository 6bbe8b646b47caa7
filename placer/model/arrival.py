"""An arrival: an NF instance that needs a NIC from some time on."""

from __future__ import annotations

from dataclasses import dataclass

from placer.model.fleet import Tenant
from placer.model.sla import Sla
from profiles import Workload


@dataclass(frozen=True, slots=True)
class Arrival:
    """An NF instance that is to be placed.

    Parameters
    ----------
    id
        The instance.
    time
        When it arrives, seconds.
    workload
        What it runs; with a rate that is offered, and the latency that its packets are promised, an `OfferedWorkload`.
    sla
        Its SLA.
    departure
        When it leaves, seconds; None for never.
    """

    id: str
    time: float
    workload: Workload
    sla: Sla
    departure: float | None = None

    @property
    def tenant(self) -> Tenant:
        """The instance as a tenant of a NIC."""
        return Tenant(self.id, self.workload, self.sla)
