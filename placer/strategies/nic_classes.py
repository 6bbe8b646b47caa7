"""NICs in use by class: those of one kind that hold the same company are alike for whoever minds no SLA."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from placer.model.fleet import Fleet, Nic, Tenant
from placer.model.oracle import Company
from profiles import Workload


@dataclass(frozen=True, slots=True)
class NicClass:
    """What NICs have in common that are alike for all but SLAs: the kind's index, and the company."""

    kind: int
    company: Company


class ByCompany:
    """Watches a fleet and keeps its NICs by class, and in each by number."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._classes: dict[NicClass, dict[int, Nic]] = defaultdict(dict)
        fleet.watcher = self

    def roomy(self, workload: Workload) -> Iterator[tuple[NicClass, Mapping[int, Nic]]]:
        """Classes of NICs that host the NF and have the cores for it, and their NICs by number."""
        for alike, nics in self._classes.items():
            kind, company = self.fleet.kinds[alike.kind], alike.company
            if kind.hosts(workload) and kind.cores_taken(company) + kind.cores_of[workload.nf] <= kind.cores:
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
        nic.note = NicClass(nic.kind.index, nic.company) if nic.housed else None
        if nic.note is not None:
            self._classes[nic.note][nic.number] = nic
