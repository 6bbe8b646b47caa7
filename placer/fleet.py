"""The fleet: kinds of NIC that can be had, the NICs in use, and what runs on each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from placer.oracle import Company, company_of
from placer.sla import Sla
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


@dataclass(frozen=True, slots=True)
class NicClass:
    """What NICs have in common that are alike for all but SLAs: the kind's index, and the company."""

    kind: int
    company: Company


class Nic:
    """A NIC in use: its tenants in order of arrival, and the class that they put it in."""

    def __init__(self, id: str, kind: NicKind, number: int = 0) -> None:
        self.id = id
        self.kind = kind
        self.number = number
        self.tenants: tuple[Tenant, ...] = ()
        self.alike = NicClass(kind.index, ())

    def house(self, tenants: Iterable[Tenant]) -> None:
        """Let the NIC hold these tenants and no others."""
        self.tenants = tuple(tenants)
        self.alike = NicClass(self.kind.index, company_of(tenant.workload for tenant in self.tenants))

    @property
    def company(self) -> Company:
        """What runs on it."""
        return self.alike.company


class Fleet:
    """NICs in use, in the order in which they were opened, and the kinds from which another can be opened."""

    def __init__(self, kinds: Sequence[NicKind]) -> None:
        self.kinds = tuple(kinds)
        self.nics: dict[str, Nic] = {}
        self._home: dict[str, Nic] = {}
        self._opened = 0
        self._in_use: Counter[int] = Counter()
        self._classes: dict[NicClass, dict[int, Nic]] = defaultdict(dict)

    @property
    def tenants(self) -> int:
        """How many tenants are placed."""
        return len(self._home)

    def in_use(self, kind: NicKind) -> int:
        """How many NICs of the kind are in use."""
        return self._in_use[kind.index]

    def available(self) -> list[NicKind]:
        """Kinds of which one more can be opened, cheapest first."""
        kinds = [kind for kind in self.kinds if kind.count is None or self.in_use(kind) < kind.count]
        return sorted(kinds, key=lambda kind: (kind.cost, kind.index))

    def classes(self, workload: Workload) -> Iterator[tuple[NicClass, Mapping[int, Nic]]]:
        """NICs in use that host the NF and have the cores for it, by class, and in it by number."""
        for alike, nics in self._classes.items():
            kind, company = self.kinds[alike.kind], alike.company
            if kind.hosts(workload) and kind.cores_taken(company) + kind.cores_of[workload.nf] <= kind.cores:
                yield alike, nics

    def roomy(self, workload: Workload) -> list[Nic]:
        """NICs in use that host the NF and have the cores for it, in the order in which they were opened."""
        found = [nic for _, nics in self.classes(workload) for nic in nics.values()]
        return sorted(found, key=lambda nic: nic.number)

    def open(self, kind: NicKind, nic_id: str | None = None) -> Nic:
        """Put one more NIC of the kind into use, empty; without an id it is numbered."""
        self._opened += 1
        nic = Nic(nic_id or f"nic-{self._opened}", kind, self._opened)
        self.nics[nic.id] = nic
        self._in_use[kind.index] += 1
        self._classes[nic.alike][nic.number] = nic
        return nic

    def place(self, tenant: Tenant, nic: Nic) -> None:
        """Put the tenant on the NIC."""
        self._rehouse(nic, (*nic.tenants, tenant))
        self._home[tenant.id] = nic

    def home_of(self, tenant_id: str) -> Nic | None:
        """The NIC on which the tenant runs, if it runs."""
        return self._home.get(tenant_id)

    def remove(self, tenant_id: str) -> Nic:
        """Take the tenant off its NIC, which falls out of use when it was the last; returns that NIC."""
        nic = self._home.pop(tenant_id)
        self._rehouse(nic, tuple(tenant for tenant in nic.tenants if tenant.id != tenant_id))
        if not nic.tenants:
            del self.nics[nic.id]
            self._leave_class(nic)
            self._in_use[nic.kind.index] -= 1
        return nic

    def _rehouse(self, nic: Nic, tenants: tuple[Tenant, ...]) -> None:
        self._leave_class(nic)
        nic.house(tenants)
        self._classes[nic.alike][nic.number] = nic

    def _leave_class(self, nic: Nic) -> None:
        alike = self._classes[nic.alike]
        del alike[nic.number]
        if not alike:
            del self._classes[nic.alike]
