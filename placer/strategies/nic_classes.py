"""NIC classes: NICs in use that are alike, because they are of one kind and carry the same co-location."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from placer.model.fleet import Fleet, Nic, Tenant
from placer.model.oracle import CoLocation
from profiles import Workload


@dataclass(frozen=True, slots=True)
class NicClass:
    """What NICs have in common that differ only in their tenants' SLAs: the kind's index, and the co-location."""

    kind: int
    co_location: CoLocation


class NicClasses:
    """Observes a fleet and keeps its NICs by class, and in each class by number."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._classes: dict[NicClass, dict[int, Nic]] = defaultdict(dict)
        self._class_of: dict[int, NicClass] = {}
        fleet.observer = self

    def with_cores_for(self, workload: Workload) -> Iterator[tuple[NicClass, Mapping[int, Nic]]]:
        """Classes of NICs that run the NF and have the cores for it, and their NICs by number."""
        for nic_class, nics in self._classes.items():
            kind, co_location = self.fleet.kinds[nic_class.kind], nic_class.co_location
            if kind.hosts(workload) and kind.cores_taken(co_location) + kind.cores_of[workload.nf] <= kind.cores:
                yield nic_class, nics

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """A tenant was placed on the NIC."""
        self._sort(nic)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """A tenant left the NIC."""
        self._sort(nic)

    def service_changed(self, nic: Nic) -> None:
        """A NIC began or ceased to take arrivals."""

    def pool_changed(self) -> None:
        """Every agent sees all NICs."""

    def _sort(self, nic: Nic) -> None:
        before = self._class_of.pop(nic.number, None)
        if before is not None:
            del self._classes[before][nic.number]
            if not self._classes[before]:
                del self._classes[before]
        if nic.tenants_by_id:
            after = self._class_of[nic.number] = NicClass(nic.kind.index, nic.co_location)
            self._classes[after][nic.number] = nic
