"""The fleet: kinds of NIC that can be had, the NICs in use, and what runs on each."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from placer.model.oracle import CoLocation, co_location_of
from placer.model.sla import Sla
from profiles import Workload


@dataclass(frozen=True, eq=False)
class NicKind:
    """One line of the fleet: NICs of a model, what one costs, and how many there are.

    Parameters
    ----------
    index
        Position in the fleet; oracles are listed in the same order.
    model
        The NIC model. Two kinds may share one, say owned NICs at no cost and new ones.
    cores
        Cores of one NIC.
    cores_of
        Cores that each NF takes on this model.
    count
        How many there are; None is unlimited.
    cost
        What putting one into use costs.
    """

    index: int
    model: str
    cores: int
    cores_of: Mapping[str, int]
    count: int | None = None
    cost: float = 1.0

    def cores_taken(self, workloads: Iterable[Workload]) -> int:
        """Cores that these workloads take together."""
        return sum(self.cores_of[workload.nf] for workload in workloads)

    def hosts(self, workload: Workload) -> bool:
        """Whether the NF is known on this model and fits an empty NIC."""
        return self.cores_of.get(workload.nf, self.cores + 1) <= self.cores


@dataclass(frozen=True, slots=True)
class Tenant:
    """An NF instance as a NIC sees it: which one, what it runs, what it was promised."""

    id: str
    workload: Workload
    sla: Sla


class Service(Enum):
    """Whether a NIC takes newcomers: `up` does; `draining` keeps whom it has, but takes none; `failed` has none."""

    UP = "up"
    DRAINING = "draining"
    FAILED = "failed"


class Nic:
    """A NIC and its tenants, by id in order of arrival."""

    __slots__ = ("id", "kind", "number", "service", "tenants_by_id")

    def __init__(self, id: str, kind: NicKind, number: int = 0) -> None:
        self.id = id
        self.kind = kind
        self.number = number
        self.tenants_by_id: dict[str, Tenant] = {}
        self.service = Service.UP

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """Its tenants in order of arrival."""
        return tuple(self.tenants_by_id.values())

    @property
    def co_location(self) -> CoLocation:
        """What runs on it."""
        return co_location_of(tenant.workload for tenant in self.tenants_by_id.values())


class FleetObserver(Protocol):
    """Told of every change of the fleet, after it happened; keeps an index in step."""

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved in."""

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """The tenant moved out."""

    def service_changed(self, nic: Nic) -> None:
        """The NIC began or ceased to take newcomers."""


