"""The fleet: kinds of NIC that are available, the NICs in use, and what runs on each."""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, partial
from math import fsum, inf
from typing import Protocol

from placer.model.groups import UNCONSTRAINED, Constraints, Groups
from placer.model.oracle import co_location_of
from placer.model.pools import WHOLE_POOL, FleetJournal, Pool
from placer.model.sharded import OrderedShards, ShardedDict
from placer.model.sla import Sla
from profiles import CoLocation, Workload

WIRE_BYTES = 20
"""Bytes of a packet on the wire besides its own: preamble and gap between frames."""

NUMBERED_NIC_ID = re.compile(r"nic-\d+")
"""Names of NICs that are opened without one. In a fleet that opens none, a NIC may join by such a name, too."""


@dataclass(frozen=True, eq=False)
class NicKind:
    """One line of the fleet: NICs of a model, the cost of one, and how many there are.

    Parameters
    ----------
    index
        Position in the fleet; oracles are listed in the same order.
    model
        The NIC model. Two kinds may share one, say owned NICs at no cost and new ones.
    cores
        Cores of one NIC; of a GPU its workers.
    cores_of
        Cores that each NF takes on this model.
    count
        How many there are; None is unlimited.
    cost
        Cost of one NIC in use.
    latency_of
        By statistic of latency, the NFs of which it is known on this model; no other can be promised.
    paced
        Whether it runs only NFs whose offered rate is known, as a GPU does.
    names
        The names of the first NICs; the others are numbered.
    core_counts
        The numbers of cores, ascending, that each NF can be given; one that is missing has its default number only.
    line_rate_gbps
        What the port carries, each direction; packets have `WIRE_BYTES` on the wire besides.
    owned
        How many NICs are paid for, and need not be bought; None where that is not said.
    pool, domain
        The pool and the domain, as a rack, of all its NICs; empty for no pool, and for NICs that are each a domain.
    joins
        Whether it is another one, whose `index` it has, in a pool and domain of NICs that have joined.
    """

    index: int
    model: str
    cores: int
    cores_of: Mapping[str, int]
    count: int | None = None
    cost: float = 1.0
    latency_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    paced: bool = False
    names: tuple[str, ...] = ()
    owned: int | None = None
    core_counts: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    line_rate_gbps: float = inf
    pool: str = ""
    domain: str = ""
    joins: bool = False

    def in_place(self, pool: str, domain: str) -> NicKind:
        """The same kind in another pool and domain, of which there are only NICs that join."""
        return replace(self, pool=pool, domain=domain, count=0, names=(), owned=None, joins=True)

    @cached_property
    def key(self) -> int | str:
        """What is another one for each kind of a fleet."""
        return f"{self.index}|{self.pool}|{self.domain}" if self.joins else self.index

    def __deepcopy__(self, memo: object) -> NicKind:
        return self

    def cores_taken(self, workloads: Iterable[Workload]) -> int:
        """Cores that these workloads take together."""
        return sum(map(self.cores_for, workloads))

    def cores_for(self, workload: Workload) -> int:
        """Cores that the workload takes: those that it is given, or the default number of its NF.

        A GPU gives each NF a worker, whatever cores the NF has on other kinds.
        """
        return self.cores_of[workload.nf] if self.paced else workload.cores or self.cores_of[workload.nf]

    @property
    def all_core_counts(self) -> set[int]:
        """Every number of cores that some NF may be given."""
        return {*self.cores_of.values(), *(count for counts in self.core_counts.values() for count in counts)}

    def gbps_of(self, workload: Workload) -> float:
        """What the packets that are offered to the workload take of the port, Gb/s; 0 where no rate is known."""
        if workload.is_saturated:
            return 0.0
        return workload.rate_kpps * 8e-6 * (workload.traffic.packet_size + WIRE_BYTES)

    def fits(self, workloads: Sequence[Workload]) -> bool:
        """Whether one NIC runs all of these, and has the cores and the line rate for them together."""
        return (
            all(map(self.hosts, workloads))
            and self.cores_taken(workloads) <= self.cores
            and self.has_port_for(workloads)
        )

    def has_port_for(self, workloads: Iterable[Workload]) -> bool:
        """Whether the port carries the packets that are offered to all of these, whatever their order."""
        return self.line_rate_gbps == inf or fsum(map(self.gbps_of, workloads)) <= self.line_rate_gbps

    def choices(self, workload: Workload) -> tuple[Workload, ...]:
        """The workload on each number of cores that it may be given here, ascending; as it is where that is fixed."""
        counts = self.core_counts.get(workload.nf, ())
        if workload.cores or workload.is_saturated or self.paced or len(counts) < 2:
            return (workload,)
        return tuple(replace(workload, cores=count) for count in counts if count <= self.cores)

    def hosts(self, workload: Workload) -> bool:
        """Whether this model runs the NF, knows the latency that is promised, and an empty NIC has the cores for it.

        Where the number of cores is to be chosen, it is whether it hosts one of the choices.
        """
        default = self.cores_of.get(workload.nf, self.cores + 1)
        if workload.is_plain and not self.paced:
            return default <= self.cores
        saturated, cores = workload.is_saturated, workload.cores
        if self.paced:
            return default <= self.cores and not saturated and self._knows_latency(workload)
        if cores not in (0, default) and cores not in self.core_counts.get(workload.nf, ()):
            return False
        if (cores or (default if saturated else min(self.core_counts.get(workload.nf, (default,))))) > self.cores:
            return False
        if self.gbps_of(workload) > self.line_rate_gbps:
            return False
        return saturated or not workload.promises_latency or self._knows_latency(workload)

    def _knows_latency(self, workload: Workload) -> bool:
        return workload.nf in self.latency_of.get(workload.latency_statistic, ())


