"""The selector: picks a NIC for an arrival by a rule, from an index per kind that follows the fleet."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from placer.model.constraints import AllowedNics, places_for
from placer.model.feasibility import keeps_slas
from placer.model.fleet import Fleet
from placer.model.gpu_oracle import GpuOracle
from placer.model.nic import Nic, Service, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.policy.forecast import MAX_REMEMBERED_ARRIVALS
from placer.policy.nic_index import (
    Families,
    IndexPerKind,
    NicIndex,
    Rebuild,
    TableWorkloads,
    best_of,
    index_of,
    last_resort_of,
    rank_over,
)
from placer.policy.pattern_table import MOST_PATTERNS, LoosestSlas, PatternTable, TooManyPatterns
from placer.policy.rejection import Reason, Tally, why_rejected
from placer.policy.rules import CLOSING_ARRIVALS, LOOK_AHEAD, Rule, is_due
from placer.policy.sampled_index import SampledIndex
from profiles import Workload

NO_INDEXES = IndexPerKind()
FORECAST_FROM = 5  # smallest number of arrivals from which future ones are forecast; before, all NICs score the same

FEW_WORKLOADS = 8
"""Up to so many workloads, all co-locations are predicted in advance, even if every workload came only once."""

RENEWED_AFTER = 25  # arrivals after which the forecast is renewed at the earliest
RENEWED_EVERY = 65_536  # arrivals after which the forecast is renewed at the latest

TURNOVER_WEIGHT = 10.0
"""How much more opening a NIC costs where tenants leave, which fills and empties NICs anyway: in multiples of the
rule's opening cost, where as many leave as arrive."""

REBUILD_STEPS = 3  # steps of a rebuild per event; each takes 0.4 to 2 ms
RENEWED_GROWTH = 0.25  # between, the forecast is renewed when this share more arrivals have come


