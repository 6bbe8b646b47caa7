"""What a selector needs of an index over the NICs of one kind, and how indexes are made anew."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Protocol

from placer.model.constraints import AllowedNics
from placer.model.fleet import Fleet
from placer.model.gpu_oracle import GpuOracle
from placer.model.nic import Nic, Service, Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle
from placer.policy.class_index import ClassIndex
from placer.policy.gpu_index import GpuIndex
from placer.policy.pattern_table import Enumeration, PatternTable
from placer.policy.rejection import Reason, Tally
from placer.policy.rules import Rule
from placer.policy.sampled_index import SampledIndex
from profiles import CoLocation, Workload


class NicIndex(Protocol):
    """Finds a NIC of one kind for an arrival, among the NICs in use that take arrivals.

    `kinds`: that kind, and those of its NICs that differ from it in pool and domain.
    """

    @property
    def kinds(self) -> Iterable[NicKind]: ...

    def observe(self, tenant: Tenant) -> None:
        """Count an arrival: future arrivals are like the recent ones."""

    def renew(self, *, at_once: bool = False) -> None:
        """Begin to renew what future arrivals are worth, over the next arrivals or at once."""

    @property
    def renewing(self) -> bool:
        """Whether a renewal is under way."""

    def settle(self) -> None:
        """Go on with a renewal by one step."""

    def follow(self, oracle: Oracle) -> None:
        """Check what is found by this oracle from now on."""

    def refresh(self) -> None:
        """Take notice of answers of the oracle that changed."""

    def has(self, nic: Nic) -> bool:
        """Whether the NIC is here."""

    def begin_trial(self) -> None:
        """NICs are changed from here on only to be changed back before `end_trial`, which leaves no trace."""

    def end_trial(self) -> None:
        """All is as it was."""

    def covers(self, tenant: Tenant) -> bool:
        """Whether everything that a decision on the tenant needs is known."""

    def holds(self, tenant: Tenant) -> bool:
        """Whether a decision on the tenant is predicted in advance, as it is and not as another workload."""

    def close_with(self, arrivals: int) -> bool:
        """Prefer NICs by what they are worth to so many last arrivals; False where that is not known."""

    def enter(self, nic: Nic) -> None:
        """Add the NIC with all its tenants."""

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that was placed on the NIC, which is added if it is new."""

    def left(self, nic: Nic, tenant: Tenant) -> None:
        """Follow a tenant that left the NIC."""

    def close(self, nic: Nic) -> None:
        """Remove the NIC, if it is there: it takes no more arrivals."""

    def restrict(self, places: AllowedNics | None) -> None:
        """Find only NICs that constraints leave to an arrival, until called with None; no NIC changes meanwhile."""

    def best(self, tenant: Tenant) -> tuple[float, Nic] | None:
        """The NIC that the rule prefers, with its score (lower is better); None when none is found."""

    def rank(self, tenant: Tenant, most: int) -> list[tuple[float, Nic]]:
        """Scores and NICs that take the tenant, at most one of each class, best first; nothing is learnt by it."""

    def scores_on(self, tenant: Tenant, nics: Sequence[Nic]) -> list[float]:
        """The score of the tenant on each of these NICs; infinite where it is not known."""

    def most_free(self) -> int:
        """The most cores that are free on one NIC that may take an arrival; 0 without one."""

    def last_resort(self, tenant: Tenant) -> Nic | None:
        """A NIC that `best` did not find, after a longer search; None when there is none."""

    def opening_score(self, tenant: Tenant) -> float | None:
        """The score of a new NIC; None when the SLA of the tenant would not be met there."""

    def tally(self, tenant: Tenant) -> Tally:
        """How many NICs would take the tenant, and how many have too few cores."""

    def reasons(self, tenant: Tenant) -> Iterator[Reason]:
        """Why no NIC takes the tenant, by class of NICs."""


# What several indexes answer together: the best NIC of all, the best few, and why none takes an arrival.


def best_of(indexes: Iterable[NicIndex], tenant: Tenant) -> tuple[float, Nic] | None:
    """The lowest score and its NIC; None where no NIC takes the tenant."""
    best: tuple[float, Nic] | None = None
    for index in indexes:
        found = index.best(tenant)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return best


