"""Dealing: a plan that was made as if there were no groups, with tenants exchanged until no group meets itself.

What a plan costs depends on workloads and SLAs, and many tenants have the same workload. So groups seldom cost a NIC:
tenants of one workload change places, a NIC goes to another domain of the same kind, or a tenant goes where there is
room. Only who is left then gets a further NIC. The bound of the plan without groups stays a bound. Pools are no part of
it: the plan was made with them.

Conflicts are lowered one after the other (min-conflicts: Minton, Johnston, Philips and Laird, Artificial Intelligence
58, 1992, https://doi.org/10.1016/0004-3702(92)90007-K).
"""

from __future__ import annotations

import heapq
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from placer.model.arrival import Arrival, losses_of
from placer.model.constraints import CONSTRAINTS, GroupConstraint, domain_of, kind_allows, may_share_nic
from placer.model.feasibility import feasible
from placer.model.fleet import NicKind, Tenant
from placer.model.oracle import Oracle

MOST_PEERS = 200
"""Tenants of the same workload, those with the nearest SLAs first, with which a tenant may change places."""
MOST_NICS = 500  # NICs to which a tenant may move, those with most free cores first
MOST_SECONDS = 20.0  # of exchanging; who is in conflict then gets another NIC
ROUNDS = 30  # how often each tenant in conflict is looked at

Nics = list[tuple[NicKind, tuple[Tenant, ...]]]
Fits = Callable[[NicKind, Sequence[Tenant]], bool]
"""Whether the tenants may share a NIC of the kind, groups aside."""


def keep_groups(
    nics: Nics,
    unplaced: list[Tenant],
    kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
    fixed: Collection[str] = (),
    *,
    departure_safe: bool = False,
) -> tuple[Nics, list[Tenant]]:
    """The NICs of a plan in which all groups are kept, and the tenants without a NIC.

    `nics`: those of the plan as it is. `oracles`: by kind; every SLA is met by them where it was before, of any part of
    a NIC's tenants with `departure_safe`. `fixed`: ids of the tenants that already run: they stay, whatever they meet.
    """
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
    dealing.lower_conflicts()
    left = dealing.place_apart()
    return [(nic.kind, tuple(nic.tenants)) for nic in dealing.nics if nic.tenants], left