class Selector:
    """Watches a fleet, and picks for an arrival the NIC that the rule prefers among those on which every SLA is met.

    `most_patterns`: largest number of useful co-locations that are predicted in advance. `arrivals`: how many arrivals
    come in all; None where that is not known. `expected`: tenants like those that will come: their co-locations are
    predicted before the first arrival. `stand_ins`: whether an arrival with traffic that no table holds is compared as
    another workload; no decision waits for a table then. `indexes`, `others`: own NICs; those of other agents, once one
    was needed. `everywhere`: whether NICs of other agents are compared with own ones. Else they are asked only before
    an arrival is rejected.
    """

    def __init__(
        self,
        fleet: Fleet,
        oracles: Sequence[Oracle],
        rule: Rule = LOOK_AHEAD,
        *,
        most_patterns: int = MOST_PATTERNS,
        arrivals: int | None = None,
        expected: Sequence[Tenant] = (),
        stand_ins: bool = False,
    ) -> None:
        self._length = arrivals
        self._stand_ins = stand_ins
        self.fleet = fleet
        self.most_patterns = most_patterns
        self.oracles = oracles
        self.rule = rule
        self.indexes = IndexPerKind()
        self.others: IndexPerKind | None = None
        self.everywhere = False
        self._in_trial = False
        self._opens_early = rule.opening_cost is not None and any(kind.count is None for kind in fleet.kinds)
        self._has_gpus = any(isinstance(oracle, GpuOracle) for oracle in oracles)
        self._places: AllowedNics | None = None
        self._covered: Tenant | None = None
        self._included: Tenant | None = None
        self._families = Families(fleet.kinds, oracles)
        self._tables: Sequence[PatternTable | None] = [None] * len(fleet.kinds)
        self._workloads: set[Workload] = set()
        self._latest_of: dict[str, Workload] = {}
        self._loosest = LoosestSlas()
        self._sampled = False
        self._rebuild: Rebuild | None = None
        self._recent: deque[Tenant] = deque(maxlen=MAX_REMEMBERED_ARRIVALS)
        self._table_workloads = TableWorkloads(expected, self._recent)
        fleet.observer = self
        present = [tenant for nic in fleet.nics.values() for tenant in nic.tenants_by_id.values()]
        self._own_loads = sum(not tenant.workload.is_plain for tenant in present)
        self._latest_of.update((tenant.workload.nf, tenant.workload) for tenant in present)
        self._recent.extend(present)
        self._arrivals = len(present)
        self.departures = 0
        self._renew_at = self._next_renewal() if present else FORECAST_FROM
        known = [*present, *expected]
        self._workloads |= self._table_workloads.chosen() if stand_ins else {tenant.workload for tenant in known}
        for tenant in known:
            self._loosest.include(tenant)
        if known:
            self._include(known[0])
        if expected and stand_ins:
            self._load_kernels(expected[0])

    def choose(self, tenant: Tenant) -> Nic | NicKind | None:
        """The NIC in use that takes the tenant, or the kind of which to open one; None when no NIC fits."""
        if self._is_new(tenant):
            self._include(tenant)
        places = places_for(self.fleet, tenant)
        if places is None:
            return self._choose(tenant)
        if places.only is not None:
            return self._beside_group(places, places.only, tenant)
        with self._within(places):
            return self._choose(tenant)

    def _choose(self, tenant: Tenant) -> Nic | NicKind | None:
        best = best_of(self._compare(), tenant)
        if best is None:
            return self._beyond(tenant)
        # a sampled index scores a new NIC above any other
        early = self._opens_early and (self._has_gpus or not self._sampled)
        new = self._cheapest_new(tenant) if early else None
        return new[1] if new is not None and self._opens(new, best[0]) else best[1]

    @contextmanager
    def _within(self, places: AllowedNics) -> Iterator[None]:
        """A time in which only NICs are compared that constraints leave to an arrival."""
        self._restrict(places)
        try:
            yield
        finally:
            self._restrict(None)

    def _restrict(self, places: AllowedNics | None) -> None:
        """Compare only NICs that constraints leave to an arrival from now on; None for all."""
        self._places = places
        for index in self._known_indexes:
            index.restrict(places)

    @property
    def _known_indexes(self) -> Sequence[NicIndex]:
        """Every index that there is by now, once."""
        return [*self.indexes.each, *(self.others.each if self.others else ())]

    def _allowed(self, indexes: IndexPerKind) -> Sequence[NicIndex]:
        """Each of these indexes once, but for those without a kind that constraints leave to this tenant."""
        if self._places is None:
            return indexes.each
        kinds = self._places.kinds
        return [index for index in indexes.each if not kinds.isdisjoint(index.kinds)]

    def _beside_group(self, places: AllowedNics, nic: Nic, tenant: Tenant) -> Nic | None:
        """The NIC of the tenant's group, if every SLA is met there."""
        taken = nic.service is not Service.UP or not places.allow(nic)
        oracle = self.oracles[nic.kind.index]
        return None if taken or not keeps_slas(nic.kind, oracle, [*nic.tenants, tenant]) else nic

    def has_predicted(self, tenant: Tenant) -> bool:
        """Whether a decision on the tenant needs no new table, so that asking changes nothing."""
        return bool(self.indexes) and not self._is_new(tenant)

    def rank(self, tenant: Tenant, most: int) -> list[tuple[float, Nic | NicKind]]:
        """Scores and NICs, or kinds of which to open one, that take the tenant, best first and one of each class.

        The first is the one that `choose` returns; of a tenant that `has_predicted`.
        """
        places = places_for(self.fleet, tenant)
        if places is not None and places.only is not None:
            nic = self._beside_group(places, places.only, tenant)
            return [] if nic is None else [(0.0, nic)]
        with self.trial(), nullcontext() if places is None else self._within(places):
            return self._rank(tenant, most)

    def _rank(self, tenant: Tenant, most: int) -> list[tuple[float, Nic | NicKind]]:
        found = rank_over(self._compare(), tenant, most)
        new = self._cheapest_new(tenant)
        if new is None and not found:
            found = rank_over(self._allowed(self._others()), tenant, most)
            first = self._beyond(tenant)
            if first is not None and (not found or found[0][1] is not first):
                found = [(math.inf, first), *found]
        if new is not None and (not found or self._opens(new, found[0][0])):
            found = [new, *found]
        elif new is not None:
            found.append((math.inf, new[1]))
        return found[:most]

    def _opens(self, new: tuple[float, NicKind], best: float) -> bool:
        """Whether the rule rather opens a NIC of this kind, at its score, than use the best one, at that score."""
        if self.rule.opening_cost is None or new[1].count is not None:
            return False
        return best > new[0] + self._opening_cost() * new[1].cost

    @contextmanager
    def trial(self) -> Iterator[None]:
        """A time in which tenants that `has_predicted` are placed only to be removed again, which leaves no trace."""
        if self._in_trial:
            yield
            return
        departures, indexes = self.departures, self._known_indexes
        self._in_trial = True
        for index in indexes:
            index.begin_trial()
        try:
            yield
        finally:
            self._in_trial, self.departures = False, departures
            for index in indexes:
                index.end_trial()

    def scores_on(self, tenant: Tenant, nics: Sequence[Nic]) -> dict[str, float]:
        """By NIC in use that takes the tenant, its score there, the lower the better; infinite where not known."""
        by_index: defaultdict[NicIndex, list[Nic]] = defaultdict(list)
        for nic in nics:
            indexes = self.indexes if self.fleet.pool.owns(nic.number) else self._others()
            by_index[indexes[nic.kind.index]].append(nic)
        found: dict[str, float] = {}
        for index, some in by_index.items():
            found |= zip((nic.id for nic in some), index.scores_on(tenant, some), strict=True)
        return found

    def expects(self, nic: Nic, before: Tenant, after: Tenant, headroom: float) -> bool | None:
        """As of a `SampledIndex`; None where it is another index, too."""
        index = self._index_of(nic)
        return index.expects(nic, before, after, headroom) if isinstance(index, SampledIndex) else None

    def has_cores(self) -> Callable[[Workload], bool]:
        """What says of a workload whether any NIC has the cores for it, as the fleet is now."""
        free = {kind.index: kind.cores for kind in self.fleet.available()}
        for indexes in (self.indexes, self._others()):
            most = {index: index.most_free() for index in indexes.each}
            for number, index in enumerate(indexes):
                free[number] = max(free.get(number, 0), most[index])
        found = [(kind, free.get(kind.index, 0)) for kind in self.fleet.kinds]
        return lambda workload: any(
            workload.nf in kind.cores_of and kind.cores_for(workload) <= cores for kind, cores in found
        )

    def observe(self, tenant: Tenant) -> None:
        """Count the tenant among the recent arrivals, and renew the forecast now and then."""
        self._recent.append(tenant)
        self._arrivals += 1
        if self._sampled:
            self._loosest.include(tenant)
        elif self._stand_ins and tenant.workload.is_plain:
            self._count_stand_in(tenant)
        for index in self.indexes.each:
            index.observe(tenant)
        if self._rebuild is not None:
            self._rebuild.observe(tenant)
        left = self._closing()
        if left and is_due(left):
            self._close(left)
        elif not left and self._arrivals >= self._renew_at:
            self._renew_at = self._next_renewal()
            if self._sampled and self._stand_ins:
                chosen = self._table_workloads.instead_of_sampling()
                if chosen is not None and not self._has_own_loads(chosen):
                    self._build_tables(chosen)
            elif self._sampled:
                self._include(tenant)
            else:
                for index in self.indexes.each:
                    index.renew()

    def observe_elsewhere(self, tenant: Tenant) -> None:
        """Count an arrival that another agent decided on; own arrivals are sample enough for the forecast."""
        self._recent.append(tenant)
        self._arrivals += 1

    def rebuild(self, oracles: Sequence[Oracle] | None = None) -> None:
        """Begin to build the indexes anew, as the oracles answer now; `advance` goes on with it.

        Where other oracles are given, all that is found until then is checked by these.
        """
        if oracles is not None:
            self.oracles = oracles
            for indexes in (self.indexes, self.others or ()):
                for index, oracle in zip(indexes, oracles, strict=False):
                    index.follow(oracle)
        if self.indexes:
            self._rebuild = self._new_rebuild(0 if self._sampled else self.most_patterns)

    def refresh(self) -> None:
        """Take notice of answers of the oracles that changed, so that no decision has to."""
        for index in self._known_indexes:
            index.refresh()

    @property
    def rebuilding(self) -> bool:
        """Whether indexes are being built anew."""
        return self._rebuild is not None

    def advance(self) -> None:
        """Go on with a rebuild by a few steps, if there is one."""
        if self._rebuild is None:
            return
        try:
            done = any(self._rebuild.advance() for _ in range(REBUILD_STEPS))
        except TooManyPatterns:
            self._rebuild = None if self._stand_ins else self._new_rebuild(0)
            self._table_workloads.choose_fewer()
            return
        if done:
            self.indexes, self._tables = self._rebuild.indexes, self._rebuild.tables
            self._families = self._rebuild.families
            self._sampled = all(table is None for table in self._tables)
            self._covered = self._rebuild = self.others = None
            self.refresh()

    def tally(self, tenant: Tenant) -> Tally:
        if self._is_new(tenant):
            self._include(tenant)
        return sum((index.tally(tenant) for index in (*self.indexes.each, *self._others().each)), Tally(0, 0, 0))

    def reasons(self, tenant: Tenant) -> list[Reason]:
        """Why no NIC takes the tenant: classes of NICs in use, the largest first, then kinds that could be opened."""
        if self._is_new(tenant):
            self._include(tenant)
        places = places_for(self.fleet, tenant)
        with nullcontext() if places is None else self._within(places):
            compared = [*self._allowed(self.indexes), *self._allowed(self._others())]
            listed = () if places and places.only else compared
            in_use = [reason for index in listed for reason in index.reasons(tenant)]
        opens = [index.opening_score(tenant) is not None for index in self.indexes]
        return why_rejected(self.fleet, self.oracles, tenant, places, in_use, opens)

    def changed(self, nic: Nic, before: Tenant, after: Tenant) -> None:
        index = self._index_of(nic) if self._sampled and self._rebuild is None else None
        if isinstance(index, SampledIndex) and index.change(nic, before, after):
            self._count(before, -1)
            self._count(after, 1)
        else:
            self.left(nic, before)
            self.joined(nic, after)

    def _index_of(self, nic: Nic) -> NicIndex | None:
        """The index that has the NIC while it takes arrivals; None where there is none yet."""
        indexes = self.indexes if self.fleet.pool.owns(nic.number) else self.others
        return indexes[nic.kind.index] if indexes else None

    def _count(self, tenant: Tenant, by: int) -> None:
        """Count a tenant that came, or one that left, by -1."""
        self._own_loads += by * (not tenant.workload.is_plain)
        if by > 0 and not self._in_trial:
            self._latest_of[tenant.workload.nf] = tenant.workload
        elif by < 0:
            self._renew_at = self._arrivals if self._closing() else self._renew_at
            self.departures += 1

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        self._count(tenant, 1)
        if not self._in_trial:
            if self._rebuild is not None and self._rebuild.builds_tables and self._has_own_loads([tenant.workload]):
                self._rebuild = None
            elif self._rebuild is not None and self._rebuild.lacks(tenant.workload.nf):
                self._build_tables(self._workloads)  # the tenant waited since before the arrivals that are remembered
        own, index = self.fleet.pool.owns(nic.number), self._index_of(nic)
        if nic.service is not Service.UP or (index is None and not own):
            return
        if index is None or self._is_new(tenant):
            self._include(tenant)
        else:
            index.joined(nic, tenant)
        if self._rebuild is not None and own and not self._in_trial:
            self._rebuild.joined(nic, tenant)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        self._count(tenant, -1)
        if nic.service is not Service.UP or (index := self._index_of(nic)) is None:
            return
        index.left(nic, tenant)
        if self._rebuild is not None and self.fleet.pool.owns(nic.number) and not self._in_trial:
            self._rebuild.left(nic, tenant)

    def service_changed(self, nic: Nic) -> None:
        """Follow a NIC that began or ceased to take arrivals."""
        own, index = self.fleet.pool.owns(nic.number), self._index_of(nic)
        if self._rebuild is not None and own:
            self._rebuild.service_changed(nic)
        if nic.service is not Service.UP:
            if index is not None:
                index.close(nic)
        elif (own or index is not None) and (new := [tenant for tenant in nic.tenants if self._is_new(tenant)]):
            for tenant in new:
                self._include(tenant)
        elif index is not None:
            index.enter(nic)

    def pool_changed(self) -> None:
        """Follow a change of which NICs are own ones."""
        self.others = self._rebuild = None
        tenants = [tenant for nic in self._serving(own=True) for tenant in nic.tenants_by_id.values()]
        for tenant in tenants:
            self._loosest.include(tenant)
        if not self._stand_ins or self._sampled:
            self._workloads |= {tenant.workload for tenant in tenants}
        known = self._included or next(iter(tenants), None)
        if known is not None:
            self._include(known)

    def reach_out(self) -> None:
        """Make ready to compare NICs of other agents, too, so that no decision has to."""
        self._others()

    def _compare(self) -> Sequence[NicIndex]:
        own = self._allowed(self.indexes)
        return [*own, *self._allowed(self._others())] if self.everywhere else own

    def _others(self) -> IndexPerKind:
        """The NICs of other agents; none where this one is alone."""
        if self.fleet.pool.agents == 1:
            return NO_INDEXES
        if self.others is None:
            nics = self._serving(own=False)
            for tenant in [tenant for nic in nics for tenant in nic.tenants_by_id.values() if self._is_new(tenant)]:
                if self._is_new(tenant):
                    self._include(tenant)
            tables = [None] * len(self.fleet.kinds) if self._sampled else self._tables
            self.others = self._families.indexes(self.oracles, self.rule, tables, stand_ins=self._stand_ins)
            for index, oracle in zip(self.others, self.oracles, strict=True):
                index.follow(oracle)
            for nic in nics:
                self.others[nic.kind.index].enter(nic)
            self._restrict(self._places)
        return self.others

    def _serving(self, *, own: bool) -> list[Nic]:
        """NICs in use that take arrivals."""
        owns = self.fleet.pool.owns
        return [nic for nic in self.fleet.nics.values() if nic.service is Service.UP and owns(nic.number) is own]

    def _beyond(self, tenant: Tenant) -> Nic | NicKind | None:
        """What takes a tenant that fits on no NIC that was compared."""
        new = self._cheapest_new(tenant)
        found = last_resort_of(self._allowed(self.indexes), tenant) if new is None else new[1]
        if found is not None or self.fleet.pool.agents == 1:
            return found
        others = self._allowed(self._others())
        best = best_of(others, tenant)
        return last_resort_of(others, tenant) if best is None else best[1]

    def _cheapest_new(self, tenant: Tenant) -> tuple[float, NicKind] | None:
        """The cheapest kind of which a NIC can be opened and on which the tenant's SLA is met alone, with its score."""
        for kind in self.fleet.available():
            if self._places is not None and kind not in self._places.kinds:
                continue
            score = self.indexes[kind.index].opening_score(tenant)
            if score is not None:
                return score, kind
        return None

    def _close(self, left: int) -> None:
        """Price so many last arrivals, given the open NICs; where these are too many, as if the trace went on."""
        if not all(index.close_with(left) for index in self.indexes.each):
            self._length = None

    def _price(self) -> None:
        """Price the instances of new indexes."""
        if left := self._closing():
            self._close(left)
        if not self._closing() and self._arrivals >= FORECAST_FROM:
            for index in self.indexes.each:
                index.renew(at_once=True)

    def _closing(self) -> int:
        """How many arrivals are left, the present one included, where these are the last; else 0.

        Only where nobody leaves, and for one kind of NIC: else arrivals fill other capacity, too.
        """
        if self._length is None or self.departures or len(self.fleet.kinds) > 1 or self._arrivals < FORECAST_FROM:
            return 0
        left = self._length - self._arrivals + 1
        return left if 0 < left <= CLOSING_ARRIVALS else 0

    def _opening_cost(self) -> float:
        """What opening a NIC costs beyond the value that it loses, in units of its cost."""
        if self._closing():
            return 0.0
        turnover = min(self.departures / max(self._arrivals, 1), 1.0)
        return (self.rule.opening_cost or 0.0) * (1.0 + TURNOVER_WEIGHT * turnover)

    def _next_renewal(self) -> int:
        return self._arrivals + min(max(int(self._arrivals * RENEWED_GROWTH), RENEWED_AFTER), RENEWED_EVERY)

    def _is_new(self, tenant: Tenant) -> bool:
        """Whether co-locations are predicted in advance, but not all that are useful to the tenant."""
        if self._sampled or (tenant is self._covered and self.indexes):
            return False
        if self._stand_ins and (self._own_loads > 0 or not tenant.workload.is_plain):
            return True
        if not self.indexes:
            return True
        for index in self.indexes.each:
            if not index.covers(tenant):
                return True
        self._covered = tenant
        return False

    def _include(self, new: Tenant) -> None:
        """Build the indexes anew for the known workloads and SLAs and those of a new tenant.

        Where useful co-locations are too many, workloads that are no longer on any NIC are dropped; where they still
        are too many, NICs are sampled.
        """
        self._covered = self._rebuild = self.others = None
        self._included = new
        self._loosest.include(new)
        self._workloads = self._with_present_nfs({*self._workloads, new.workload})
        self._sampled = self._sampled or not self._predict_all()
        tables = self._stand_ins and not self._has_own_loads(self._workloads)
        while self._sampled and tables and self._table_workloads.choose_fewer():
            self._workloads = self._with_present_nfs({*self._table_workloads.chosen(), new.workload})
            self._sampled = not self._predict_all()
        if self._sampled:
            present = [*self.fleet.all_tenants()]
            self._workloads = {tenant.workload for tenant in (*present, new)}
            for tenant in present:
                self._loosest.include(tenant)
            self._sampled = not self._predict_all()
        if self._sampled:
            for kind, oracle in zip(self.fleet.kinds, self.oracles, strict=True):
                oracle.throughput([(workload,) for workload in sorted(self._workloads) if kind.hosts(workload)])
            no_tables = [None] * len(self.fleet.kinds)
            self.indexes = self._families.indexes(self.oracles, self.rule, no_tables, stand_ins=False)
        for nic in self._serving(own=True):
            self.indexes[nic.kind.index].enter(nic)
        for index in self.indexes.each:
            for tenant in self._recent:
                index.observe(tenant)
        self._price()

    def _new_rebuild(self, most: int) -> Rebuild:
        workloads = self._workloads if most else {tenant.workload for tenant in self.fleet.all_tenants()}
        given = sorted(workloads), self._loosest.accepted_drop, most, tuple(self._recent)
        return Rebuild(self.fleet, self.oracles, self.rule, *given, stand_ins=self._stand_ins)

    def _load_kernels(self, tenant: Tenant) -> None:
        """Load the compiled parts of sampling and of forecasts now: it takes 0.1 s, or a minute where they are not
        compiled yet."""
        for kind, oracle, table in zip(self.fleet.kinds, self.oracles, self._tables, strict=True):
            if table is not None:
                priced = index_of(kind, oracle, self.rule, table, stand_ins=True)
                priced.observe(tenant)
                priced.renew(at_once=True)
            if kind.hosts(tenant.workload):
                index, nic = index_of(kind, oracle, self.rule, None), Nic("", kind)
                nic.tenants_by_id[tenant.id] = tenant
                index.enter(nic)
                index.best(tenant)
                for _ in range(2):  # as it was found, and as a tenant that was put there
                    index.joined(nic, tenant)
                index.scores_on(tenant, [nic])
                index.left(nic, tenant)
                if isinstance(index, SampledIndex):
                    index.load_kernels(nic, tenant)

    def _count_stand_in(self, tenant: Tenant) -> None:
        """Begin to build tables with a workload that recurs, or an index that samples NICs where few recur. Until
        either is complete, stand-ins are compared."""
        held = all(index.holds(tenant) for index in self.indexes.each)
        self._table_workloads.count(tenant.workload, held=held)
        if held or not self.indexes or self._rebuild is not None:
            return
        chosen = self._table_workloads.with_column_for(tenant.workload, len(self._workloads))
        if chosen is not None:
            self._loosest.include(tenant)
            self._build_tables(chosen)
        elif self._table_workloads.too_different:
            self._rebuild = self._new_rebuild(0)

    def _build_tables(self, chosen: set[Workload]) -> None:
        self._workloads = self._with_present_nfs(chosen)
        self._rebuild = self._new_rebuild(self.most_patterns)

    def _with_present_nfs(self, workloads: set[Workload]) -> set[Workload]:
        """These workloads, and one of each NF that was ever on a NIC and has none here, so that each has a stand-in."""
        nfs = {workload.nf for workload in workloads}
        return workloads | {workload for nf, workload in self._latest_of.items() if nf not in nfs}

    def _has_own_loads(self, workloads: Iterable[Workload]) -> bool:
        """Whether an instance, or one of these workloads, has a load or a number of cores that no stand-in has."""
        return self._stand_ins and (self._own_loads > 0 or not all(workload.is_plain for workload in workloads))

    def _predict_all(self) -> bool:
        """Build class indexes for all workloads; False where they are too many, or hardly one came twice."""
        if self._has_own_loads(self._workloads):
            return False
        different = not self._stand_ins and len(self._workloads) > max(
            FEW_WORKLOADS, len({workload.nf for workload in self._workloads})
        )
        # hardly two instances have one rate
        if different and not all(workload.is_saturated for workload in self._workloads):
            return False
        if different and 2 * len(self._workloads) > self._arrivals:
            return False
        try:
            tables = self._families.tables(self._make_table)
        except TooManyPatterns:
            return False
        self._tables = tables
        self.indexes = self._families.indexes(self.oracles, self.rule, tables, stand_ins=self._stand_ins)
        return True

    def _make_table(self, kind: NicKind) -> PatternTable | None:
        oracle, before = self.oracles[kind.index], self._tables[kind.index]
        if isinstance(oracle, GpuOracle):
            return None
        return PatternTable(kind, self._workloads, oracle, self._loosest.accepted_drop, self.most_patterns, before)
