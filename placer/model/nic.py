"""NICs and their tenants: what runs on a NIC, whether it takes arrivals, and which NICs are idle."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from placer.model.groups import UNCONSTRAINED, Constraints
from placer.model.nic_kind import NicKind
from placer.model.oracle import co_location_of
from placer.model.pools import WHOLE_POOL, Pool
from placer.model.sla import Sla
from profiles import CoLocation, Workload

NUMBERED_NIC_ID = re.compile(r"nic-\d+")
"""Names of NICs that are opened without one. In a fleet that opens none, a NIC may join by such a name, too."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """An NF instance on a NIC: its id, what it runs, and its SLA.

    `free_cores`: whether its number of cores was chosen, not given, so that it may get another one when it changes.
    `day`: per part of the day, the share of its rate that is offered to it; empty for the whole rate all day.
    `constraints`: what it demands of its place beside throughput. `priority`: how much it matters where NICs are too
    few, the higher the more. `group`: while it waits, the group whose members are placed at once or not at all; empty
    for none. `owner`, `labels`: whose it is, empty for nobody's, and what its owner calls it, by key in alphabetical
    order. `reserved_until`: when its place is given up unless it arrives before (s since 1970); None once it has.
    """

    id: str
    workload: Workload
    sla: Sla
    free_cores: bool = False
    day: tuple[float, ...] = ()
    constraints: Constraints = UNCONSTRAINED
    priority: int = 0
    group: str = ""
    owner: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    reserved_until: float | None = None

    def __deepcopy__(self, memo: object) -> Tenant:
        return self

    @property
    def asked(self) -> Tenant:
        """The instance as it was asked for, with its number of cores still to be chosen."""
        return replace(self, workload=self.asked_workload, free_cores=False) if self.free_cores else self

    @property
    def asked_workload(self) -> Workload:
        """The workload as it was asked for."""
        return self.workload.on_cores(0) if self.free_cores else self.workload

    def on_cores(self, workload: Workload) -> Tenant:
        """The instance with its workload on a number of cores that was chosen."""
        return self.running(workload, self.sla, free_cores=True)

    def running(self, workload: Workload, sla: Sla, *, free_cores: bool) -> Tenant:
        """The instance with these in place of its own."""
        # `replace` takes three times as long
        return Tenant(
            self.id, workload, sla, free_cores, self.day, self.constraints, self.priority, self.group, self.owner,
            self.labels, self.reserved_until,
        )  # fmt: skip

    def required_kpps(self, solo_kpps: float) -> float:
        """The least throughput (kpps) that its SLA accepts where running alone gives `solo_kpps`."""
        return self.sla.required_kpps(solo_kpps, self.workload.rate_kpps)

    @property
    def relative_drop(self) -> float | None:
        """The largest drop against running alone that its SLA allows; None where it requires a throughput.

        Of an instance at a rate, an SLA is relative to that.
        """
        return self.sla.max_drop if self.workload.is_saturated else None

    def is_met(self, throughput_kpps: float, solo_kpps: float) -> bool:
        """Whether its SLA accepts `throughput_kpps` where running alone gives `solo_kpps`."""
        return throughput_kpps >= self.required_kpps(solo_kpps)


class Service(Enum):
    """Whether a NIC takes arrivals: `up` does; `cordoned` keeps its tenants; `draining` keeps those that fit on no
    other; `failed` has no tenants. One that is `gone` has left the fleet: only a state and other agents learn of it."""

    UP = "up"
    CORDONED = "cordoned"
    DRAINING = "draining"
    FAILED = "failed"
    GONE = "gone"


class Nic:
    """A NIC and its tenants, by id in order of arrival."""

    __slots__ = ("id", "kind", "number", "service", "tenants_by_id")

    def __init__(self, id: str, kind: NicKind, number: int = 0) -> None:
        self.id = id
        self.kind = kind
        self.number = number
        self.tenants_by_id: dict[str, Tenant] = {}
        self.service = Service.UP

    def __deepcopy__(self, memo: dict[int, object]) -> Nic:
        made = memo[id(self)] = Nic(self.id, self.kind, self.number)
        made.tenants_by_id, made.service = self.tenants_by_id.copy(), self.service
        return made

    @property
    def has_name(self) -> bool:
        """Whether it joined by a name, and was not numbered when it was opened."""
        return self.id != f"nic-{self.number}"

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """Its tenants in order of arrival."""
        return tuple(self.tenants_by_id.values())

    def keep_order(self, ids: Iterable[str]) -> None:
        """Let the tenants with these ids come first, in this order: they were here before, and never left."""
        first = {identity: self.tenants_by_id[identity] for identity in ids if identity in self.tenants_by_id}
        self.tenants_by_id = first | self.tenants_by_id

    @property
    def co_location(self) -> CoLocation:
        """The co-location on it."""
        return co_location_of(tenant.workload for tenant in self.tenants_by_id.values())


_NIC_NUMBER = re.compile(r"nic-([1-9][0-9]{0,7})")


def number_in(nic_id: str) -> int | None:
    """The number N of a NIC whose id is `nic-N`; None for a name, and for numbers that no NIC gets."""
    found = _NIC_NUMBER.fullmatch(nic_id)
    return int(found[1]) if found else None


def numbers_nics(kinds: Sequence[NicKind]) -> bool:
    """Whether NICs of these kinds are opened without a name, and are then called `nic-N`."""
    return any(kind.count is None or kind.count > len(kind.names) for kind in kinds)


class IdleNics:
    """NICs of one kind that have a name or were in use, and are idle; iterated in the order of their numbers."""

    def __init__(self, kind: NicKind) -> None:
        self.kind = kind
        self._pool = WHOLE_POOL
        self._number_of: dict[str, int] = {}
        self._by_number: list[tuple[bool, int, str]] = []

    def __iter__(self) -> Iterator[Nic]:
        return (Nic(nic_id, self.kind, number) for nic_id, number in sorted(self._number_of.items(), key=_second))

    def __len__(self) -> int:
        return len(self._number_of)

    def add(self, nic: Nic) -> None:
        """Add a NIC."""
        self._number_of[nic.id] = nic.number
        heapq.heappush(self._by_number, (not self._pool.owns(nic.number), nic.number, nic.id))

    def remove(self, nic: Nic) -> None:
        """Remove a NIC that is here."""
        del self._number_of[nic.id]

    def get(self, nic_id: str) -> Nic | None:
        """The NIC of that id, empty; None where it is not here."""
        number = self._number_of.get(nic_id)
        return None if number is None else Nic(nic_id, self.kind, number)

    def first(self) -> Nic | None:
        """The one of lowest number, empty, an own one if there is any; None where there is none."""
        while self._by_number and self._by_number[0][2] not in self._number_of:
            heapq.heappop(self._by_number)
        return self.get(self._by_number[0][2]) if self._by_number else None

    def belong_to(self, pool: Pool) -> None:
        """Prefer the NICs of this pool from now on."""
        self._pool = pool
        self._by_number = [(not pool.owns(number), number, nic_id) for nic_id, number in self._number_of.items()]
        heapq.heapify(self._by_number)


def _second(item: tuple[str, int]) -> int:
    return item[1]
