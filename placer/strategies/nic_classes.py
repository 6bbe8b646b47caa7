"""NICs in use by class: those of one kind that hold the same company are alike for whoever minds no SLA."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from placer.model.fleet import Fleet, Nic, Tenant
from placer.model.oracle import CoLocation
from profiles import Workload


@dataclass(frozen=True, slots=True)
class NicClass:
    """What NICs have in common that are alike for all but SLAs: the kind's index, and the company."""

    kind: int
    co_location: CoLocation


class NicClasses:
    """Watches a fleet and keeps its NICs by class, and in each by number."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._classes: dict[NicClass, dict[int, Nic]] = defaultdict(dict)
        fleet.watcher = self

    def roomy(self, workload: Workload) -> Iterator[tuple[NicClass, Mapping[int, Nic]]]:
        """Classes of NICs that host the NF and have the cores for it, and their NICs by number."""
        for alike, nics in self._classes.items():
            kind, co_location = self.fleet.kinds[alike.kind], alike.co_location
            if kind.hosts(workload) and kind.cores_taken(co_location) + kind.cores_of[workload.nf] <= kind.cores:
                yield alike, nics

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved in."""
        self._sort(nic)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved out."""
        self._sort(nic)

    def serves(self, nic: Nic) -> None:
        """The NIC began or ceased to take newcomers."""

    def _sort(self, nic: Nic) -> None:
        before = nic.note
        if before is not None:
            del self._classes[before][nic.number]
            if not self._classes[before]:
                del self._classes[before]
        nic.note = NicClass(nic.kind.index, nic.co_location) if nic.housed else None
        if nic.note is not None:
            self._classes[nic.note][nic.number] = nic
