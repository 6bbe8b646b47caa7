"""Merging NIC kinds: those of one model, cost, oracle and pool are one to the optimum, with their counts added up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil

from placer.model.arrival import RunningNic
from placer.model.catalogue import Catalogue
from placer.model.nic import Tenant
from placer.model.nic_kind import NicKind
from placer.model.oracle import Oracle, co_location_of, lowest_by_workload
from placer.optimal.optimum import Duals, Optimum
from placer.optimal.program import BOUND_ROUNDING, exact_cost
from profiles import CoLocation, Workload

NicPlan = Sequence[tuple[NicKind, Sequence[Tenant]]]


@dataclass(frozen=True, eq=False)
class MergedKinds:
    """NIC kinds after merging.

    `kinds`, `oracles`: the merged kinds, numbered by their `index`, and the oracle of each. `members`: by merged kind,
    the kinds of the fleet that it stands for.
    """

    kinds: tuple[NicKind, ...]
    oracles: tuple[Oracle, ...]
    members: tuple[tuple[NicKind, ...], ...]

    @classmethod
    def of(cls, kinds: Sequence[NicKind], oracles: Sequence[Oracle], *, keep_domains: bool = False) -> MergedKinds:
        """Merge the kinds that share model, cores, cost, oracle and pool; and domain, where those are kept."""
        members: dict[object, list[int]] = {}
        for number, (kind, oracle) in enumerate(zip(kinds, oracles, strict=True)):
            place = kind.pool, kind.domain if keep_domains else ""
            key = kind.model, kind.cores, frozenset(kind.cores_of.items()), kind.cost, id(oracle), *place
            members.setdefault(key, []).append(number)
        return cls(
            tuple(_merge(index, [kinds[number] for number in same]) for index, same in enumerate(members.values())),
            tuple(oracles[same[0]] for same in members.values()),
            tuple(tuple(kinds[number] for number in same) for same in members.values()),
        )

    def merge_catalogue(self, catalogue: Catalogue) -> Catalogue:
        """The catalogue with the merged kinds instead of its own."""
        first = [members[0].index for members in self.members]
        return replace(
            catalogue,
            kinds=self.kinds,
            models=tuple(catalogue.models[index] for index in first),
            testbeds=tuple(catalogue.testbeds[index] for index in first),
            specs=tuple(catalogue.specs[index] for index in first) if catalogue.specs else (),
            curves={at: catalogue.curves[index] for at, index in enumerate(first) if index in catalogue.curves},
            gpus={at: catalogue.gpus[index] for at, index in enumerate(first) if index in catalogue.gpus},
        )

    def merge(self, nics: NicPlan) -> NicPlan:
        return [(self.kinds[self.number_of(kind)], tenants) for kind, tenants in nics]

    def number_of(self, kind: NicKind) -> int:
        """The number of the merged kind that stands for a kind of the fleet."""
        return self._numbers[kind.index]

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return {member.index: number for number, members in enumerate(self.members) for member in members}

    def kind_of(self, merged: int, number: int) -> NicKind:
        """The fleet's kind of NIC number `number`, from 0, of a merged kind: each has as many as there are of it."""
        for kind in self.members[merged]:
            if kind.count is None or number < kind.count:
                return kind
            number -= kind.count
        raise ValueError(f"There is no NIC number {number} of merged kind {merged}.")

    def next_kind(self, merged: int, used: Mapping[int, int]) -> NicKind:
        """The fleet's kind of one more NIC of a merged kind, where so many of each are used, by index."""
        return next(kind for kind in self.members[merged] if kind.count is None or used[kind.index] < kind.count)

    def separate(self, optimum: Optimum) -> Optimum:
        """The same plan and bounds in terms of the fleet's own kinds."""
        duals = optimum.duals
        return replace(
            optimum, nics=self.separate_nics(optimum.nics), duals=None if duals is None else self.separate_prices(duals)
        )

    def separate_prices(self, duals: Duals) -> Duals:
        """The prices in terms of the fleet's own kinds: those of one merged kind share its price."""
        return replace(duals, of_kinds=self.separate_values(duals.of_kinds))

    def separate_values(self, of_merged: Sequence[float]) -> tuple[float, ...]:
        """Per kind of the fleet, the value of the merged kind that stands for it."""
        return tuple(of_merged[number] for _, number in sorted(self._numbers.items()))

    def separate_nics(self, nics: NicPlan) -> list[tuple[NicKind, tuple[Tenant, ...]]]:
        """The NICs in terms of the fleet's own kinds."""
        used: Counter[int] = Counter()
        found = []
        for kind, tenants in nics:
            found.append((self.kind_of(kind.index, used[kind.index]), tuple(tenants)))
            used[kind.index] += 1
        return found


def _merge(index: int, same: Sequence[NicKind]) -> NicKind:
    counts = [kind.count for kind in same]
    limited = [count for count in counts if count is not None]
    owned = [kind.owned for kind in same if kind.owned is not None]
    return replace(
        same[0],
        index=index,
        count=sum(limited) if len(limited) == len(counts) else None,
        owned=sum(owned) if owned else None,
    )


