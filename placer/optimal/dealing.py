"""Dealing: a plan that was made as if there were no groups, with tenants exchanged until no group meets itself.

What a plan costs depends on workloads and SLAs, and many tenants have the same workload. So groups seldom cost a NIC:
tenants of one workload change places, a NIC goes to another domain of the same kind, or a tenant goes where there is
room. Only who is left then gets a further NIC. The bound of the plan without groups stays a bound. Pools are no part of
it: the plan was made with them.

Conflicts are lowered one after the other (min-conflicts: Minton, Johnston, Philips and Laird, Artificial Intelligence
58, 1992, https://doi.org/10.1016/0004-3702(92)90007-K)."""

from __future__ import annotations

import heapq
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations, islice
from math import inf

from placer.model.arrival import Arrival, losses_of
from placer.model.constraints import CONSTRAINTS, GroupConstraint, kind_allows, may_share_nic
from placer.model.feasibility import feasible
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle

MOST_PEERS = 200
"""Tenants of the same workload, those with the nearest SLAs first, with which a tenant may change places."""
MOST_NICS = 500  # NICs to which a tenant may move, those with most free cores first
MOST_SECONDS, LEAST_DEALING = 20.0, 0.05
"""Seconds of exchanging, of processor time: a busy machine finds the same plan; and the least share of a search's time
limit, where that is over. Who is in conflict then gets another NIC."""
MOST_PARTS, MOST_SOUGHT = 64, 1_024
"""Parts of a group for one NIC that are tried where no NIC takes all of it, and those among which they are sought: a
large group has too many."""
MOST_LOOKS, LISTED_PER_LOOK = 250_000, 8
"""NICs that are looked at for all those that wait in the end, the highest priority first; those of which only the
tenants are listed count an eighth. Afterwards they get only further NICs. Looks are counted, not timed: the same plan
is dealt alike on any machine."""
ROUNDS = 30  # how often each tenant in conflict is looked at

Nics = list[tuple[NicKind, tuple[Tenant, ...]]]
Fits = Callable[[NicKind, Sequence[Tenant]], bool]  # whether the tenants may share a NIC of the kind, groups aside