def rank_over(indexes: Iterable[NicIndex], tenant: Tenant, most: int) -> list[tuple[float, Nic | NicKind]]:
    """Scores and NICs that take the tenant, best first, at most so many of each index."""
    found: list[tuple[float, Nic | NicKind]] = [scored for index in indexes for scored in index.rank(tenant, most)]
    return sorted(found, key=lambda one: one[0])


def last_resort_of(indexes: Iterable[NicIndex], tenant: Tenant) -> Nic | None:
    """A NIC that takes the tenant although none of those that were compared does; None where there is none."""
    return next(filter(None, (index.last_resort(tenant) for index in indexes)), None)


# A rebuild of a selector's indexes in small steps, after what their oracles answer has changed.
#
# Decisions go on with the indexes of before, and no decision waits for the new ones. Both follow the fleet meanwhile.
# Steps are counted, not timed: the same events lead to the same indexes at the same event.


NICS_AT_ONCE, SAMPLED_AT_ONCE = 64, 16  # NICs that are added in one step, to an index over a table and to one without


def index_of(
    kind: NicKind,
    oracle: Oracle,
    rule: Rule,
    table: PatternTable | None,
    *,
    stand_ins: bool = False,
    kinds: Sequence[NicKind] = (),
) -> NicIndex:
    """An index over a table of co-locations, with `stand_ins` for other workloads; without a table, an index that asks
    for few co-locations. `kinds`: with a table, those of a family."""
    if isinstance(oracle, GpuOracle):
        return GpuIndex(kind, oracle, rule)
    if table is None:
        return SampledIndex(kind, oracle, rule)
    return ClassIndex(table, rule, stand_ins=stand_ins, kinds=kinds)


class IndexPerKind(list[NicIndex]):
    """The index of each kind; kinds of a family have one. `each`: every index once."""

    def __init__(self, indexes: Iterable[NicIndex] = ()) -> None:
        super().__init__(indexes)
        self.each = tuple(dict.fromkeys(self))


class Families:
    """Which kinds share a table and an index: they differ in pool, domain, names and numbers only.

    In a fleet without pools and domains each kind has its own. `of`: by kind, its family.
    """

    def __init__(self, kinds: Sequence[NicKind], oracles: Sequence[Oracle]) -> None:
        shares = any(kind.pool or kind.domain for kind in kinds)
        alike: defaultdict[object, list[NicKind]] = defaultdict(list)
        for kind, oracle in zip(kinds, oracles, strict=True):
            latencies = frozenset((name, frozenset(nfs)) for name, nfs in kind.latency_of.items())
            key = (
                id(oracle), kind.model, kind.cores, kind.cost, kind.paced, kind.line_rate_gbps, latencies,
                frozenset(kind.cores_of.items()), frozenset(kind.core_counts.items()),
            )  # fmt: skip
            alike[key if shares and not isinstance(oracle, GpuOracle) else kind].append(kind)
        self.of = {kind: tuple(family) for family in alike.values() for kind in family}

    def tables(self, make: Callable[[NicKind], PatternTable | None]) -> list[PatternTable | None]:
        """The table of each kind; `make` makes that of a family for its first kind."""
        made = {kind: make(kind) for kind, family in self.of.items() if kind is family[0]}
        return [made[self.of[kind][0]] for kind in sorted(self.of, key=lambda kind: kind.index)]

    def indexes(
        self, oracles: Sequence[Oracle], rule: Rule, tables: Sequence[PatternTable | None], *, stand_ins: bool
    ) -> IndexPerKind:
        """The index of each kind, over its table; a kind without a table has an index of its own."""
        found: dict[NicKind, NicIndex] = {}
        for kind in sorted(self.of, key=lambda kind: kind.index):
            first, table = self.of[kind][0], tables[kind.index]
            if table is None or first is kind:
                found[kind] = index_of(kind, oracles[kind.index], rule, table, stand_ins=stand_ins, kinds=self.of[kind])
            else:
                found[kind] = found[first]
        return IndexPerKind(found.values())