# NICs on which instances already run, as further kinds: what is left of them costs nothing more.
#
# A NIC that is in use anyway costs nothing more: to the optimum it is one of a kind with fewer cores and no cost. There
# is such a kind for every class of these NICs: of one kind of the fleet, and with the same workloads and SLAs on them.
# What a further tenant gets there is what the oracle says of all together, and nothing where one that already runs
# would
# lose its SLA.


class BesideRunning(Oracle):
    """Throughputs of further workloads on a NIC on which these tenants already run; 0 where they would lose an SLA, and
    where the port is too slow for all."""

    def __init__(self, kind: NicKind, oracle: Oracle, tenants: Sequence[Tenant]) -> None:
        super().__init__()
        self.kind = kind
        self.oracle = oracle
        self.tenants = tenants
        self._workloads = tuple(tenant.workload for tenant in tenants)

    def _query(self, co_locations: Sequence[CoLocation]) -> Sequence[Sequence[float]]:
        whole = [co_location_of((*self._workloads, *further)) for further in co_locations]
        lowest = map(lowest_by_workload, whole, self.oracle.throughput(whole))
        return [
            [kpps[workload] if self._may_share(together, kpps) else 0.0 for workload in further]
            for together, further, kpps in zip(whole, co_locations, lowest, strict=True)
        ]

    def _may_share(self, together: CoLocation, kpps: dict[Workload, float]) -> bool:
        """Whether the port carries the packets of all, and those that already run keep their SLAs so."""
        kept = all(tenant.is_met(kpps[tenant.workload], self.solo(tenant.workload)) for tenant in self.tenants)
        return kept and self.kind.has_port_for(together)

    def solo(self, workload: Workload) -> float:
        return self.oracle.solo(workload)


@dataclass(frozen=True, eq=False)
class KindsBesideRunning:
    """The kinds of a fleet, less the NICs on which instances already run, and a kind for each class of those.

    `kinds`, `oracles`: the fleet's kinds, then the others; and the oracle of each. `fleet`: the fleet's kinds as they
    are. `classes`: by further kind, its NICs.
    """

    kinds: tuple[NicKind, ...]
    oracles: tuple[Oracle, ...]
    fleet: tuple[NicKind, ...]
    classes: tuple[tuple[RunningNic, ...], ...]

    @classmethod
    def of(
        cls, kinds: Sequence[NicKind], oracles: Sequence[Oracle], running: Sequence[RunningNic]
    ) -> KindsBesideRunning:
        """The kinds of these NICs."""
        taken = Counter(nic.kind.index for nic in running)
        less = [_without(kind, taken[kind.index]) if taken[kind.index] else kind for kind in kinds]
        alike: defaultdict[object, list[RunningNic]] = defaultdict(list)
        for nic in running:
            tenants = Counter((tenant.workload, tenant.sla) for tenant in nic.tenants)
            alike[nic.kind.index, frozenset(tenants.items())].append(nic)
        further, beside = [], []
        for index, nics in enumerate(alike.values(), start=len(less)):
            kind, tenants_of_one = nics[0].kind, nics[0].tenants
            cores = kind.cores - kind.cores_taken(tenant.workload for tenant in tenants_of_one)
            further.append(replace(kind, index=index, cores=cores, count=len(nics), cost=0.0, names=(), owned=None))
            beside.append(BesideRunning(kind, oracles[kind.index], tenants_of_one))
        return cls((*less, *further), (*oracles, *beside), tuple(kinds), tuple(map(tuple, alike.values())))

    @property
    def in_use(self) -> frozenset[int]:
        """The indices of the further kinds."""
        return frozenset(range(len(self.fleet), len(self.kinds)))

    def restore(self, optimum: Optimum) -> Optimum:
        """The plan and its bounds with all that already runs, in terms of the fleet's kinds."""
        waiting = [list(nics) for nics in self.classes]
        nics = []
        for kind, tenants in optimum.nics:
            if kind.index < len(self.fleet):
                nics.append((self.fleet[kind.index], tenants))
            else:
                running = waiting[kind.index - len(self.fleet)].pop(0)
                nics.append((running.kind, (*running.tenants, *tenants)))
        nics += [(running.kind, running.tenants) for left in waiting for running in left]
        in_use = [running.kind for of_class in self.classes for running in of_class]
        given = sum(map(exact_cost, in_use), start=Fraction(0))
        bound = given + Fraction(repr(optimum.lower_bound))
        highest = max(map(exact_cost, self.fleet))
        fewest = ceil(bound / highest - Fraction(BOUND_ROUNDING)) if highest else 0
        return replace(
            optimum,
            nics=nics,
            cost=float(sum((exact_cost(kind) for kind, _ in nics), start=Fraction(0))),
            lower_bound=float(bound),
            nics_lower_bound=max(fewest, optimum.nics_lower_bound + len(in_use)),
            duals=None,
        )


def _without(kind: NicKind, taken: int) -> NicKind:
    """The kind without so many of its NICs, owned ones first."""
    return replace(
        kind,
        count=None if kind.count is None else kind.count - taken,
        owned=None if kind.owned is None else max(kind.owned - taken, 0),
    )