class Fleet:
    """NICs in use, and the kinds from which another can be opened. A NIC that emptied is the next to be opened."""

    def __init__(self, kinds: Sequence[NicKind]) -> None:
        self.kinds = tuple(kinds)
        self.nics: dict[str, Nic] = {}
        self.out_of_service: dict[str, Nic] = {}
        self.observer: FleetObserver | None = None
        self._home: dict[str, Nic] = {}
        self._opened = 0
        self._in_use: Counter[int] = Counter()
        self._idle: dict[int, list[tuple[int, str]]] = defaultdict(list)

    @property
    def tenants(self) -> int:
        """How many tenants are placed."""
        return len(self._home)

    def in_use(self, kind: NicKind) -> int:
        """How many NICs of the kind are in use."""
        return self._in_use[kind.index]

    def available(self) -> list[NicKind]:
        """Kinds of which one more can be opened, cheapest first."""
        kinds = [kind for kind in self.kinds if kind.count is None or self._taken(kind) < kind.count]
        return sorted(kinds, key=lambda kind: (kind.cost, kind.index))

    def open(self, kind: NicKind, nic_id: str | None = None) -> Nic:
        """Put one more NIC of the kind into use, empty; without an id the first that emptied, or a new number."""
        idle = self._idle[kind.index]
        if nic_id is None and idle:
            number, nic_id = heapq.heappop(idle)
        else:
            emptied = next((one for one in idle if one[1] == nic_id), None) if nic_id else None
            if emptied is not None:
                idle.remove(emptied)
                heapq.heapify(idle)
            self._opened += emptied is None
            number, nic_id = emptied or (self._opened, nic_id or f"nic-{self._opened}")
        nic = self.nics[nic_id] = Nic(nic_id, kind, number)
        self._in_use[kind.index] += 1
        return nic

    def find(self, nic_id: str) -> Nic | None:
        """The NIC of that id, in use, idle or out of service; None when there never was one."""
        if nic_id in self.nics or nic_id in self.out_of_service:
            return self.nics.get(nic_id) or self.out_of_service[nic_id]
        for kind in self.kinds:
            for number, idle in self._idle[kind.index]:
                if idle == nic_id:
                    return Nic(nic_id, kind, number)
        return None

    def withdraw(self, nic: Nic, service: Service) -> None:
        """Let the NIC take no more newcomers; whoever is on it stays for now."""
        if not nic.tenants_by_id and nic.id not in self.out_of_service:
            idle = self._idle[nic.kind.index]
            idle.remove((nic.number, nic.id))
            heapq.heapify(idle)
        nic.service = service
        self.out_of_service[nic.id] = nic
        if self.observer is not None:
            self.observer.service_changed(nic)

    def restore(self, nic: Nic) -> None:
        """Let a NIC that was out of service take newcomers again."""
        del self.out_of_service[nic.id]
        nic.service = Service.UP
        if nic.tenants_by_id:
            if self.observer is not None:
                self.observer.service_changed(nic)
        else:
            heapq.heappush(self._idle[nic.kind.index], (nic.number, nic.id))

    def reuse(self, nic: Nic) -> None:
        """Count an empty NIC as in use again although it is out of service, for a tenant that has no other place."""
        self.nics[nic.id] = nic
        self._in_use[nic.kind.index] += 1

    def adopt(self, nic: Nic, tenants: Iterable[Tenant]) -> None:
        """Take in a NIC as it was in another process, with its tenants; before anybody watches."""
        self._opened = max(self._opened, nic.number)
        for tenant in tenants:
            nic.tenants_by_id[tenant.id] = tenant
            self._home[tenant.id] = nic
        if nic.tenants_by_id:
            self.nics[nic.id] = nic
            self._in_use[nic.kind.index] += 1
        elif nic.service is Service.UP:
            heapq.heappush(self._idle[nic.kind.index], (nic.number, nic.id))
        if nic.service is not Service.UP:
            self.out_of_service[nic.id] = nic

    def all_nics(self) -> Iterator[Nic]:
        """Every NIC that was ever in use, without tenants where it is idle."""
        yield from self.nics.values()
        yield from (nic for nic in self.out_of_service.values() if not nic.tenants_by_id)
        for kind in self.kinds:
            yield from (Nic(nic_id, kind, number) for number, nic_id in self._idle[kind.index])

    def place(self, tenant: Tenant, nic: Nic) -> None:
        """Put the tenant on the NIC."""
        nic.tenants_by_id[tenant.id] = tenant
        self._home[tenant.id] = nic
        if self.observer is not None:
            self.observer.joined(nic, tenant)

    def nic_of(self, tenant_id: str) -> Nic | None:
        """The NIC on which the tenant runs, if it runs."""
        return self._home.get(tenant_id)

    def remove(self, tenant_id: str) -> Nic:
        """Take the tenant off its NIC, which falls out of use when it was the last; returns that NIC."""
        nic = self._home.pop(tenant_id)
        tenant = nic.tenants_by_id.pop(tenant_id)
        if self.observer is not None:
            self.observer.left(nic, tenant)
        if not nic.tenants_by_id:
            del self.nics[nic.id]
            self._in_use[nic.kind.index] -= 1
            if nic.service is Service.UP:
                heapq.heappush(self._idle[nic.kind.index], (nic.number, nic.id))
        return nic

    def _taken(self, kind: NicKind) -> int:
        out = sum(nic.kind is kind and not nic.tenants_by_id for nic in self.out_of_service.values())
        return self._in_use[kind.index] + out
