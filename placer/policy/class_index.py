"""The class index: the NICs of one kind by class, where the useful co-locations are predicted in advance.

Two NICs of a kind are in one class when they hold the same co-location and can become the same co-locations without
violating an SLA of their tenants. Throughput and score of every possible arrival are computed once per class; a
decision compares the classes, however many NICs there are. A NIC whose co-location is not in the table violates an SLA
already, or holds one that is looser than the table was built for: it takes an arrival only as a last resort.

Where the oracle answers otherwise now, the NIC that is found is checked once more, with the answers of now. One
whose own tenants would violate an SLA then is put into another class, so that it is found no more.

A workload that is not in the table is compared as its stand-in (`stand_ins.py`); what is found is predicted then.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placer.model.constraints import AllowedNics
from placer.model.feasibility import keeps_slas
from placer.model.nic import Nic, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.model.sharded import ShardedDict
from placer.model.sla import LEAST_KPPS
from placer.policy.class_slots import NO_CLASS, ClassSlots
from placer.policy.forecast import ARRIVAL_SAMPLES, SAMPLES_AT_ONCE, SLA_LEVELS, PriceForecast, core_shares
from placer.policy.lowered import BlockedJoins, LoweredPatterns, ReachablePatterns, goes_on
from placer.policy.pattern_table import NO_PATTERN, Pattern, PatternTable
from placer.policy.rejection import Cause, Reason, Tally
from placer.policy.rules import MOST_MOVES, Rule
from placer.policy.stand_ins import StandIns

UNOPENED_SLOT = 0
PIVOTS_PER_ARRIVAL = 32  # pivots per arrival while prices are renewed; each takes some 10 to 20 microseconds
MOST_PREDICTED = 17  # NICs that are predicted where stand-ins take part, the best first, while none keeps every SLA

NOTHING = frozenset[int]()
MAX_KEPT_ZONES = 1_024  # sets of kinds whose zones are remembered
MOST_LOOKED_AT = 2_048  # NICs that are looked at as a last resort, those of the lowest numbers

COMPARED_PATTERNS = 2_000
"""Patterns that are compared per arrival while classes are scored anew; each takes some 50 nanoseconds."""


class ClassMember:
    """A NIC in the index: its pattern, the column and required throughput (kpps) of each tenant, how many of them a
    stand-in is compared for, how many the table does not hold (`ClassIndex.holds`), its free cores, and its zone."""

    __slots__ = ("counted", "free", "needs", "nic", "not_held", "pattern", "stand_ins", "zone")

    def __init__(self, nic: Nic, zone: int = 0) -> None:
        self.nic = nic
        self.zone = zone
        self.pattern = 0
        self.counted: int | Pattern = 0
        self.needs: dict[str, tuple[int, float]] = {}
        self.stand_ins = 0
        self.not_held = 0
        self.free = nic.kind.cores

    def __deepcopy__(self, memo: dict[int, Any]) -> ClassMember:
        made = memo[id(self)] = ClassMember(memo.get(id(self.nic)) or deepcopy(self.nic, memo), self.zone)
        made.pattern, made.counted, made.needs = self.pattern, self.counted, self.needs.copy()
        made.stand_ins, made.not_held, made.free = self.stand_ins, self.not_held, self.free
        return made

    @property
    def columns(self) -> Pattern:
        """The columns of its tenants, ascending."""
        return tuple(sorted(column for column, _ in self.needs.values()))


class ClassIndex:
    """The classes of all NICs of one kind; with `stand_ins`, also of workloads that the table does not hold.

    `kinds`: several kinds that differ in their pool and domain only; each is a zone.
    """

    def __init__(
        self, table: PatternTable, rule: Rule, *, stand_ins: bool = False, kinds: Sequence[NicKind] = ()
    ) -> None:
        self.table = table
        self._zone_of = {kind: zone for zone, kind in enumerate(kinds or (table.kind,))}
        self._places: AllowedNics | None = None
        self._zones: dict[frozenset[NicKind], NDArray[np.int64]] = {}
        self._stand_ins = StandIns(table.kind, table.workloads) if stand_ins else None
        self._oracle = table.oracle
        self._lowered = LoweredPatterns(table)
        self._blocked = BlockedJoins()
        self._members: ShardedDict[int, ClassMember] = ShardedDict()
        self._last: Tenant | None = None
        self._last_need: tuple[int, float] | None = None
        self._joined = table.joined.tolist()
        self._solo = table.solo.tolist()
        self._floor = table.floor.tolist()
        self._full = (table.joined == NO_PATTERN).all(axis=1).tolist()
        patterns, width = len(table.counts), len(table.workloads)
        self._population = [0] * patterns
        self._in_zone: list[Counter[Pattern | int]] = [Counter() for _ in self._zone_of]
        self._free = table.free.tolist()
        self._with_free = [0] * (table.kind.cores + 1)
        self._outside: Counter[Pattern] = Counter()
        self._not_held = 0
        self._reachable = ReachablePatterns(table)
        self._forecast = PriceForecast(table) if rule.forecasts and width else None
        prices = core_shares(table)
        if rule.forecasts:
            prices = prices._replace(worth=np.zeros_like(prices.worth))
        self._slots = ClassSlots(table, rule, prices, len(self._zone_of))
        self._slots.slot_of((0, np.ones(patterns, dtype=np.bool_).tobytes()))

    @property
    def kinds(self) -> Iterable[NicKind]:
        return self._zone_of

    def _zone(self, kind: NicKind) -> int:
        """The zone of a kind, which is a new one where no NIC was of it."""
        if kind not in self._zone_of:
            self._zone_of[kind] = len(self._zone_of)
            if len(self._in_zone) == 1:  # until now nobody counted by zone
                self._in_zone[0] = self._all_counts()
            self._in_zone.append(Counter())
            self._zones.clear()
            self._slots.add_zone()
        return self._zone_of[kind]

    def observe(self, tenant: Tenant) -> None:
        """Count an arrival, and go on with the renewal of prices."""
        if self._forecast is not None:
            need = self._need(tenant)
            if need is not None:
                self._forecast.observe(*need)
            self.settle()

    @property
    def renewing(self) -> bool:
        """Whether prices are being renewed, or classes scored anew."""
        return self._forecast is not None and (self._forecast.renewing or self._slots.scoring)

    def settle(self) -> None:
        """Go on with the renewal of prices."""
        if self._forecast is not None:
            prices = self._forecast.advance(PIVOTS_PER_ARRIVAL)
            if prices is not None:
                self._slots.reprice(prices)
            self._slots.advance(COMPARED_PATTERNS)

    def follow(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._lowered.follow(oracle)

    def refresh(self) -> None:
        """Take notice of answers that changed: NICs become again what keeps all SLAs of their tenants by now."""
        eased = self._lowered.renew()
        if not eased:
            return
        alone = any(len(self._lowered.pattern(number)) == 1 for number in eased)  # SLAs may be relative to that
        for nic, number in tuple(self._blocked.nics(None if alone else sorted(eased))):
            member = self._members[nic]
            if self._keeps_own(member, number):
                self._blocked.remove(nic, number)
                self._classify(member)

    def has(self, nic: Nic) -> bool:
        return self._members.get(nic.number) is not None

    def renew(self, *, at_once: bool = False) -> None:
        """Begin to renew prices, or complete that."""
        if self._forecast is not None:
            self._forecast.renew(SAMPLES_AT_ONCE if at_once else ARRIVAL_SAMPLES)
            while at_once and self._forecast.renewing:
                prices = self._forecast.advance(PIVOTS_PER_ARRIVAL)
                if prices is not None:
                    self._slots.reprice(prices)
            if at_once:
                self._slots.advance(len(self._slots) * (len(self.table.counts) + SLA_LEVELS))

    def close_with(self, arrivals: int) -> bool:
        """Take prices for so many last arrivals, given the open NICs; False where these are too many."""
        classes = self._slots.open_classes()
        if self._forecast is None or sum(len(nic_class.reachable) for nic_class in classes) > MOST_MOVES:
            return False
        prices = self._forecast.closing(arrivals, classes)
        if prices is not None:
            self._slots.reprice(prices)
            self._slots.advance(len(self._slots) * (len(self.table.counts) + SLA_LEVELS))
        return True

    def begin_trial(self) -> None:
        """NICs are changed from here on only to be changed back before `end_trial`."""
        self._slots.begin_trial()
        self._blocked.begin_trial()

    def end_trial(self) -> None:
        for nic in self._blocked.end_trial():
            member = self._members.get(nic)
            if member is not None:
                self._classify(member)
        self._slots.end_trial()

    def covers(self, tenant: Tenant) -> bool:
        """Whether the tenant can be compared with all that is useful to it, or its kind does not host it."""
        need = self._need(tenant)
        if need is None:
            return not self.table.kind.hosts(tenant.workload)
        return self._stand_ins is not None or need[1] >= self._floor[need[0]]

    def holds(self, tenant: Tenant) -> bool:
        """Whether the table holds all co-locations that are useful to the tenant, or its kind does not host it."""
        need = self._need(tenant)
        if need is None or tenant.workload not in self.table.columns:
            return not self.table.kind.hosts(tenant.workload)
        return bool(need[1] >= self._floor[need[0]])

    def enter(self, nic: Nic) -> None:
        member = self._members[nic.number] = ClassMember(nic, self._zone(nic.kind))
        for tenant in nic.tenants_by_id.values():
            self._add(member, tenant)
        self._classify(member)

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        member = self._members.get(nic.number)
        if member is None:
            self.enter(nic)
            return
        self._blocked.mark_changed(nic.number)
        self._add(member, tenant)
        self._classify(member)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        member = self._members[nic.number]
        self._blocked.mark_changed(nic.number)
        column, required = member.needs.pop(tenant.id)
        self._count_others(member, tenant, column, required, -1)
        member.free += self.table.kind.cores_for(tenant.workload)
        if member.pattern == NO_PATTERN:
            member.pattern = self.table.number_of.get(member.columns, NO_PATTERN)
        else:
            member.pattern = self.table.part_of[member.pattern, column]
        self._classify(member)

    def restrict(self, places: AllowedNics | None) -> None:
        self._places = places
        if places is None:
            self._slots.restrict()
            return
        zones = self._zones.get(places.kinds)
        if zones is None:
            if len(self._zones) >= MAX_KEPT_ZONES:
                self._zones.clear()
            allowed = sorted(self._zone_of[kind] for kind in places.kinds if kind in self._zone_of)
            zones = self._zones[places.kinds] = np.array(allowed, dtype=np.int64)
        barred = frozenset([nic.number for nic in places.met]) if places.met else NOTHING
        among = None
        if places.among is not None:
            among = [nic.number for nic in places.among if nic.kind in places.kinds and nic.number not in barred]
        self._slots.restrict(zones, barred, among)

    def close(self, nic: Nic) -> None:
        """Remove the NIC: it takes no more arrivals."""
        member = self._members.get(nic.number)
        if member is not None:
            self._blocked.mark_changed(nic.number)
            self._remove(member)

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers, with its score; None when none keeps every SLA."""
        need = self._need(tenant)
        if need is None:
            return None
        self.refresh()
        found = self._slots.best(*need)
        if found is not None and self._needs_prediction(self._members[found[1]], tenant):
            found = self._best_predicted(tenant, need)
        elif self._lowered.some:
            found = self._still_feasible(tenant, need, found)
        return None if found is None else (found[0], self._members[found[1]].nic)

    def rank(self, tenant: Tenant, most: int) -> list[tuple[float, Nic]]:
        """Scores and NICs that take the tenant, one of each class, best first."""
        need = self._need(tenant)
        if need is None:
            return []
        found: list[tuple[float, Nic]] = []
        passed: list[tuple[int, float]] = []
        self.refresh()
        changed = self._lowered.some
        while len(found) < most and (scored := self._slots.best(*need)) is not None:
            member = self._members[scored[1]]
            doubted = changed or self._needs_prediction(member, tenant)
            if not doubted or self._fits_now(member, tenant, need):
                found.append((scored[0], member.nic))
            elif self._block(member, need[0]):
                continue
            passed.append(self._slots.pass_over(scored[1], need[0]))
        for slot, kpps in reversed(passed):
            self._slots.offer_again(slot, need[0], kpps)
        return found

    def scores_on(self, tenant: Tenant, nics: Sequence[Nic]) -> list[float]:
        need = self._need(tenant)
        return [math.inf] * len(nics) if need is None else self._slots.scores_of((nic.number for nic in nics), *need)

    def most_free(self) -> int:
        inside = max((cores for cores, nics in enumerate(self._with_free) if nics), default=0)
        if self._stand_ins is None:
            return inside
        taken = [self.table.cores_taken(pattern) for pattern, nics in self._outside.items() if nics]
        return max(inside, self.table.kind.cores - min(taken, default=self.table.kind.cores))

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """The first NIC on which every SLA is met, of a few that may become a co-location that the table lacks, because
        an SLA is looser than the table was built for; None where `best` has compared all there is."""
        held = self.holds(tenant)
        if self._stand_ins is None or (held and not self._not_held):
            return None
        cores, tried = self.table.kind.cores_for(tenant.workload), 0
        if cores > self.most_free():
            return None
        for number in range(1, MOST_LOOKED_AT + 1):
            member = self._members.get(number)
            if member is None or member.free < cores or (held and not member.not_held):
                continue
            if self._places is not None and not self._places.allow(member.nic):
                continue
            if keeps_slas(self.table.kind, self._oracle, [*member.nic.tenants_by_id.values(), tenant]):
                return member.nic
            tried += 1
            if tried == MOST_PREDICTED:
                break
        return None

    def opening_score(self, tenant: Tenant) -> float | None:
        need = self._need(tenant)
        if need is None or need[1] > self._solo[need[0]]:
            return None
        return self._slots.score(*need, UNOPENED_SLOT)

    def tally(self, tenant: Tenant) -> Tally:
        table, need = self.table, self._need(tenant)
        total = sum(self._with_free) + self._outside.total()
        if need is None:
            return Tally(total, 0, 0)
        cores = table.kind.cores_for(tenant.workload)
        too_few = sum(self._with_free[:cores])
        too_few += sum(
            nics for pattern, nics in self._outside.items() if table.cores_taken(pattern) + cores > table.kind.cores
        )
        return Tally(total, too_few, self._slots.nics_that_fit(*need))

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why no NIC takes the tenant, by co-location."""
        table, need = self.table, self._need(tenant)
        found = self._counts_allowed()
        inside = ((pattern, found[number]) for number, pattern in enumerate(table.number_of) if number in found)
        for pattern, nics in (*inside, *((pattern, found[pattern]) for pattern in self._outside)):
            if pattern and nics:
                cause = Cause.NOT_HOSTED if need is None else self._cause(need, pattern)
                yield Reason(table.kind.model, table.co_location(pattern), nics, cause)

    def _counts_allowed(self) -> Counter[Pattern | int]:
        """As `_all_counts`, of the NICs that constraints leave to an arrival."""
        places, found = self._places, Counter[Pattern | int]()
        if places is not None and places.among is not None:
            members = (self._members.get(nic.number) for nic in places.among.difference(places.met))
            found.update(member.counted for member in members if member and member.nic.kind in places.kinds)
            return found
        zones = [zone for kind, zone in self._zone_of.items() if places is None or kind in places.kinds]
        if 2 * len(zones) < len(self._zone_of):
            for zone in zones:
                found.update(self._in_zone[zone])
        else:
            found = self._all_counts()
            for zone in set(self._zone_of.values()).difference(zones):
                found.subtract(self._in_zone[zone])
        for nic in () if places is None else places.met:
            member = self._members.get(nic.number)
            if member is not None and nic.kind in places.kinds:  # type: ignore[union-attr]
                found[member.counted] -= 1
        return found

    def _still_feasible(
        self, tenant: Tenant, need: tuple[int, float], found: tuple[float, int] | None
    ) -> tuple[float, int] | None:
        """The NIC that is found, or the next best, in which every SLA is met by the answers of now."""
        passed = []
        while found is not None:
            member = self._members[found[1]]
            if self._fits_now(member, tenant, need):
                break
            if not self._block(member, need[0]):
                passed.append(self._slots.pass_over(found[1], need[0]))
            found = self._slots.best(*need)
        for slot, kpps in reversed(passed):
            self._slots.offer_again(slot, need[0], kpps)
        return found

    def _needs_prediction(self, member: ClassMember, tenant: Tenant) -> bool:
        """Whether stand-ins are compared for the arrival or a tenant of the NIC."""
        return member.stand_ins > 0 or (self._stand_ins is not None and tenant.workload not in self.table.columns)

    def _best_predicted(self, tenant: Tenant, need: tuple[int, float]) -> tuple[float, int] | None:
        """The NIC that the rule prefers, of the best of several classes, where every SLA is met as predicted now."""
        passed: list[tuple[int, float]] = []
        while (found := self._slots.best(*need)) is not None:
            nic = self._members[found[1]].nic
            if keeps_slas(self.table.kind, self._oracle, [*nic.tenants_by_id.values(), tenant]):
                break
            passed.append(self._slots.pass_over(found[1], need[0]))
            if len(passed) == MOST_PREDICTED:
                found = None
                break
        for slot, kpps in reversed(passed):
            self._slots.offer_again(slot, need[0], kpps)
        return found

    def _fits_now(self, member: ClassMember, tenant: Tenant, need: tuple[int, float]) -> bool:
        """Whether every SLA is met on a NIC with one more instance, by the answers of now."""
        lowered, joined = self._lowered, self._join_now(member, need[0])
        if joined == NO_PATTERN or self._needs_prediction(member, tenant):
            return keeps_slas(member.nic.kind, self._oracle, [*member.nic.tenants_by_id.values(), tenant])
        if joined not in lowered.doubted:
            return True
        kpps = lowered.kpps(joined)[need[0]]
        if kpps < need[1] * lowered.most[need[0]] and not tenant.is_met(kpps, lowered.solo[need[0]]):
            return False
        return self._keeps_own(member, joined)

    def _join_now(self, member: ClassMember, column: int) -> int:
        """The pattern that a NIC becomes with one more instance; NONE where that has to be asked for."""
        return NO_PATTERN if self._lowered.all or member.pattern == NO_PATTERN else self._joined[member.pattern][column]

    def _keeps_own(self, member: ClassMember, number: int) -> bool:
        """Whether the SLA of every tenant of a NIC is met in another pattern, by the answers of now."""
        kpps, most, solo = self._lowered.kpps(number), self._lowered.most, self._lowered.solo
        for column, required in member.needs.values():
            if kpps[column] < required * most[column]:
                break
        else:
            return True
        present = member.nic.tenants_by_id
        return all(present[identity].is_met(kpps[at], solo[at]) for identity, (at, _) in member.needs.items())

    def _block(self, member: ClassMember, column: int) -> bool:
        """Put a NIC whose own tenants keep it from one more instance into another class; False where they do not."""
        joined = self._join_now(member, column)
        if joined == NO_PATTERN or member.stand_ins or self._keeps_own(member, joined):
            return False
        self._blocked.add(member.nic.number, joined)
        self._classify(member)
        return True

    def _cause(self, need: tuple[int, float], pattern: Pattern) -> Cause:
        table, (column, required) = self.table, need
        if table.cores_taken((*pattern, column)) > table.kind.cores:
            return Cause.CORES
        return Cause.ARRIVAL_SLA if table.kpps_with(pattern, column) < required else Cause.TENANT_SLA

    def _need(self, tenant: Tenant) -> tuple[int, float] | None:
        """The column of the tenant's workload, or its stand-in, and the throughput (kpps) that it requires there; None
        for an unknown one."""
        if tenant is not self._last:  # one decision asks several times
            self._last = tenant
            column = self.table.columns.get(tenant.workload)
            if column is not None:
                self._last_need = column, tenant.required_kpps(self._solo[column])
            else:
                self._last_need = None if self._stand_ins is None else self._need_by(self._stand_ins, tenant)
        return self._last_need

    def _need_by(self, stand_ins: StandIns, tenant: Tenant) -> tuple[int, float] | None:
        """The column of the stand-in, and the share of its throughput alone that the tenant requires of its own."""
        column = stand_ins.column(tenant.workload)
        if column is None:
            return None
        # an accepted drop is a share whatever the throughput alone, which has to be predicted for others
        alone = 1.0 if tenant.relative_drop is not None else self._oracle.solo(tenant.workload)
        return column, self._solo[column] * tenant.required_kpps(alone) / max(alone, LEAST_KPPS)

    def _add(self, member: ClassMember, tenant: Tenant) -> None:
        need = self._need(tenant)
        assert need is not None
        member.needs[tenant.id] = need
        self._count_others(member, tenant, *need, 1)
        member.free -= self.table.kind.cores_for(tenant.workload)
        if member.pattern == NO_PATTERN:
            member.pattern = self.table.number_of.get(member.columns, NO_PATTERN)
        else:
            member.pattern = self._joined[member.pattern][need[0]]

    def _classify(self, member: ClassMember) -> None:
        """Find the class of the NIC as it is now, and move it there."""
        pattern = member.pattern
        if not pattern:
            self._remove(member)
            return
        slot = NO_CLASS
        if pattern != NO_PATTERN and not self._full[pattern]:
            strictest: dict[int, float] = {}
            for column, kpps in member.needs.values():
                if kpps > strictest.get(column, 0.0):
                    strictest[column] = kpps
            flags = self._reachable.flags(pattern, strictest)
            if blocked := self._blocked.of(member.nic.number):
                flags = self._reachable.without(flags, pattern, blocked)
            if goes_on(flags):
                slot = self._slots.slot_of((pattern, flags))
        self._count(member, member.columns if pattern == NO_PATTERN else pattern)
        self._slots.move(member.nic.number, slot, member.zone)

    def _all_counts(self) -> Counter[Pattern | int]:
        """How many NICs there are of each pattern, by its number if the table holds it."""
        found = Counter[Pattern | int]()
        for number, nics in enumerate(self._population):
            if nics:
                found[number] = nics
        for pattern, nics in self._outside.items():
            found[pattern] = nics
        return found

    def _count_others(self, member: ClassMember, tenant: Tenant, column: int, required: float, by: int) -> None:
        """Count a tenant of the NIC, with its need, where it has a stand-in, or else is not held."""
        if tenant.workload not in self.table.columns:
            member.stand_ins += by
        elif required >= self._floor[column]:
            return
        self._count_not_held(member, by)

    def _count_not_held(self, member: ClassMember, tenants: int) -> None:
        member.not_held += tenants
        self._not_held += tenants

    def _remove(self, member: ClassMember) -> None:
        if member.not_held:
            self._count_not_held(member, -member.not_held)
        self._slots.move(member.nic.number, NO_CLASS, member.zone)
        self._count(member, 0)
        self._members.discard(member.nic.number)

    def _count(self, member: ClassMember, pattern: int | Pattern) -> None:
        """Count the NIC under its pattern, which is a number if the table holds it, and by its free cores."""
        before = member.counted
        member.counted = pattern
        if len(self._in_zone) > 1:
            in_zone = self._in_zone[member.zone]
            in_zone[before] -= 1
            in_zone[pattern] += 1
        if isinstance(before, tuple):
            self._outside[before] -= 1
            self._outside += Counter()
        elif before:
            self._population[before] -= 1
            self._with_free[self._free[before]] -= 1
        if isinstance(pattern, tuple):
            self._outside[pattern] += 1
        elif pattern:
            self._population[pattern] += 1
            self._with_free[self._free[pattern]] += 1