class Rebuild:
    """New indexes of all kinds, in the making.

    `fleet`, `oracles`, `rule`: as of the selector. `workloads`, `accepted_drop`, `most`: as of the tables; co-locations
    are sampled where `most` is 0. `recent`: arrivals by which slots are priced. `stand_ins`: as of `index_of`.
    `indexes`, `tables`: complete once `advance` has returned True.
    """

    def __init__(
        self,
        fleet: Fleet,
        oracles: Sequence[Oracle],
        rule: Rule,
        workloads: Sequence[Workload],
        accepted_drop: Callable[[Workload, float], float],
        most: int,
        recent: Sequence[Tenant],
        *,
        stand_ins: bool = False,
    ) -> None:
        self.fleet = fleet
        self.oracles = oracles
        self.rule = rule
        self.families = Families(fleet.kinds, oracles)
        self.indexes = IndexPerKind()
        self.tables: list[PatternTable | None] = []
        self._workloads = workloads
        self._accepted_drop = accepted_drop
        self._most = most
        self._recent = recent
        self._stand_ins = stand_ins
        self._steps = self._all_steps()

    def __deepcopy__(self, memo: object) -> Rebuild:
        made = copy.copy(self)
        made.indexes, made._steps = IndexPerKind(), repeat(False)  # it goes no further
        return made

    @property
    def builds_tables(self) -> bool:
        """Whether the new indexes are over tables."""
        return self._most > 0

    def lacks(self, nf: str) -> bool:
        """Whether the new tables have no workload of the NF that could stand in for another one."""
        return self.builds_tables and all(workload.nf != nf for workload in self._workloads)

    def advance(self) -> bool:
        """Make a step; True when there is none left. Raises TooManyPatterns when there are more than `most`."""
        return next(self._steps, True) is True

    def joined(self, nic: Nic, tenant: Tenant) -> None:
        if self.indexes:
            self.indexes[nic.kind.index].joined(nic, tenant)

    def left(self, nic: Nic, tenant: Tenant) -> None:
        if self.indexes and self.indexes[nic.kind.index].has(nic):
            self.indexes[nic.kind.index].left(nic, tenant)

    def service_changed(self, nic: Nic) -> None:
        """Follow a NIC that began or ceased to take arrivals."""
        if self.indexes and nic.service is Service.UP:
            self._enter(nic)
        elif self.indexes:
            self.indexes[nic.kind.index].close(nic)

    def observe(self, tenant: Tenant) -> None:
        """Count an arrival."""
        for index in self.indexes.each:
            index.observe(tenant)

    def _all_steps(self) -> Iterator[bool]:
        for kind, oracle in zip(self.fleet.kinds, self.oracles, strict=True):
            table, first = None, self.families.of[kind][0]
            if first is not kind:
                table = self.tables[first.index]
            elif self._most and not isinstance(oracle, GpuOracle):
                enumeration = Enumeration(kind, self._workloads, oracle, self._accepted_drop, self._most)
                for _ in enumeration.steps():
                    yield False
                table = PatternTable.of(enumeration)
            self.tables.append(table)
        self.indexes = self.families.indexes(self.oracles, self.rule, self.tables, stand_ins=self._stand_ins)
        yield False
        # add the NICs, those opened meanwhile included
        nics, at_once = tuple(self.fleet.nics.values()), NICS_AT_ONCE if self._most else SAMPLED_AT_ONCE
        for at in range(0, len(nics), at_once):
            entering = [
                nic
                for nic in nics[at : at + at_once]
                if self.fleet.pool.owns(nic.number) and self.fleet.nics.get(nic.id) is nic and nic.service is Service.UP
            ]
            self._predict_alone(entering)
            for nic in entering:
                self._enter(nic)
            yield False
        for index in self.indexes.each:
            for tenant in self._recent:
                index.observe(tenant)
            index.renew()
            yield False
            while index.renewing:
                index.settle()
                yield False

    def _predict_alone(self, nics: Sequence[Nic]) -> None:
        """Ask for what indexes without a table need of these NICs, all at once."""
        alone: dict[int, dict[CoLocation, None]] = {}
        for nic in nics:
            if self.tables[nic.kind.index] is None:
                alone.setdefault(nic.kind.index, {}).update(dict.fromkeys((workload,) for workload in nic.co_location))
        for number, workloads in alone.items():
            self.oracles[number].throughput(list(workloads))

    def _enter(self, nic: Nic) -> None:
        index = self.indexes[nic.kind.index]
        if nic.tenants_by_id and not index.has(nic):
            index.enter(nic)