def keep_groups(
    nics: Nics,
    unplaced: list[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    fixed: Collection[str] = (),
    *,
    departure_safe: bool = False,
    seconds: float = MOST_SECONDS,
) -> tuple[Nics, list[Tenant]]:
    """The NICs of a plan in which all groups are kept, and the tenants without a NIC.

    `nics`: those of the plan as it is. `oracles`: by kind; every SLA is met by them where it was before, of any part of
    a NIC's tenants with `departure_safe`. `fixed`: ids of the tenants that already run: they stay, whatever they meet.
    `seconds`: of exchanging, at most.
    """
    began = time.process_time()
    placed = [tenant for _, tenants in nics for tenant in tenants]
    lowest = min((tenant.priority for tenant in placed), default=0)
    if not any(tenant.constraints.values for tenant in placed) and all(
        tenant.priority <= lowest for tenant in unplaced
    ):
        return nics, unplaced

    def fits(kind: NicKind, tenants: Sequence[Tenant]) -> bool:
        fewest = 1 if departure_safe else len(tenants)
        parts = [part for size in range(fewest, len(tenants) + 1) for part in combinations(tenants, size)]
        return all(feasible(kind, oracles[kind.index], parts))

    def required(tenant: Tenant) -> float:
        hosting = next((kind for kind in kinds if kind.hosts(tenant.workload)), None)
        return tenant.required_kpps(oracles[hosting.index].solo(tenant.workload)) if hosting else 0.0

    dealing = _Dealing(nics, unplaced, kinds, fits, required, fixed)
    dealing.lower_conflicts(began + min(seconds, MOST_SECONDS))
    left = dealing.place_apart()
    return [(nic.kind, tuple(nic.tenants)) for nic in dealing.nics if nic.tenants], left


def deal_present(
    arrivals: Sequence[Arrival], nics: Sequence[tuple[NicKind, Sequence[Tenant]]], kinds: Sequence[NicKind],
    oracles: Sequence[Oracle], seconds: float = MOST_SECONDS,
) -> Nics:  # fmt: skip
    """As `keep_groups`, of a plan for a trace; as it is where some leave: then a NIC carries more than fit at once."""
    found = [(kind, tuple(tenants)) for kind, tenants in nics]
    if any(arrival.departure is not None for arrival in arrivals):
        return found
    placed = {tenant.id for _, tenants in found for tenant in tenants}
    waiting = (arrival for arrival in arrivals if arrival.id not in placed)
    # where cores are to be chosen, only a search knows how many
    unplaced = [arrival.tenant for arrival in waiting if arrival.workload.cores or arrival.workload.is_saturated]
    fixed = {arrival.id for arrival in arrivals if arrival.nic is not None}
    return keep_groups(found, unplaced, kinds, oracles, fixed, seconds=seconds)[0]


class _DealtNic:
    """A NIC, its tenants, and the cores that they leave; `fixed` where some of them already run."""

    def __init__(self, kind: NicKind, tenants: Sequence[Tenant], *, fixed: bool = False) -> None:
        self.kind, self.fixed = kind, fixed
        self.hold(tenants)

    def hold(self, tenants: Sequence[Tenant]) -> None:
        """Have these tenants from now on."""
        self.tenants = list(tenants)
        self.free_cores = self.kind.cores - self.kind.cores_taken(tenant.workload for tenant in tenants)


class _Dealing:
    """The NICs while tenants change places; parameters as of `deal`."""

    def __init__(
        self,
        nics: Sequence[tuple[NicKind, Sequence[Tenant]]],
        unplaced: Sequence[Tenant],
        kinds: Sequence[NicKind],
        fits: Fits,
        required: Callable[[Tenant], float],
        fixed: Collection[str],
    ) -> None:
        self.kinds, self.fits, self.fixed, self.required = kinds, fits, fixed, required
        self.nics = [_DealtNic(kind, of, fixed=any(tenant.id in fixed for tenant in of)) for kind, of in nics]
        self.used = Counter(nic.kind.index for nic in self.nics)
        self.nic_of = {tenant.id: nic for nic in self.nics for tenant in nic.tenants}
        self.waiting = list(unplaced)
        self.groups: defaultdict[tuple[str, str], list[Tenant]] = defaultdict(list)
        self.peers: defaultdict[int, list[tuple[float, str, Tenant]]] = defaultdict(list)
        self.roomy: list[_DealtNic] = []
        self.alike: dict[str, int] = {}
        self.classes: dict[object, int] = {}
        self.cores: dict[tuple[int, int], float] = {}
        self.bonds: dict[str, list[tuple[bool, bool, int, list[Tenant]]]] = {}
        self.can_share: dict[frozenset[str], bool] = {}
        self.looks = 0
        self.tried: set[tuple[str, int]] = set()  # tenants and NICs where they were in conflict
        tenants = [*(tenant for nic in self.nics for tenant in nic.tenants), *unplaced]
        self.lowest = min((tenant.priority for tenant in tenants), default=0)
        for tenant in tenants:
            for name, value in tenant.constraints.values:
                if issubclass(CONSTRAINTS[name], GroupConstraint):
                    self.groups[name, value].append(tenant)
            if tenant.id not in fixed:
                self.peers[self._alike(tenant)].append((required(tenant), tenant.id, tenant))
        for alike in self.peers.values():
            alike.sort(key=lambda peer: peer[:2])

    def _alike(self, tenant: Tenant) -> int:
        """The number of the class of tenants that have the same workload, and the same kinds."""
        if tenant.id not in self.alike:
            allowed = (kind_allows(kind, tenant) for kind in self.kinds)
            of_class = tenant.workload, tenant.day, *allowed
            self.alike[tenant.id] = self.classes.setdefault(of_class, len(self.classes))
        return self.alike[tenant.id]

    def _cores(self, kind: NicKind, tenant: Tenant) -> float:
        """The cores that a NIC of the kind gives the tenant; infinite where it may not be on one."""
        key = self._alike(tenant), kind.index
        if key not in self.cores:
            able = kind.hosts(tenant.workload) and kind_allows(kind, tenant)
            self.cores[key] = kind.cores_for(tenant.workload) if able else inf
        return self.cores[key]

    def lower_conflicts(self, deadline: float) -> None:
        """Exchange tenants and domains as long as a conflict can be avoided.

        Where none can be, a tenant changes places with one that then is in conflict instead, and has other places.
        """
        for _ in range(ROUNDS):
            if time.process_time() >= deadline:
                return
            self.roomy = sorted(self.nics, key=lambda nic: -nic.free_cores)[:MOST_NICS]
            waiting = [tenant for nic in self.nics for tenant in nic.tenants if self._conflicts(tenant)]
            if not waiting:
                return
            for tenant in waiting:
                if time.process_time() < deadline and self._conflicts(tenant):
                    bundle = self._bound_together(tenant)
                    hopeless = len(bundle) > 1 and not self._can_share(bundle)
                    if not hopeless and not self._lower(tenant, bundle) and self._moves(tenant):
                        any(self._exchange(tenant, peer, sideways=True) for peer in self._nearest(tenant))

    def place_apart(self) -> list[Tenant]:
        """Tenants that are still in conflict leave their NICs, and these and those without a NIC get one where there
        is one; who is left without."""
        in_order = sorted((tenant for nic in self.nics for tenant in nic.tenants), key=lambda tenant: tenant.priority)
        for tenant in in_order:
            if self._conflicts(tenant):
                for other in self._bound_together(tenant):
                    if other.id in self.nic_of and self._moves(other):
                        home = self.nic_of.pop(other.id)
                        home.hold([stays for stays in home.tenants if stays is not other])
                        self.waiting.append(other)
        self.roomy = sorted(self.nics, key=lambda nic: -nic.free_cores)[:MOST_NICS]
        left = []
        self.waiting.sort(key=lambda other: other.priority)
        while self.waiting:
            tenant = self.waiting.pop()
            bundle = [other for other in self._bound_together(tenant) if other.id not in self.nic_of]
            bundle.sort(key=lambda other: (other is not tenant, -other.priority))
            if tenant.id not in self.nic_of:
                any(map(self._place, self._parts(bundle)))
            if tenant.id not in self.nic_of and not self._displace(tenant):
                left.append(tenant)
        return left

    def _parts(self, bundle: list[Tenant]) -> Iterator[list[Tenant]]:
        """Who must share a NIC, then larger and smaller parts of them; of several priorities, only the lowest go."""
        yield bundle
        if len(bundle) > 1 and len({tenant.priority for tenant in bundle}) == 1:
            sizes = range(len(bundle) - 1, 0, -1)
            parts = islice((list(part) for size in sizes for part in combinations(bundle, size)), MOST_SOUGHT)
            yield from islice(filter(self._can_share, parts), MOST_PARTS)
        yield from (bundle[:size] for size in range(len(bundle) - 1, 0, -1))

    def _displace(self, tenant: Tenant) -> bool:
        """Put the tenant in the place of as few of lower priority as are found, the lowest first; they then wait."""
        if tenant.priority <= self.lowest or self.looks >= MOST_LOOKS:
            return False
        self.looks += len(self.nics) // LISTED_PER_LOOK
        for at, gone in islice(self._leaving_for(tenant), MOST_NICS):
            self.looks += 1
            nic = self.nics[at]
            together = [other for other in nic.tenants if other not in gone] + [tenant]
            if not nic.kind.fits([other.workload for other in together]):
                continue
            homes = {other.id: self.nic_of.pop(other.id) for other in gone}
            self.nic_of[tenant.id] = nic
            if not any(map(self._conflicts, together)) and self.fits(nic.kind, together):
                nic.hold(together)
                self.waiting = sorted([*self.waiting, *gone], key=lambda other: other.priority)
                return True
            self.nic_of |= homes
            del self.nic_of[tenant.id]
        return False

    def _leaving_for(self, tenant: Tenant) -> Iterator[tuple[int, tuple[Tenant, ...]]]:
        """The number of a NIC, and who may leave it for the tenant: the fewest first, of equally many the lowest."""
        lower = [
            (at, [other for other in nic.tenants if other.priority < tenant.priority and self._moves(other)])
            for at, nic in enumerate(self.nics)
            if kind_allows(nic.kind, tenant)
        ]
        for number in range(1, max((len(leaving) for _, leaving in lower), default=0) + 1):
            sets = ((losses_of(gone), at, gone) for at, leaving in lower for gone in combinations(leaving, number))
            for _, at, gone in heapq.nsmallest(MOST_NICS, sets, key=lambda found: found[:2]):
                yield at, gone

    # Conflicts of a tenant where it is now.

    def _conflicts(self, tenant: Tenant) -> int:
        """How many others the tenant must not be with, or must be with and is not; none of those that already run
        is in conflict with another one."""
        nic = self.nic_of.get(tenant.id)
        if nic is None or not tenant.constraints.values:
            return 0
        found = sum(
            not may_share_nic((tenant, other))
            for other in nic.tenants  # of which some may be about to leave
            if self.nic_of.get(other.id) is nic and not (other.id in self.fixed and tenant.id in self.fixed)
        )
        for same, by_domain, most, members in self._bonds(tenant):
            place, others, shared = _place_of(nic, by_domain), 0, 0
            for other in members:
                home = self.nic_of.get(other.id)
                if other is tenant or home is None or (other.id in self.fixed and tenant.id in self.fixed):
                    continue
                others += 1
                shared += _place_of(home, by_domain) == place
            found += others - shared if same else max(shared - most + 1, 0)
        return found

    def _bonds(self, tenant: Tenant) -> list[tuple[bool, bool, int, list[Tenant]]]:
        """The groups of the tenant that have others: whether they share a place, whether that is a domain, and how many
        may be in one."""
        if tenant.id not in self.bonds:
            found = self.bonds[tenant.id] = []
            for name, value in tenant.constraints.values:
                constraint, members = CONSTRAINTS[name], self.groups.get((name, value), [])
                if len(members) > 1 and issubclass(constraint, GroupConstraint):
                    found.append((constraint.same, constraint.by_domain, constraint.most(value), members))
        return self.bonds[tenant.id]

    def _on(self, *nics: _DealtNic) -> int:
        return sum(self._conflicts(tenant) for nic in nics for tenant in nic.tenants)

    def _moves(self, tenant: Tenant) -> bool:
        return tenant.id not in self.fixed

    def _bound_together(self, tenant: Tenant) -> list[Tenant]:
        """The tenant and all that must be on its NIC, directly or by others."""
        found, waiting = {tenant.id: tenant}, [tenant]
        while waiting:
            for name, value in waiting.pop().constraints.values:
                constraint = CONSTRAINTS[name]
                if issubclass(constraint, GroupConstraint) and constraint.same:
                    more = [other for other in self.groups[name, value] if other.id not in found]
                    found |= {other.id: other for other in more}
                    waiting += more
        return list(found.values())

    # Moves, each kept only where it lowers conflicts.

    def _lower(self, tenant: Tenant, bundle: Sequence[Tenant]) -> bool:
        nic = self.nic_of[tenant.id]
        if self._moves(tenant):
            if len(bundle) > 1 and self._gather(bundle):
                return True
            if any(self._exchange(tenant, peer) for peer in self._nearest(tenant)):
                return True
            able = (g for g in self.roomy if g is not nic and self._cores(g.kind, tenant) <= g.free_cores)
            if any(self._move(tenant, goal) for goal in able):
                return True
        return not nic.fixed and any(self._rehome(nic, kind) for kind in self.kinds if kind is not nic.kind)

    def _nearest(self, tenant: Tenant) -> Iterator[Tenant]:
        """Tenants that may take its place, those with the nearest SLAs first."""
        peers, need = self.peers[self._alike(tenant)], self.required(tenant)
        high = bisect_left(peers, (need, tenant.id), key=lambda peer: peer[:2])
        low = high - 1
        for _ in range(MOST_PEERS):
            if low < 0 and high >= len(peers):
                return
            below = low >= 0 and (high >= len(peers) or need - peers[low][0] <= peers[high][0] - need)
            yield peers[low if below else high][2]
            low, high = (low - 1, high) if below else (low, high + 1)

    def _exchange(self, tenant: Tenant, peer: Tenant, *, sideways: bool = False) -> bool:
        home, other = self.nic_of[tenant.id], self.nic_of.get(peer.id)
        if other is None or home is other or (tenant.id, id(other)) in self.tried:
            return False
        before = self._conflicts(tenant) + self._conflicts(peer) + sideways
        self.nic_of[tenant.id], self.nic_of[peer.id] = other, home
        fewer = self._conflicts(tenant) + self._conflicts(peer) < before
        self.nic_of[tenant.id], self.nic_of[peer.id] = home, other
        if not fewer:
            return False
        self._swap(tenant, peer)
        if self._fit(home, other):
            self.tried.add((tenant.id, id(home)))
            return True
        self._swap(peer, tenant)
        return False

    def _swap(self, tenant: Tenant, peer: Tenant) -> None:
        home, other = self.nic_of[tenant.id], self.nic_of[peer.id]
        home.tenants[home.tenants.index(tenant)] = peer
        other.tenants[other.tenants.index(peer)] = tenant
        self.nic_of[tenant.id], self.nic_of[peer.id] = other, home

    def _fit(self, *nics: _DealtNic) -> bool:
        return all(self.fits(nic.kind, nic.tenants) for nic in nics)

    def _move(self, tenant: Tenant, goal: _DealtNic) -> bool:
        source = self.nic_of[tenant.id]
        before = self._conflicts(tenant)
        self.nic_of[tenant.id] = goal
        fewer = self._conflicts(tenant) < before
        self.nic_of[tenant.id] = source
        if fewer and self.fits(goal.kind, [*goal.tenants, tenant]):
            self._carry(tenant, source, goal)
            return True
        return False

    def _carry(self, tenant: Tenant, source: _DealtNic, goal: _DealtNic) -> None:
        source.hold([other for other in source.tenants if other is not tenant])
        goal.hold([*goal.tenants, tenant])
        self.nic_of[tenant.id] = goal

    def _rehome(self, nic: _DealtNic, kind: NicKind) -> bool:
        """Give the NIC another domain, or exchange domains with another one where there are no more there."""
        if not _are_like(kind, nic.kind):
            return False
        free = kind.count is None or self.used[kind.index] < kind.count
        alike = (other for other in self.nics if other.kind is kind and not other.fixed)
        others: list[_DealtNic | None] = [None] if free else list(islice(alike, MOST_NICS))
        for other in others:
            both = [nic] if other is None else [nic, other]
            before, was = self._on(*both), nic.kind
            nic.kind = kind
            if other is not None:
                other.kind = was
            if self._on(*both) < before:
                self.used[kind.index] += other is None
                self.used[was.index] -= other is None
                return True
            nic.kind = was
            if other is not None:
                other.kind = kind
        return False

    def _can_share(self, bundle: Sequence[Tenant]) -> bool:
        """Whether a NIC of any kind carries these alone; else no exchange is tried, on any of many NICs."""
        ids = frozenset(tenant.id for tenant in bundle)
        if ids not in self.can_share:
            workloads = [tenant.workload for tenant in bundle]
            able = (kind for kind in self.kinds if kind.fits(workloads))
            self.can_share[ids] = any(self.fits(kind, bundle) for kind in able)
        return self.can_share[ids]

    def _gather(self, bundle: Sequence[Tenant]) -> bool:
        """Bring together who must share a NIC, in exchange for others of the same workloads or where there is room."""
        homes = list(dict.fromkeys(self.nic_of[tenant.id] for tenant in bundle if tenant.id in self.nic_of))
        before, together = sum(map(self._conflicts, bundle)), {tenant.id for tenant in bundle}
        for goal in dict.fromkeys([*homes, *self.roomy]):
            if not self._takes(goal, bundle, together):
                continue
            kept = [(nic, list(nic.tenants)) for nic in dict.fromkeys([goal, *homes])]
            for tenant in bundle:
                source = self.nic_of.get(tenant.id)
                if source is None or source is goal or not self._moves(tenant):
                    continue
                alike = (o for o in goal.tenants if o.id not in together and self._alike(o) == self._alike(tenant))
                peer = next(filter(self._moves, alike), None)
                if peer is None:
                    self._carry(tenant, source, goal)
                else:
                    self._swap(tenant, peer)
            touched = [nic for nic, _ in kept if nic.tenants]
            met = any(self._conflicts(tenant) for nic in touched for tenant in nic.tenants if tenant.id not in together)
            if sum(map(self._conflicts, bundle)) < before and not met and self._fit(*touched):
                return True
            for nic, tenants in kept:
                nic.hold(tenants)
                self.nic_of |= {tenant.id: nic for tenant in tenants}
        return False

    def _takes(self, goal: _DealtNic, bundle: Sequence[Tenant], together: Collection[str]) -> bool:
        """Whether a NIC has the cores for these, in exchange for others alike as far as it has such."""
        alike = [self._alike(other) for other in goal.tenants if other.id not in together and self._moves(other)]
        needed = 0.0
        for tenant in bundle:
            of_class = self._alike(tenant)
            if self.nic_of.get(tenant.id) in (None, goal) or not self._moves(tenant):
                continue
            if of_class in alike:
                alike.remove(of_class)
            else:
                needed += self._cores(goal.kind, tenant)
        return needed <= goal.free_cores

    def _place(self, bundle: Sequence[Tenant]) -> bool:
        """Put these on one NIC: the fullest that takes them, else a further one."""
        in_use = sorted(self.roomy, key=lambda nic: nic.free_cores) if self.looks < MOST_LOOKS else []
        cheapest = sorted(self.kinds, key=lambda kind: kind.cost)
        new = [_DealtNic(kind, []) for kind in cheapest if kind.count is None or self.used[kind.index] < kind.count]
        needed = [sum(self._cores(kind, tenant) for tenant in bundle) for kind in self.kinds]
        for nic in [*in_use, *new]:
            if needed[nic.kind.index] > nic.free_cores:
                continue
            self.looks += 1
            self.nic_of |= {tenant.id: nic for tenant in bundle}
            together = [*nic.tenants, *bundle]
            if not any(map(self._conflicts, together)) and self.fits(nic.kind, together):
                if nic in new:
                    self.nics.append(nic)
                    self.roomy = [nic, *self.roomy[:MOST_NICS]]
                    self.used[nic.kind.index] += 1
                nic.hold(together)
                return True
        for tenant in bundle:
            self.nic_of.pop(tenant.id, None)
        return False


def _place_of(nic: _DealtNic, by_domain: bool) -> object:
    return (nic.kind.domain or nic) if by_domain else nic


def _are_like(kind: NicKind, other: NicKind) -> bool:
    """Whether NICs of the kinds differ at most in their domain."""
    return (kind.model, kind.cores, kind.cost, kind.pool) == (other.model, other.cores, other.cost, other.pool) and (
        kind.cores_of == other.cores_of
    )
