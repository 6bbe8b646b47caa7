"""Greedy: bin packing by what each NF takes when alone, on the NIC with most left (Tomur, section 7.5.1)."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from placer.model.catalogue import Catalogue
from placer.model.constraints import places_for
from placer.model.fleet import Fleet
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import co_location_of
from placer.strategies.strategy import OnlineStrategy, register
from profiles import CoLocation, Workload

FULLY_USED = 1.0 + 1e-9


@register
class Greedy(OnlineStrategy):
    """Among the NICs in use on which the arrival fits, the one with most left; a new NIC only when none fits.

    It fits when the solo demands add up to no more than the NIC has: cores, last-level cache (by working set), and
    the time of each accelerator. A NIC has as much left as its scarcest resource. Contention is ignored, which is why
    SLAs are violated, but not on GPUs: they run only what their admission test admits.
    """

    name = "greedy"

    def __init__(self, catalogue: Catalogue, predictor: str | None = None) -> None:
        super().__init__(catalogue, predictor)
        self._shares: dict[tuple[int, Workload], dict[str, float]] = {}
        self._used: dict[tuple[int, CoLocation], tuple[float, float]] = {}

    def begin(self, fleet: Fleet) -> None:
        self._nics = NicClasses(fleet)

    def choose(self, fleet: Fleet, tenant: Tenant) -> Nic | NicKind | None:
        best, least = None, (FULLY_USED, 0.0, 0)
        places = places_for(fleet, tenant)
        for nic_class, nics in self._nics.with_cores_for(tenant.workload):
            if places is not None and fleet.kinds[nic_class.kind] not in places.kinds:
                continue
            kind, joined = fleet.kinds[nic_class.kind], co_location_of((*nic_class.co_location, tenant.workload))
            used = self._used_by(kind, joined)
            if used[0] <= FULLY_USED and (best is None or used <= least[:2]) and self.catalogue.admits(kind, joined):
                allowed = nics if places is None else [number for number, nic in nics.items() if places.allow(nic)]
                first = min(allowed, default=None)
                if first is None:
                    continue
                if best is None or (*used, first) < least:
                    best, least = nics[first], (*used, first)
        return best or self.cheapest_new(fleet, tenant)

    def _used_by(self, kind: NicKind, co_location: CoLocation) -> tuple[float, float]:
        """The share of the scarcest resource, and of all together, that the NFs demand, each as if alone."""
        key = (kind.index, co_location)
        if key not in self._used:
            used: Counter[str] = Counter()
            for workload in co_location:
                used.update(self._share(kind, workload))
            self._used[key] = max(used.values()), sum(used.values())
        return self._used[key]

    def _share(self, kind: NicKind, workload: Workload) -> dict[str, float]:
        key = (kind.index, workload)
        if key not in self._shares:
            self._shares[key] = self.catalogue.shares(kind, workload)
        return self._shares[key]


# NIC classes: NICs in use that are alike, because they are of one kind and carry the same co-location.


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
        for nic in fleet.nics.values():
            self._sort(nic)

    def with_cores_for(self, workload: Workload) -> Iterator[tuple[NicClass, Mapping[int, Nic]]]:
        """Classes of NICs that run the NF and have the cores for it, and their NICs by number."""
        for nic_class, nics in self._classes.items():
            kind, co_location = self.fleet.kinds[nic_class.kind], nic_class.co_location
            if kind.fits((*co_location, workload)):
                yield nic_class, nics

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """A tenant was placed on the NIC."""
        self._sort(nic)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """A tenant left the NIC."""
        self._sort(nic)

    def changed(self, nic: Nic, before: Tenant, after: Tenant) -> None:
        """A tenant of the NIC became another one of its id."""
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