# Which workloads the tables of a selector hold, where an arrival with other traffic is compared by a stand-in.


MOST_COLUMNS = 32  # workloads of a table at most
FEW_COLUMNS = 12  # up to so many workloads are in a table although they have come only once

RECURS_FROM = 4
"""Arrivals of a workload from which it recurs, and is worth a column of its own; it is looked at again whenever their
number has doubled."""

MOST_STAND_INS = 0.1
"""The largest share of recent arrivals that are compared by stand-ins: of more, NICs are sampled and predicted."""

RECENT_ARRIVALS = 64  # arrivals over which that share is averaged
COUNTED_WORKLOADS = 10_000  # workloads without a column whose arrivals are counted


class TableWorkloads:
    """Counts arrivals, and says when other workloads belong into the tables.

    `expected`: tenants like those that will come. `recent`: the latest arrivals, which others add to.
    """

    def __init__(self, expected: Sequence[Tenant], recent: Iterable[Tenant]) -> None:
        self._expected = expected
        self._recent = recent
        self._most = MOST_COLUMNS
        self._without_column = Counter[Workload]()
        self._stand_ins = 0.0

    @property
    def too_different(self) -> bool:
        """Whether too many recent arrivals had stand-ins."""
        return self._stand_ins > MOST_STAND_INS

    def count(self, workload: Workload, *, held: bool) -> None:
        """Count an arrival, whose workload a table holds or not."""
        self._stand_ins += (float(not held) - self._stand_ins) / RECENT_ARRIVALS
        if not held:
            if len(self._without_column) >= COUNTED_WORKLOADS:
                self._without_column.clear()
            self._without_column[workload] += 1

    def with_column_for(self, workload: Workload, columns: int) -> set[Workload] | None:
        """The workloads of the next tables, where this one without a column belongs into them; now they have so many
        columns."""
        seen = self._without_column[workload]
        recurs = seen >= RECURS_FROM and seen.bit_count() == 1
        if not recurs and len(self._without_column) + columns > FEW_COLUMNS:
            return None
        chosen = self.chosen()
        return self._begin_with(chosen) if workload in chosen else None

    def instead_of_sampling(self) -> set[Workload] | None:
        """The workloads of tables where hardly any recent arrival would need a stand-in."""
        recent = [tenant.workload for tenant in self._recent]
        few = MOST_STAND_INS * len(recent) / 2
        distinct = set(recent)
        # where nearly all differ, sorting them takes longer than any decision
        if len(distinct) - max(self._most, len({workload.nf for workload in distinct})) >= few:
            return None
        chosen = self.chosen()
        without = sum(workload not in chosen for workload in recent)
        return self._begin_with(chosen) if without < few else None

    def chosen(self) -> set[Workload]:
        """One workload of each NF, and those of recent arrivals that recur most; all where these are few."""
        counts = Counter(tenant.workload for tenant in (*self._expected, *self._recent))
        often = sorted(counts, key=lambda workload: (-counts[workload], workload))
        found = dict.fromkeys({workload.nf: workload for workload in reversed(often)}.values())
        nfs, few = len(found), len(counts) <= FEW_COLUMNS
        found |= dict.fromkeys(workload for workload in often if few or counts[workload] >= RECURS_FROM)
        return set(list(found)[: max(self._most, nfs)])

    def choose_fewer(self) -> bool:
        """Choose half as many from now on, since their co-locations are too many; False where none is left."""
        self._most //= 2
        return self._most > 0

    def _begin_with(self, chosen: set[Workload]) -> set[Workload]:
        self._without_column.clear()
        self._stand_ins = 0.0
        return chosen