def choices_on(kinds: Iterable[NicKind], workload: Workload) -> list[Workload]:
    """The workload on each number of cores that it may be given on some of these kinds, ascending.

    As it is where that is fixed, or where only GPUs run it, which run it on whatever number it has.
    """
    if workload.cores or workload.is_saturated:
        return [workload]
    hosting = [kind for kind in kinds if not kind.paced and kind.hosts(workload)]
    if all(kind.choices(workload) == (workload,) for kind in hosting):
        return [workload]
    counts = {kind.cores_for(choice) for kind in hosting for choice in kind.choices(workload)}
    return [replace(workload, cores=count) for count in sorted(counts)]


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
        return replace(self.workload, cores=0) if self.free_cores else self.workload

    def on_cores(self, workload: Workload) -> Tenant:
        """The instance with its workload on a number of cores that was chosen."""
        # `replace` takes three times as long
        return Tenant(
            self.id, workload, self.sla, True, self.day, self.constraints, self.priority, self.group, self.owner,
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


class FleetObserver(Protocol):
    """Is called after every change of the fleet, to keep an index up to date."""

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """A tenant was placed on the NIC."""

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """A tenant left the NIC."""

    def service_changed(self, nic: Nic) -> None:
        """A NIC began or ceased to take arrivals."""

    def pool_changed(self) -> None:
        """Other NICs than before are own ones."""


class Fleet:
    """NICs in use, and the kinds of which another can be opened. An idle NIC is opened before a new one.

    NICs with a name in their kind are idle at first, and have the lowest numbers.

    Attributes
    ----------
    gone
        By id, NICs that have left the fleet: no other one gets their numbers, nor their places in `count`.
    kinds, all_kinds
        The kinds that are given; these, and those in other pools and domains of which NICs have joined.
    pool
        The NICs that are preferred, because this agent owns them.
    journal
        Takes down how to take back each change, while there is one.
    groups
        The tenants of each group, and their NICs.
    has_pools, pools
        Whether some NICs take only instances of a pool, and which pools there are; empty for none.
    kinds_of_domain
        The kinds of each domain.
    allowed_kinds
        By what tenants ask of a kind, the kinds that constraints leave to them, once they were sought.
    reservations
        By id, when the place of each instance that has not arrived yet is given up, s since 1970.
    owned
        By owner, the number of its tenants and the cores that they take.
    """

    def __init__(self, kinds: Sequence[NicKind]) -> None:
        self.kinds = tuple(kinds)
        self._by_cost: Sequence[NicKind] = sorted(self.kinds, key=lambda kind: (kind.cost, kind.index))
        self.nics: OrderedShards[Nic] = OrderedShards()
        self.out_of_service: dict[str, Nic] = {}
        self.gone: dict[str, Nic] = {}
        self.observer: FleetObserver | None = None
        self.pool = WHOLE_POOL
        self.journal: FleetJournal | None = None
        self._home: ShardedDict[str, Nic] = ShardedDict()
        self.groups: Groups[Nic] = Groups()
        self.reservations: dict[str, float] = {}
        self.owned: dict[str, tuple[int, int]] = {}
        self.all_kinds = self.kinds
        self._follow_places()
        self._has_owned = any(kind.owned for kind in self.kinds)
        self._used_up: set[int | str] = {kind.key for kind in self.kinds if kind.count == 0}
        self._available: list[NicKind] | None = None
        self._opened = 0
        self._in_use: Counter[int | str] = Counter()
        self._tenants: Counter[int | str] = Counter()
        self._cores_taken: Counter[int | str] = Counter()
        self._joined: Counter[int | str] = Counter()
        self._nics_of: Counter[int | str] = Counter()
        self._idle = {kind.key: IdleNics(kind) for kind in self.kinds}
        self._named: dict[int, Nic] = {}
        for kind in self.kinds:
            for name in kind.names:
                self._add_named(kind, name)

    def _follow_places(self) -> None:
        """Find out which kinds are in which pools and domains."""
        self.pools = frozenset(kind.pool for kind in self.all_kinds)
        self.has_pools = self.pools != {""}
        of_domain: defaultdict[str, set[NicKind]] = defaultdict(set)
        for kind in self.all_kinds:
            of_domain[kind.domain].add(kind)
        self.kinds_of_domain = {domain: frozenset(of) for domain, of in of_domain.items()}
        self.allowed_kinds: dict[tuple[str, ...], frozenset[NicKind]] = {}

    def kind_in(self, model: str, pool: str, domain: str, index: int | None = None) -> NicKind:
        """The kind of a NIC of a known model that joins in a pool and a domain; one that was in the fleet before keeps
        the `index` of its kind."""
        known = (idle.kind for idle in self._idle.values())  # one without NICs, too, which indexes may remember
        alike = [kind for kind in known if kind.model == model and index in (None, kind.index)]
        found = next((kind for kind in alike if (kind.pool, kind.domain) == (pool, domain)), None)
        return found or alike[0].in_place(pool, domain)

    def _count_nic(self, kind: NicKind, by: int) -> None:
        """Count a NIC of a kind, in whatever service. A kind in another place is there while it has a NIC, as it is
        after a restart."""
        if not kind.joins:
            return
        if kind.key not in self._idle:
            self._idle[kind.key] = IdleNics(kind)
            self._idle[kind.key].belong_to(self.pool)
            self._used_up.add(kind.key)
        before = self._nics_of[kind.key]
        self._nics_of[kind.key] += by
        if not before or not before + by:
            in_places = [idle.kind for key, idle in self._idle.items() if self._nics_of[key]]
            # in an order that does not depend on which joined first
            in_places.sort(key=lambda kind: (kind.index, kind.pool, kind.domain))
            self.all_kinds = (*self.kinds, *in_places)
            self._by_cost = sorted(self.all_kinds, key=lambda kind: (kind.cost, kind.index))
            self._available = None
            self._follow_places()

    def assign(self, nic: Nic, kind: NicKind) -> None:
        """Let an idle NIC that has joined be of a kind in another place."""
        self._count_nic(kind, 1)
        self._count_nic(nic.kind, -1)
        self._idle[nic.kind.key].remove(nic)
        self._idle[kind.key].add(nic)
        for changed, by in ((nic.kind, -1), (kind, 1)):
            self._joined[changed.key] += by
            self._note_use(changed)
        if self.journal is not None:
            self.journal.note(partial(self.assign, Nic(nic.id, kind, nic.number), nic.kind))

    @property
    def tenants(self) -> int:
        """How many tenants are placed."""
        return len(self._home)

    def all_tenants(self) -> Iterator[Tenant]:
        """Every placed tenant."""
        for nic in self.nics.values():
            yield from nic.tenants

    def in_use(self, kind: NicKind) -> int:
        """How many NICs of the kind are in use."""
        return self._in_use[kind.key]

    def tenants_on(self, kind: NicKind) -> int:
        """How many tenants run on NICs of the kind."""
        return self._tenants[kind.key]

    def cores_taken(self, kind: NicKind) -> int:
        """Cores that these tenants take together."""
        return self._cores_taken[kind.key]

    def idle(self, kind: NicKind) -> int:
        """How many NICs of the kind are idle, of those that were in use or have joined."""
        return len(self._idle[kind.key])

    def available(self) -> list[NicKind]:
        """Kinds of which one more can be opened, cheapest first; of equal cost, those with owned NICs left first."""
        if self._available is None or self._has_owned:
            self._available = [kind for kind in self._by_cost if kind.key not in self._used_up]
        if self._has_owned:
            self._available.sort(key=lambda kind: (kind.cost, self._in_use[kind.key] >= (kind.owned or 0)))
        return self._available

    def _note_use(self, kind: NicKind) -> None:
        """Follow a change of how many NICs of the kind are in use, out of service, or there."""
        used_up = kind.count is not None and self._take(kind) >= self.count_of(kind)
        if used_up is not (kind.key in self._used_up):
            self._used_up ^= {kind.key}
            self._available = None

    def count_of(self, kind: NicKind) -> float:
        """How many NICs of the kind there are: those that joined by name are more, those that left are fewer.

        Infinite where unlimited.
        """
        return float("inf") if kind.count is None else kind.count + self._joined[kind.key]

    def next_of(self, kind: NicKind) -> Nic:
        """The NIC of the kind that `open` would put into use, and that is not in use yet."""
        number = self.pool.next_after(self._opened)
        return self._first_idle(kind) or Nic(f"nic-{number}", kind, number)

    def belong_to(self, pool: Pool) -> None:
        """Prefer the NICs of this pool from now on."""
        if pool == self.pool:
            return
        self.pool = pool
        for idle in self._idle.values():
            idle.belong_to(pool)
        if self.observer is not None:
            self.observer.pool_changed()

    def join(self, kind: NicKind, nic_id: str) -> Nic:
        """Add an idle NIC with a name of its own; one that is called `nic-N` does not get the number N (`has_name`)."""
        self._count_nic(kind, 1)
        before, self._opened = self._opened, self.pool.next_after(self._opened)
        if self._opened == number_in(nic_id):
            self._opened = self.pool.next_after(self._opened)
        self._joined[kind.key] += 1
        self._note_use(kind)
        nic = Nic(nic_id, kind, self._opened)
        self._idle[kind.key].add(nic)
        if self.journal is not None:
            self.journal.note(partial(self._unjoin, nic, before))
        return nic

    def open(self, kind: NicKind, nic_id: str | None = None) -> Nic:
        """Put one more NIC of the kind into use, empty; without an id the idle one of lowest number, or a new one.

        A new one whose id is `nic-N` has the number N, and later ones have higher numbers.
        """
        idle, before = self._idle[kind.key], self._opened
        seen = self._first_idle(kind) if nic_id is None else idle.get(nic_id)
        if seen is not None:
            nic = seen
            idle.remove(nic)
        else:
            number = number_in(nic_id or "") or self.pool.next_after(self._opened)
            self._opened = max(self._opened, number)
            self._give_way(number)
            nic = Nic(nic_id or f"nic-{number}", kind, number)
        self.nics[nic.id] = nic
        self._in_use[kind.key] += 1
        self._note_use(kind)
        if seen is None and self.journal is not None:
            self.journal.note(partial(self.unopen, nic, before))
        return nic

    def unopen(self, nic: Nic, opened: int) -> None:
        """Forget that a NIC, which is idle again, was ever opened; `opened` is the highest number before it."""
        self._idle[nic.kind.key].remove(nic)
        self._opened = opened

    @property
    def opened(self) -> int:
        """How many NICs there ever were: the highest number."""
        return self._opened

    def find(self, nic_id: str) -> Nic | None:
        """The NIC of that id, in use, idle or out of service; None for an unknown id."""
        found = self.nics.find(nic_id) or self.out_of_service.get(nic_id)
        return found or next(filter(None, (idle.get(nic_id) for idle in self._idle.values())), None)

    def withdraw(self, nic: Nic, service: Service) -> None:
        """Let the NIC take no more arrivals; its tenants stay for now."""
        if self.journal is not None:
            self.journal.note(partial(self.set_service, nic.id, nic.service))
        if not nic.tenants_by_id and nic.id not in self.out_of_service:
            self._idle[nic.kind.key].remove(nic)
        nic.service = service
        self.out_of_service[nic.id] = nic
        self._note_use(nic.kind)
        if self.observer is not None:
            self.observer.service_changed(nic)

    def restore(self, nic: Nic) -> None:
        """Let a NIC that was out of service take arrivals again."""
        if self.journal is not None:
            self.journal.note(partial(self.set_service, nic.id, nic.service))
        del self.out_of_service[nic.id]
        self._note_use(nic.kind)
        nic.service = Service.UP
        if nic.tenants_by_id:
            if self.observer is not None:
                self.observer.service_changed(nic)
        else:
            self._idle[nic.kind.key].add(nic)

    def leave(self, nic: Nic) -> None:
        """Remove a NIC without tenants from the fleet, until it joins again."""
        if self.journal is not None:
            self.journal.note(partial(self.set_service, nic.id, nic.service))
        if self.out_of_service.pop(nic.id, None) is None:
            self._idle[nic.kind.key].remove(nic)
        nic.service = Service.GONE
        self.gone[nic.id] = nic
        self._joined[nic.kind.key] -= 1
        self._note_use(nic.kind)

    def join_again(self, nic: Nic) -> None:
        """Add a NIC that has left, idle and with its former number."""
        if self.journal is not None:
            self.journal.note(partial(self.set_service, nic.id, Service.GONE))
        del self.gone[nic.id]
        nic.service = Service.UP
        self._joined[nic.kind.key] += 1
        self._idle[nic.kind.key].add(nic)
        self._note_use(nic.kind)

    def reuse(self, nic: Nic) -> Nic:
        """Count an empty NIC as in use although it is out of service, for a tenant that fits no other NIC."""
        self.nics[nic.id] = nic
        self._in_use[nic.kind.key] += 1
        self._note_use(nic.kind)
        return nic

    def adopt(self, nic: Nic, tenants: Iterable[Tenant]) -> None:
        """Add a NIC as it was in another process, with its tenants; before there is an observer.

        It takes the place of the NIC of that name which was never used here; another one of its number gets a new one.
        """
        self._count_nic(nic.kind, 1)
        for idle_nics in self._idle.values() if self._named else ():
            if (same := idle_nics.get(nic.id)) is not None:
                idle_nics.remove(same)
        self._opened = max(self._opened, nic.number)
        self._give_way(nic.number)
        given = self.kinds[nic.kind.index]
        listed = not nic.has_name or nic.id in given.names  # it is one of `count`, and may have joined elsewhere since
        self._joined[nic.kind.key] += nic.kind.joins or not listed
        self._joined[given.key] -= nic.kind.joins and listed
        self._note_use(given)
        for tenant in tenants:
            nic.tenants_by_id[tenant.id] = tenant
            self._home[tenant.id] = nic
            self.groups.add(tenant.id, tenant.constraints, nic)
            self._count(tenant, nic.kind, 1)
        if nic.tenants_by_id:
            self.nics[nic.id] = nic
            self._in_use[nic.kind.key] += 1
        elif nic.service is Service.UP:
            self._idle[nic.kind.key].add(nic)
        if nic.service is Service.GONE:
            self.gone[nic.id] = nic
            self._joined[nic.kind.key] -= 1
        elif nic.service is not Service.UP:
            self.out_of_service[nic.id] = nic
        self._note_use(nic.kind)

    def all_nics(self) -> Iterator[Nic]:
        """Every NIC that was ever in use and has not left, without tenants where it is idle."""
        yield from self.nics.values()
        yield from (nic for nic in self.out_of_service.values() if not nic.tenants_by_id)
        for idle in self._idle.values():
            yield from idle

    def place(self, tenant: Tenant, nic: Nic) -> None:
        """Put the tenant on the NIC."""
        nic.tenants_by_id[tenant.id] = tenant
        self._home[tenant.id] = nic
        self.groups.add(tenant.id, tenant.constraints, nic)
        self._count(tenant, nic.kind, 1)
        if nic.service is not Service.UP:
            self._note_use(nic.kind)
        if self.journal is not None:
            self.journal.note(partial(self.remove, tenant.id))
        if self.observer is not None:
            self.observer.joined(nic, tenant)

    def nic_of(self, tenant_id: str) -> Nic | None:
        """The NIC on which the tenant runs, if it runs."""
        return self._home.get(tenant_id)

    def remove(self, tenant_id: str) -> Nic:
        """Take the tenant off its NIC, which falls out of use when it was the last; returns that NIC."""
        nic = self._home.pop(tenant_id)
        before = () if self.journal is None else tuple(nic.tenants_by_id)
        tenant = nic.tenants_by_id.pop(tenant_id)
        self.groups.remove(tenant_id, tenant.constraints)
        self._count(tenant, nic.kind, -1)
        if self.journal is not None:
            self.journal.note(partial(self._undo_removal, tenant, nic, before))
        if self.observer is not None:
            self.observer.left(nic, tenant)
        if not nic.tenants_by_id:
            del self.nics[nic.id]
            self._in_use[nic.kind.key] -= 1
            self._note_use(nic.kind)
            if nic.service is Service.UP:
                self._idle[nic.kind.key].add(nic)
        return nic

    def _count(self, tenant: Tenant, kind: NicKind, by: int) -> None:
        cores = kind.cores_for(tenant.workload)
        self._tenants[kind.key] += by
        self._cores_taken[kind.key] += by * cores
        if tenant.owner:
            tenants, taken = self.owned.get(tenant.owner, (0, 0))
            self.owned[tenant.owner] = tenants + by, taken + by * cores
            if self.owned[tenant.owner] == (0, 0):
                del self.owned[tenant.owner]
        if tenant.reserved_until is not None:
            self._note_reservation(tenant.id, tenant.reserved_until if by > 0 else None)

    def _note_reservation(self, tenant_id: str, until: float | None) -> None:
        if until is None:
            self.reservations.pop(tenant_id, None)
        else:
            self.reservations[tenant_id] = until

    def set_reservation(self, tenant_id: str, until: float | None) -> None:
        """Let a tenant keep its place until a time, s since 1970; None for as long as it runs."""
        nic = self._home[tenant_id]
        before = nic.tenants_by_id[tenant_id]
        nic.tenants_by_id[tenant_id] = replace(before, reserved_until=until)
        self._note_reservation(tenant_id, until)
        if self.journal is not None:
            self.journal.note(partial(self.set_reservation, tenant_id, before.reserved_until))

    def put_back(self, tenant: Tenant, nic: Nic) -> Nic:
        """Put a tenant back on the NIC it was removed from, which fell out of use when it was the last one."""
        home = self.nics.get(nic.id)
        if home is None and nic.id in self.out_of_service:
            home = self.reuse(self.out_of_service[nic.id])
        home = home or self.open(nic.kind, nic.id)
        self.place(tenant, home)
        return home

    def _undo_removal(self, tenant: Tenant, nic: Nic, before: Sequence[str]) -> None:
        self.put_back(tenant, nic).keep_order(before)

    def set_service(self, nic_id: str, service: Service) -> None:
        """Give a NIC another service than it has."""
        nic = self.find(nic_id)
        if nic is None:
            nic = self.gone[nic_id]
            self.join_again(nic)
        if service is Service.GONE:
            self.leave(nic)
        elif service is not Service.UP:
            self.withdraw(nic, service)
        elif nic.service is not Service.UP:
            self.restore(nic)

    def begin_journal(self) -> FleetJournal:
        """Take down all changes from here on, so that they can be taken back once `journal` is None again."""
        self.journal = FleetJournal()
        return self.journal

    def _add_named(self, kind: NicKind, name: str) -> None:
        """Add a NIC with a name, idle and with the next number."""
        self._opened += 1
        nic = self._named[self._opened] = Nic(name, kind, self._opened)
        self._idle[kind.key].add(nic)

    def _give_way(self, number: int) -> None:
        """Give an idle NIC with a name another number, if it has this one, which another NIC is to have."""
        named = self._named.get(number)
        idle = None if named is None else self._idle[named.kind.key].get(named.id)
        if idle is not None and idle.number == number:
            self._idle[idle.kind.key].remove(idle)
            self._add_named(idle.kind, idle.id)

    def _unjoin(self, nic: Nic, opened: int) -> None:
        self._joined[nic.kind.key] -= 1
        self._count_nic(nic.kind, -1)
        self._note_use(nic.kind)
        self.unopen(nic, opened)

    def _first_idle(self, kind: NicKind) -> Nic | None:
        """The idle NIC to open next; one of another agent only where there can be no more new ones."""
        idle = self._idle[kind.key]
        first = idle.first()
        if first is None or self.pool.owns(first.number):
            return first
        return first if self._take(kind) + len(idle) >= self.count_of(kind) else None

    def _take(self, kind: NicKind) -> int:
        out = sum(nic.kind is kind and not nic.tenants_by_id for nic in self.out_of_service.values())
        return self._in_use[kind.key] + out
