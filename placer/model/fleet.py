"""The fleet: the NICs in use, those of which another can be opened, and what runs on each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from placer.model.groups import Groups
from placer.model.nic import IdleNics, Nic, Service, Tenant, number_in
from placer.model.nic_kind import NicKind
from placer.model.pools import WHOLE_POOL, FleetJournal, Pool
from placer.model.sharded import OrderedShards, ShardedDict


class FleetObserver(Protocol):
    """Is called after every change of the fleet, to keep an index up to date."""

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """A tenant was placed on the NIC."""

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """A tenant left the NIC."""

    def changed(self, nic: Nic, before: Tenant, after: Tenant) -> None:
        """A tenant of the NIC became another one of its id."""

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

    def change(self, tenant: Tenant) -> None:
        """Let a placed tenant be another one of its id and constraints: as `remove` and `put_back`, in one step."""
        nic = self._home[tenant.id]
        if self.journal is not None or len(nic.tenants_by_id) == 1:
            self.put_back(tenant, self.remove(tenant.id))
            return
        before = nic.tenants_by_id.pop(tenant.id)
        nic.tenants_by_id[tenant.id] = tenant
        self.groups.remove(tenant.id, tenant.constraints)  # it is the last one of each group now
        self.groups.add(tenant.id, tenant.constraints, nic)
        self._count(before, nic.kind, -1)
        self._count(tenant, nic.kind, 1)
        if self.observer is not None:
            self.observer.changed(nic, before, tenant)

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