def deal_present(
    arrivals: Sequence[Arrival], nics: Sequence[tuple[NicKind, Sequence[Tenant]]], kinds: Sequence[NicKind],
    oracles: Sequence[Oracle],
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
    return keep_groups(found, unplaced, kinds, oracles, fixed)[0]


@dataclass(eq=False)
class _DealtNic:
    """A NIC, and its tenants; `fixed` where some of them already run."""

    kind: NicKind
    tenants: list[Tenant]
    fixed: bool = False

    @property
    def free_cores(self) -> int:
        return self.kind.cores - self.kind.cores_taken(tenant.workload for tenant in self.tenants)


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
        self.nics = [_DealtNic(kind, list(of), any(tenant.id in fixed for tenant in of)) for kind, of in nics]
        self.used = Counter(nic.kind.index for nic in self.nics)
        self.nic_of = {tenant.id: nic for nic in self.nics for tenant in nic.tenants}
        self.waiting = list(unplaced)
        self.groups: defaultdict[tuple[str, str], list[Tenant]] = defaultdict(list)
        self.peers: defaultdict[object, list[tuple[float, str, Tenant]]] = defaultdict(list)
        self.deadline = time.monotonic() + MOST_SECONDS
        self.roomy: list[_DealtNic] = []
        self.alike: dict[str, object] = {}
        self.can_share: dict[frozenset[str], bool] = {}
        self.tried: set[tuple[str, int]] = set()  # tenants and NICs where they were in conflict
        for tenant in [*(tenant for nic in self.nics for tenant in nic.tenants), *unplaced]:
            for name, value in tenant.constraints.values:
                if issubclass(CONSTRAINTS[name], GroupConstraint):
                    self.groups[name, value].append(tenant)
            if tenant.id not in fixed:
                self.peers[self._alike(tenant)].append((required(tenant), tenant.id, tenant))
        for alike in self.peers.values():
            alike.sort(key=lambda peer: peer[:2])

    def _alike(self, tenant: Tenant) -> object:
        if tenant.id not in self.alike:
            allowed = (kind_allows(kind, tenant) for kind in self.kinds)
            self.alike[tenant.id] = tenant.workload, tenant.day, *allowed
        return self.alike[tenant.id]

    def lower_conflicts(self) -> None:
        """Exchange tenants and domains as long as a conflict can be avoided.

        Where none can be, a tenant changes places with one that then is in conflict instead, and has other places.
        """
        for _ in range(ROUNDS):
            if time.monotonic() >= self.deadline:
                return
            self.roomy = sorted(self.nics, key=lambda nic: -nic.free_cores)[:MOST_NICS]
            waiting = [tenant for nic in self.nics for tenant in nic.tenants if self._conflicts(tenant)]
            if not waiting:
                return
            for tenant in waiting:
                late = time.monotonic() >= self.deadline
                if not late and self._conflicts(tenant) and not self._lower(tenant) and self._moves(tenant):
                    any(self._exchange(tenant, peer, sideways=True) for peer in self._nearest(tenant))

    def place_apart(self) -> list[Tenant]:
        """Tenants that are still in conflict leave their NICs, and these and those without a NIC get one where there
        is one; who is left without."""
        in_order = sorted((tenant for nic in self.nics for tenant in nic.tenants), key=lambda tenant: tenant.priority)
        for tenant in in_order:
            if self._conflicts(tenant):
                for other in self._bound_together(tenant):
                    if other.id in self.nic_of and self._moves(other):
                        self.nic_of.pop(other.id).tenants.remove(other)
                        self.waiting.append(other)
        self.roomy = sorted(self.nics, key=lambda nic: -nic.free_cores)[:MOST_NICS]
        left = []
        while self.waiting:
            self.waiting.sort(key=lambda other: other.priority)
            tenant = self.waiting.pop()
            bundle = [other for other in self._bound_together(tenant) if other.id not in self.nic_of]
            bundle.sort(key=lambda other: (other is not tenant, -other.priority))
            while tenant.id not in self.nic_of and bundle and not self._place(bundle):
                bundle.pop()
            if tenant.id not in self.nic_of and not self._displace(tenant):
                left.append(tenant)
        return left

    def _displace(self, tenant: Tenant) -> bool:
        """Put the tenant in the place of as few of lower priority as are found, the lowest first; they then wait."""
        lower = []
        for at, nic in enumerate(self.nics):
            if kind_allows(nic.kind, tenant):
                leaving = [other for other in nic.tenants if other.priority < tenant.priority and self._moves(other)]
                lower += [
                    (number, losses_of(gone), at, gone)
                    for number in range(1, len(leaving) + 1)
                    for gone in combinations(leaving, number)
                ]
        for _, _, at, gone in heapq.nsmallest(MOST_NICS, lower, key=lambda found: found[:3]):
            nic = self.nics[at]
            together = [other for other in nic.tenants if other not in gone] + [tenant]
            if not nic.kind.fits([other.workload for other in together]):
                continue
            homes = {other.id: self.nic_of.pop(other.id) for other in gone}
            self.nic_of[tenant.id] = nic
            if not any(map(self._conflicts, together)) and self.fits(nic.kind, together):
                nic.tenants = together
                self.waiting += gone
                return True
            self.nic_of |= homes
            del self.nic_of[tenant.id]
        return False

    # Conflicts of a tenant where it is now.

    def _conflicts(self, tenant: Tenant) -> int:
        """How many others the tenant must not be with, or must be with and is not; none of those that already run
        is in conflict with another one."""
        nic = self.nic_of.get(tenant.id)
        if nic is None or not tenant.constraints.values:
            return 0
        found = sum(
            not may_share_nic((tenant, other))
            for other in nic.tenants
            if not (other.id in self.fixed and tenant.id in self.fixed)
        )
        for name, value in tenant.constraints.values:
            members = self.groups.get((name, value), ())
            if len(members) < 2:
                continue
            constraint = CONSTRAINTS[name]
            assert issubclass(constraint, GroupConstraint)
            place, others, shared = self._place_of(nic, constraint), 0, 0
            for other in members:
                home = self.nic_of.get(other.id)
                if other.id == tenant.id or home is None or (other.id in self.fixed and tenant.id in self.fixed):
                    continue
                others += 1
                shared += self._place_of(home, constraint) == place
            found += others - shared if constraint.same else max(shared - constraint.most(value) + 1, 0)
        return found

    @staticmethod
    def _place_of(nic: _DealtNic, constraint: type[GroupConstraint]) -> object:
        name = str(id(nic))
        return domain_of(nic.kind, name) if constraint.by_domain else name

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

    def _lower(self, tenant: Tenant) -> bool:
        nic = self.nic_of[tenant.id]
        if self._moves(tenant):
            bundle = self._bound_together(tenant)
            if len(bundle) > 1 and self._can_share(bundle) and self._gather(bundle):
                return True
            if any(self._exchange(tenant, peer) for peer in self._nearest(tenant)):
                return True
            if any(self._move(tenant, goal) for goal in self.roomy if goal is not nic):
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
        one, other = self.nic_of[tenant.id], self.nic_of.get(peer.id)
        if other is None or one is other or (tenant.id, id(other)) in self.tried:
            return False
        before = self._conflicts(tenant) + self._conflicts(peer) + sideways
        self._swap(tenant, peer)
        if self._conflicts(tenant) + self._conflicts(peer) < before and self._fit(one, other):
            self.tried.add((tenant.id, id(one)))
            return True
        self._swap(peer, tenant)
        return False

    def _swap(self, tenant: Tenant, peer: Tenant) -> None:
        one, other = self.nic_of[tenant.id], self.nic_of[peer.id]
        one.tenants[one.tenants.index(tenant)] = peer
        other.tenants[other.tenants.index(peer)] = tenant
        self.nic_of[tenant.id], self.nic_of[peer.id] = other, one

    def _fit(self, *nics: _DealtNic) -> bool:
        return all(self.fits(nic.kind, nic.tenants) for nic in nics)

    def _move(self, tenant: Tenant, goal: _DealtNic) -> bool:
        source = self.nic_of[tenant.id]
        before = self._conflicts(tenant)
        self._carry(tenant, source, goal)
        if self._conflicts(tenant) < before and self._fit(goal):
            return True
        self._carry(tenant, goal, source)
        return False

    def _carry(self, tenant: Tenant, source: _DealtNic, goal: _DealtNic) -> None:
        source.tenants.remove(tenant)
        goal.tenants.append(tenant)
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
                nic.tenants = tenants
                self.nic_of |= {tenant.id: nic for tenant in tenants}
        return False

    def _place(self, bundle: Sequence[Tenant]) -> bool:
        """Put these on one NIC: the fullest that takes them, else a further one."""
        in_use = sorted(self.roomy, key=lambda nic: nic.free_cores)
        cheapest = sorted(self.kinds, key=lambda kind: kind.cost)
        new = [_DealtNic(kind, []) for kind in cheapest if kind.count is None or self.used[kind.index] < kind.count]
        for nic in [*in_use, *new]:
            together, workloads = [*nic.tenants, *bundle], [tenant.workload for tenant in (*nic.tenants, *bundle)]
            if not all(kind_allows(nic.kind, tenant) for tenant in bundle) or not nic.kind.fits(workloads):
                continue
            self.nic_of |= {tenant.id: nic for tenant in bundle}
            if not any(map(self._conflicts, together)) and self.fits(nic.kind, together):
                if nic in new:
                    self.nics.append(nic)
                    self.roomy = [nic, *self.roomy[:MOST_NICS]]
                    self.used[nic.kind.index] += 1
                nic.tenants = together
                return True
        for tenant in bundle:
            self.nic_of.pop(tenant.id, None)
        return False


def _are_like(one: NicKind, other: NicKind) -> bool:
    """Whether NICs of the kinds differ at most in their domain."""
    return (one.model, one.cores, one.cost, one.pool) == (other.model, other.cores, other.cost, other.pool) and (
        one.cores_of == other.cores_of
    )
