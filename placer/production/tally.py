"""Counts over a simulated production: who is below the SLA, what was measured of it, and which drifts were reported."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from placer.model.fleet import Nic, Tenant
from placer.model.oracle import CoLocation
from placer.online.events import Learned
from placer.production.outcome import DriftAlarm
from placer.production.truth import DriftingTruth
from profiles import Workload

Place = tuple[str, CoLocation, Workload]
"""A workload in a co-location on a NIC model."""


@dataclass
class SlaTally:
    """Who is below the SLA by the ground truth.

    Attributes
    ----------
    arrived
        Per placed instance, the event of its arrival.
    violated
        Instances that ever were below their SLA.
    now
        Those that are.
    """

    truth: DriftingTruth
    arrived: dict[str, int] = field(default_factory=dict)
    violated: set[str] = field(default_factory=set)
    now: set[str] = field(default_factory=set)
    _nics: dict[Place, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    _known: dict[Place, int] = field(default_factory=dict)

    def placed(self, tenant_id: str, event: int) -> None:
        """An instance was placed."""
        self.arrived[tenant_id] = event

    def left(self, tenant_id: str) -> None:
        """An instance departed."""
        self.now.discard(tenant_id)

    def judge(self, nics: Iterable[Nic], event: int) -> None:
        """Compare the tenants of NICs that changed, or whose NFs did, with their SLAs."""
        for nic in nics:
            reached = self.truth.throughput(nic, event)
            for tenant in nic.tenants:
                self._judge(tenant, nic, reached[tenant.workload], event)

    def measured(self, nic: Nic, learned: Learned) -> None:
        """A measurement showed who is below the SLA."""
        for one in learned.instances:
            if one.below_sla and one.id in self.now:
                place = _place(nic, nic.tenants_by_id[one.id])
                self._known.setdefault(place, len(self._nics[place]))

    def repeated(self) -> int:
        """Of the places that were measured below an SLA, the most NICs that violated there only afterwards."""
        return max((len(self._nics[place]) - before for place, before in self._known.items()), default=0)

    def _judge(self, tenant: Tenant, nic: Nic, kpps: float, event: int) -> None:
        solo = self.truth.solo(nic.kind, tenant.workload, event)
        if tenant.sla.is_met(kpps, solo):
            self.now.discard(tenant.id)
            return
        self.now.add(tenant.id)
        self.violated.add(tenant.id)
        self._nics[_place(nic, tenant)][nic.id] = None


@dataclass
class AlarmTally:
    """Which drifts were reported."""

    truth: DriftingTruth
    alarms: list[DriftAlarm] = field(default_factory=list)
    _readings: Counter[str] = field(default_factory=Counter)

    def turn(self, event: int) -> None:
        """NFs may change at this event: readings of those that do are counted anew."""
        for nf in [one for one in self._readings if self.truth.last_turn(one, event) == event]:
            del self._readings[nf]

    def read(self, nfs: Iterable[str]) -> None:
        """Readings came, of these NFs."""
        self._readings.update(nfs)

    def reported(self, event: int, factors: dict[str, float]) -> None:
        """After an event, NFs are believed to have drifted by these factors."""
        for nf, factor in factors.items():
            false = self.truth.last_turn(nf, event) is None
            self.alarms.append(DriftAlarm(event, nf, factor, self._readings[nf], false))


def _place(nic: Nic, tenant: Tenant) -> Place:
    return nic.kind.model, nic.co_location, tenant.workload
