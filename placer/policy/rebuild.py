"""A rebuild of a selector's indexes in small steps, after what their oracles answer has changed.

Decisions go on with the indexes of before, and no decision waits for the new ones. Both follow the fleet meanwhile.
Steps are counted, not timed: the same events lead to the same indexes at the same event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from placer.model.fleet import Fleet, Nic, NicKind, Service, Tenant
from placer.model.gpu_oracle import GpuOracle
from placer.model.oracle import Oracle
from placer.policy.class_index import ClassIndex
from placer.policy.enumeration import Enumeration
from placer.policy.gpu_index import GpuIndex
from placer.policy.nic_index import NicIndex
from placer.policy.pattern_table import PatternTable
from placer.policy.rules import Rule
from placer.policy.sampled_index import SampledIndex
from profiles import CoLocation, Workload

NICS_AT_ONCE, SAMPLED_AT_ONCE = 64, 16
"""NICs that are added in one step, to an index over a table and to one without."""


def index_of(
    kind: NicKind, oracle: Oracle, rule: Rule, table: PatternTable | None, *, stand_ins: bool = False
) -> NicIndex:
    """An index over a table of co-locations, with `stand_ins` for other workloads; without a table, an index that asks
    for few co-locations."""
    if isinstance(oracle, GpuOracle):
        return GpuIndex(kind, oracle, rule)
    return SampledIndex(kind, oracle, rule) if table is None else ClassIndex(table, rule, stand_ins=stand_ins)


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
        self.indexes: list[NicIndex] = []
        self.tables: list[PatternTable | None] = []
        self._workloads = workloads
        self._accepted_drop = accepted_drop
        self._most = most
        self._recent = recent
        self._stand_ins = stand_ins
        self._steps = self._all_steps()

    @property
    def builds_tables(self) -> bool:
        """Whether the new indexes are over tables."""
        return self._most > 0

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
        for index in self.indexes:
            index.observe(tenant)

    def _all_steps(self) -> Iterator[bool]:
        for kind, oracle in zip(self.fleet.kinds, self.oracles, strict=True):
            table = None
            if self._most and not isinstance(oracle, GpuOracle):
                enumeration = Enumeration(kind, self._workloads, oracle, self._accepted_drop, self._most)
                for _ in enumeration.steps():
                    yield False
                table = PatternTable.of(enumeration)
            self.tables.append(table)
        made = zip(self.fleet.kinds, self.oracles, self.tables, strict=True)
        self.indexes = [
            index_of(kind, oracle, self.rule, table, stand_ins=self._stand_ins) for kind, oracle, table in made
        ]
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
        for index in self.indexes:
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
